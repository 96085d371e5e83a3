"""Options about samples and samplers that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from snips.samplers import PRESETS

SimulateOption = Annotated[bool, typer.Option("--simulate", help="The image is clean: degrade it first.")]
PriorOption = Annotated[
    str | None, typer.Option(help="`gaussian`, a name from `snips priors`, or a file; chosen unless given.")
]
SamplesOption = Annotated[int, typer.Option("--samples", "-k", help="How many samples to draw of an image.")]
SamplerOption = Annotated[
    str, typer.Option(help="`fast`; `langevin`: the paper's Algorithm 1; `matrix_free`: without an SVD.")
]
CallsOption = Annotated[int, typer.Option(help="fast, matrix_free: calls of the denoiser for each sample.")]
PresetOption = Annotated[str, typer.Option(help="langevin: the paper's settings for " + " or ".join(PRESETS))]
LevelsOption = Annotated[int | None, typer.Option(help="langevin: noise levels, instead of the preset's.")]
ShapeOption = Annotated[str | None, typer.Option(help="C,H,W of the image, where y leaves it open.")]
ChunkOption = Annotated[int | None, typer.Option(help="Samples drawn at a time; chosen by size unless given.")]
