"""The application object that all commands register with."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from snips.allocator import keep_freed_memory
from snips.memory import is_out_of_memory
from snips.names import printable
from snips.plugins import PluginWarning
from snips.version import __version__

out, err = Console(), Console(stderr=True)
TYPED = "snips.typed"  # where a context keeps the command


def say(text: str) -> None:
    out.print(printable(text), markup=False, highlight=False, soft_wrap=True)


def typed_command(ctx: typer.Context) -> str:
    """The command that is running, as typed, for people who want to repeat it."""
    return ctx.meta[TYPED]


def one_line(message: str) -> None:
    told = printable(" ".join(message.split()))
    err.print(f"snips: {told}", style="red", markup=False, highlight=False, soft_wrap=True)


class OneLineErrors(TyperGroup):
    """Bad input ends with one clear line and exit code 2, never with a traceback."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        typed = list(args)  # parsing empties the list
        ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta[TYPED] = shlex.join(["snips", *typed])
        return ctx

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):  # of `snips ... | head`, which Typer ends without a word
            raise
        except KeyboardInterrupt as stop:  # else Typer ends without a word
            one_line("stopped")
            raise typer.Exit(130) from stop
        except (ValueError, OSError, FloatingPointError, MemoryError) as error:
            one_line(str(error) or type(error).__name__)
            raise typer.Exit(2) from error
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            command = f"{ctx.command_path} {ctx.invoked_subcommand}"
            one_line(f"there is not enough memory: take less at once (see --chunk in `{command} --help`)")
            raise typer.Exit(2) from error
        except Exception as error:
            if not hasattr(error, "format_message"):  # not a mistake in the arguments, but in snips
                raise
            one_line(f"{error.format_message()} See `{ctx.command_path} --help`.")  # pyright: ignore
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
PrecisionOption = Annotated[
    str, typer.Option(help="Of the network: `float32`, or `bfloat16` where the hardware is faster with it.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite what exists.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(__version__, highlight=False)
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
]


@app.callback()
def _common(ctx: typer.Context, version: VersionOption = False) -> None:
    keep_freed_memory()
    ctx.with_resource(_plugin_warnings_in_one_line())


@contextmanager
def _plugin_warnings_in_one_line() -> Iterator[None]:
    """A broken plug-in of somebody else is one line on stderr, without the place in our source."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, PluginWarning):
                one_line(str(message))
            else:
                others(message, category, *where, **more)

        warnings.showwarning = show
        yield


def main() -> None:
    try:
        app()
    except KeyboardInterrupt:
        err.print("snips: stopped")
        sys.exit(130)
