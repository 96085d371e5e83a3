"""What `snips restore` has decided before it samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from snips.cli.restore_run import RestoreRun, note
from snips.cli.sampler_options import SamplingOptions
from snips.posing.pictures import PhotoProblem
from snips.priors import Prior
from snips.results.checkpoints import Checkpoint
from snips.running import costs
from snips.running.tiling import Tiles, tiles_for


@dataclass(frozen=True)
class RestorePlan:
    """All that the command decides; a run of it adds what the machine decides: threads, chunk and tiles."""

    posed: PhotoProblem
    prior: Prior
    sampling: SamplingOptions
    settings: dict[str, Any]  # the sampler's
    command: str
    device: torch.device
    checkpoint: Checkpoint | None
    quiet: bool
    threads: int = field(default_factory=torch.get_num_threads)  # as they are before a run changes them

    def run(self, known: dict[str, Any]) -> RestoreRun:
        """The run, with what an earlier attempt chose where the command leaves it open."""
        torch.set_num_threads(known.get("threads", self.threads))
        settings, tiles = {**self.settings, "chunk": self._chunk(known)}, self._tiles(known)
        prior, sampling = tiles.prior if tiles else self.prior, self.sampling
        return RestoreRun(
            self.posed, prior, sampling.sampler, sampling.samples, sampling.seed, settings, self.command, self.device,
            self.checkpoint, tiles,
        )  # fmt: skip

    def _chunk(self, known: dict[str, Any]) -> int:
        if self.sampling.chunk is not None:
            return self.sampling.chunk
        image_shape = self.posed.problem.operator.image_shape
        return known.get("chunk") or costs.chosen_chunk(image_shape, costs.fitting_pixels())

    def _tiles(self, known: dict[str, Any]) -> Tiles | None:
        """Where the main memory does not hold one call on the whole image, or where they are asked for."""
        side = self.sampling.tile
        if side is None and "tile" in known:
            return tiles_for(self.posed.problem, self.prior, known["tile"], None)
        tiles = tiles_for(self.posed.problem, self.prior, side, self._untiled_pixels())
        if tiles is not None:
            reason = "" if side else "one call on the whole image would fill more than half of the free memory, so "
            note(f"{reason}{tiles}", self.quiet)
        elif side is not None:
            text = f"the image is too small for tiles of {side} pixels with their margins: it is denoised whole"
            note(text, self.quiet)
        return tiles

    def _untiled_pixels(self) -> int | None:
        """How many are denoised at once; None where there is no limit, or none that is known."""
        channels, height, width = self.posed.problem.operator.image_shape
        small = height * width <= costs.EXTRAPOLATE_FROM
        if self.device.type != "cpu" or small or hasattr(self.prior, "image_shape"):
            return None
        return costs.untiled_pixels(self.prior, channels)
