"""What all commands that draw samples share: prior, sampler and machine as typed, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from snips.cli.app import PrecisionOption, SeedOption
from snips.names import check_count
from snips.priors.tiled import check_sides
from snips.running.sampler_settings import named_options, option_names, sampler_settings
from snips.samplers import PRESETS
from snips.samplers.table import SAMPLER_TABLE, USUAL_CALLS, USUAL_PRESET
from snips.streams import checked_seed

SAMPLERS_HELP = "; ".join(
    f"`{name}`: {entry.summary}" if entry.summary else f"`{name}`" for name, entry in SAMPLER_TABLE.items()
)


@dataclass(frozen=True)
class SamplingOptions:
    """How samples are drawn, and on what."""

    prior: Annotated[
        str | None, typer.Option(help="`gaussian`, a name from `snips priors`, or a file; chosen unless given.")
    ] = None
    samples: Annotated[int, typer.Option("--samples", "-k", help="How many samples to draw of an image.")] = 8
    sampler: Annotated[str, typer.Option(help=f"{SAMPLERS_HELP}.")] = "fast"
    nfe: Annotated[
        int | None, typer.Option(help=f"Calls of the denoiser for each sample; {USUAL_CALLS} by default.")
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(help=f"langevin: the paper's settings for {' or '.join(PRESETS)}; {USUAL_PRESET} by default."),
    ] = None
    levels: Annotated[int | None, typer.Option(help="langevin: noise levels, instead of the preset's.")] = None
    actual_noise: Annotated[
        bool | None,
        typer.Option(help="langevin: tell the denoiser the noise that its steps leave, a little more than sigma."),
    ] = None
    chunk: Annotated[int | None, typer.Option(help="Samples drawn at a time; chosen by size unless given.")] = None
    tile: Annotated[
        int | None,
        typer.Option(
            min=1, help="Denoise in tiles of this side, a multiple of 32; unless given, where memory does not suffice."
        ),
    ] = None
    device: Annotated[
        str, typer.Option(help="`cpu`, `cuda` or `mps`, which are untested, or `auto`: the fastest there is.")
    ] = "cpu"
    precision: PrecisionOption = "float32"
    seed: SeedOption = 0

    @property
    def named(self) -> dict[str, Any]:
        """What people choose by name of the sampler's options; one without a field here has its usual value."""
        return named_options(self.sampler, **{name: getattr(self, name, None) for name in option_names()})

    def checked_settings(self) -> dict[str, Any]:
        """The sampler's options. All numbers are checked here, before a file is read."""
        settings = sampler_settings(self.sampler, **self.named)
        check_count("samples", self.samples)
        check_count("chunk", 1 if self.chunk is None else self.chunk)
        if self.tile is not None:
            check_sides(self.tile)
        checked_seed(self.seed)
        return settings
