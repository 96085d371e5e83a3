"""What all commands that pose a problem share: its options as typed, read and checked."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from snips.photos.photo import ValueRange, checked_range
from snips.posing.measured import DEFAULT_PROBLEM, file_options, option_value, read_numbers, sigma_from

ProblemOption = Annotated[
    str | None, typer.Option("--problem", "-p", help="What was measured: see `snips problems` (denoise).")
]
MaskOption = Annotated[Path | None, typer.Option(help="Image or .npy, white or 1 = seen (inpaint, mri).")]
KernelOption = Annotated[
    Path | None, typer.Option(help="Image or .npy with the blur's weights, scaled to sum 1 (deblur_kernel).")
]
FactorOption = Annotated[int | None, typer.Option(help="How much larger the image shall become (sr).")]
MatrixOption = Annotated[Path | None, typer.Option(help=".npy with H of shape (M, N) (matrix).")]
RangeOption = Annotated[
    str | None, typer.Option("--range", help="Which values are black and white, as 0,4095; for .npy, .npz and TIFF.")
]
OptionOption = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="An option of the problem, as name=value; repeatable.")
]


def read_options(
    pairs: list[str] | None, mask: Path | None, kernel: Path | None, factor: int | None, matrix: Path | None
) -> dict[str, Any]:
    """name=value with the value as JSON where it is, else as text; arrays from files."""
    options: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or name in ("name", "image_shape"):
            raise ValueError(f"--option takes name=value with an option of the problem, not {pair!r}")
        options[name] = option_value(value)
    named = file_options(mask, kernel, factor, matrix)
    if twice := sorted(options.keys() & named.keys()):
        raise ValueError(f"{twice[0]} is given twice, with --option and with --{twice[0]}: leave out one of them")
    return options | named


def read_sigma(text: str | None, problem: str = DEFAULT_PROBLEM) -> float | str | None:
    """As `sigma_from` reads it; on a terminal, one that is meant for 0 to 255 is asked about."""
    return sigma_from(text, lambda question: sys.stdin.isatty() and typer.confirm(question, err=True), problem)


def with_sigma(command: str, typed: str | None, read: float | str | None) -> str:
    """The command with the noise that was meant, where another was typed and asked about."""
    if typed is None or not isinstance(read, float) or float(typed) == read:
        return command
    return re.sub(rf"(-s|--sigma)([ =]?){re.escape(typed)}(?= |$)", rf"\g<1>\g<2>{read:.6g}", command)


def read_range(text: str | None) -> ValueRange | None:
    return None if text is None else checked_range(*read_numbers("--range", text, 2, float))
