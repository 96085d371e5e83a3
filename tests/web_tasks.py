"""A small task of the web page, run at once."""

from __future__ import annotations

from pathlib import Path

from snips import Restoration
from snips.web.limits import Limits
from snips.web.task import GAUSSIAN, Task, build_problem, run
from web_pages import photo

LIMITS = Limits(pixels=64 * 64, samples=4, calls=20)


def small_task(folder: Path) -> Task:
    return Task(photo(folder / "photo.png", 16, 16), True, "sr2", 0.1, samples=2, calls=10, prior=GAUSSIAN)


def restored(task: Task, limits: Limits = LIMITS, report=lambda _: None) -> Restoration:
    return run(task, build_problem(task, limits), report)
