"""Samples that are complete while others are still on their way, so that an interruption does not lose them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from snips.samplers.base import OnStep, StepInfo


class FinishedChains:
    """An `on_step` that remembers the last state of each chunk, and passes everything on.

    The samplers take chains by sample first, then by image, `chunk` of them at a time.
    """

    def __init__(self, samples: int, images: int, chunk: int | None, on_step: OnStep | None) -> None:
        self.images, self.on_step = images, on_step
        chains = samples * images
        self.parts = math.ceil(chains / min(chunk, chains)) if chunk else 1
        self.chains: list[Tensor] = []

    def __call__(self, info: StepInfo) -> None:
        if info.step % (info.total // self.parts) == 0:
            self.chains.append(info.state.x)
        if self.on_step is not None:
            self.on_step(info)

    def samples(self) -> Tensor | None:
        """(k, B, C, H, W) with the k samples that are complete for all images, or None."""
        chains = torch.cat(self.chains) if self.chains else torch.empty(0)
        complete = len(chains) // self.images
        return chains[: complete * self.images].unflatten(0, (complete, self.images)) if complete else None
