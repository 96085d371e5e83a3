"""The application object that all commands register with."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

import snips
from snips.allocator import keep_freed_memory

out, err = Console(), Console(stderr=True)


class OneLineErrors(TyperGroup):
    """Bad input ends with one clear line and exit code 2, never with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, OSError, FloatingPointError) as error:
            message = " ".join(str(error).split())
            err.print(f"snips: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(2) from error


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Posterior samples for noisy linear inverse problems, y = H x + noise.",
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same result.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite what exists.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(snips.__version__, highlight=False)
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
]


@app.callback()
def _common(version: VersionOption = False) -> None:
    keep_freed_memory()


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        err.print("snips: stopped")
        sys.exit(130)
