"""Progress for people who wait: a bar on a terminal; elsewhere, for logs, lines."""

from __future__ import annotations

from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn

from snips.cli.app import err

W = TypeVar("W", bound="Watch")


def progress_bar(quiet: bool, *times: ProgressColumn) -> Progress:
    """What is done, how much of it, and the given columns; nothing where nobody looks at a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    return Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal)


class Watch:
    """One bar, entered while the work lasts."""

    def __init__(self, description: str, quiet: bool, *times: ProgressColumn) -> None:
        self.progress = progress_bar(quiet, *times)
        self.task = self.progress.add_task(description, total=None)
        self.in_lines = not (quiet or err.is_terminal)

    def __enter__(self: W) -> W:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def show(self, description: str, done: int, total: int | None) -> None:
        self.progress.update(self.task, completed=done, total=total, description=description)

    def line(self, text: str) -> None:
        """Only where there is no bar."""
        if self.in_lines:
            err.print(text, markup=False, highlight=False, soft_wrap=True)
