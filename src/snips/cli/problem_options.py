"""What all commands that pose a problem share: its options as typed, read and checked."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from snips.photos.photo import ValueRange, checked_range
from snips.posing.from_files import file_options, option_value, read_numbers, sigma_from


@dataclass(frozen=True)
class ProblemOptions:
    """What is measured of an image, and with how much noise."""

    problem: Annotated[
        str | None, typer.Option("--problem", "-p", help="What was measured: see `snips problems` (denoise).")
    ] = None
    sigma: Annotated[
        str | None,
        typer.Option(
            "--sigma", "-s", help="The noise's standard deviation, for pixels in [0, 1], or `auto` (default)."
        ),
    ] = None
    mask: Annotated[Path | None, typer.Option(help="Image or .npy, white or 1 = seen (inpaint, mri).")] = None
    kernel: Annotated[
        Path | None, typer.Option(help="Image or .npy with the blur's weights, scaled to sum 1 (deblur_kernel).")
    ] = None
    factor: Annotated[int | None, typer.Option(help="How much larger the image shall become (sr).")] = None
    matrix: Annotated[Path | None, typer.Option(help=".npy with H of shape (M, N) (matrix).")] = None
    values: Annotated[
        str | None,
        typer.Option("--range", help="Which values are black and white, as 0,4095; for .npy, .npz and TIFF."),
    ] = None
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="An option of the problem, as name=value; repeatable.")
    ] = None

    def read_options(self) -> dict[str, Any]:
        """All options of the problem; arrays from files."""
        options, named = self.read_pairs(), file_options(self.mask, self.kernel, self.factor, self.matrix)
        if twice := sorted(options.keys() & named.keys()):
            raise ValueError(f"{twice[0]} is given twice, with --option and with --{twice[0]}: leave out one of them")
        return options | named

    def read_pairs(self) -> dict[str, Any]:
        """Those of --option, name=value, with the value as JSON where it is, else as text."""
        options: dict[str, Any] = {}
        for pair in self.option or []:
            name, equals, value = pair.partition("=")
            if not equals or name in ("name", "image_shape"):
                raise ValueError(f"--option takes name=value with an option of the problem, not {pair!r}")
            options[name] = option_value(value)
        return options

    def read_sigma(self, own_scale: bool = False) -> float | str | None:
        """As `sigma_from` reads it; on a terminal, one that is meant for 0 to 255 is asked about."""
        return sigma_from(
            self.sigma, lambda question: sys.stdin.isatty() and typer.confirm(question, err=True), own_scale
        )

    def read_range(self) -> ValueRange | None:
        return None if self.values is None else checked_range(*read_numbers("--range", self.values, 2, float))


@dataclass(frozen=True)
class FileOptions(ProblemOptions):
    """How the content of a file was measured, or shall be."""

    simulate: Annotated[bool, typer.Option("--simulate", help="The image is clean: degrade it first.")] = False
    shape: Annotated[str | None, typer.Option(help="C,H,W of the image, where y leaves it open.")] = None


def with_sigma(command: str, typed: str | None, read: float | str | None) -> str:
    """The command with the noise that was meant, where another was typed and asked about."""
    if typed is None or not isinstance(read, float) or float(typed) == read:
        return command
    return re.sub(rf"(-s|--sigma)([ =]?){re.escape(typed)}(?= |$)", rf"\g<1>\g<2>{read:.6g}", command)
