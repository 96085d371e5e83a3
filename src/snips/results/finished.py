"""Samples that are complete while others are still on their way, so that an interruption does not lose them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from snips.samplers.base import OnStep, StepInfo
from snips.samplers.states import State, Stored


class FinishedChains:
    """An `on_step` that remembers the last state of each chunk, and passes everything on.

    The samplers take chains by sample first, then by image, `chunk` of them at a time.

    Args:
        resume: where the run stood when it was stopped before.
        keep: is given a function that describes where the run stands now, as the samplers' `resume`, after each step.
    """

    def __init__(
        self,
        samples: int,
        images: int,
        chunk: int | None,
        on_step: OnStep | None,
        resume: Stored | None = None,
        keep: Callable[[Callable[[], Stored]], None] | None = None,
    ) -> None:
        self.images, self.on_step, self.keep = images, on_step, keep
        chains = samples * images
        self.parts = math.ceil(chains / min(chunk, chains)) if chunk else 1
        self.chains: list[Tensor] = [resume["finished"]] if resume and "finished" in resume else []

    def __call__(self, info: StepInfo) -> None:
        complete = info.step % (info.total // self.parts) == 0
        if complete:
            self.chains.append(info.state.x)
        if self.keep is not None:
            self.keep(lambda: self._stored(info.state, complete))
        if self.on_step is not None:
            self.on_step(info)

    def _stored(self, state: State, complete: bool) -> Stored:
        """The finished chains, and the state; of a complete one only the mark, which says of what run they are."""
        finished = {"finished": torch.cat(self.chains)} if self.chains else {}
        marked = {} if state.mark is None else {"mark": state.mark}
        return {**finished, **(marked if complete else state.tensors())}

    def samples(self) -> Tensor | None:
        """(k, B, C, H, W) with the k samples that are complete for all images, or None."""
        chains = torch.cat(self.chains) if self.chains else torch.empty(0)
        complete = len(chains) // self.images
        return chains[: complete * self.images].unflatten(0, (complete, self.images)) if complete else None
