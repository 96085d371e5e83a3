"""Where a sampler stands, to be stored and given back to the same run, and to no other."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import methodcaller

import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.schedules import SAME_LEVEL
from snips.streams import Streams

Stored = dict[str, Tensor]  # a State as tensors; with the chains of earlier chunks, `finished`, a whole run


@dataclass
class State:
    """Where a sampler stands between two steps: all that is needed to go on exactly as if it had not stopped."""

    step: int  # steps done
    x: Tensor  # (chains, C, H, W)
    streams: Streams
    memory: Tensor | None = None  # what a sampler carries over beside x, for example the previous noise
    mark: Tensor | None = None  # of the run, see `run_mark`

    def tensors(self) -> dict[str, Tensor]:
        """A copy that can be stored (safetensors) and given back as `resume`."""
        stored = {"step": torch.tensor(self.step), "x": self.x.clone(), "streams": self.streams.state()}
        more = {"memory": self.memory, "mark": self.mark}
        return stored | {name: value.clone() for name, value in more.items() if value is not None}

    @classmethod
    def from_tensors(cls, stored: dict[str, Tensor], streams: Streams, like: Tensor) -> State:
        streams.restore(stored["streams"])
        memory = stored.get("memory")
        return cls(int(stored["step"]), stored["x"].to(like), streams, None if memory is None else memory.to(like))


OTHER_RUN = "the stored state is of another run: go on with"


def run_mark(sampler: str, plan: Sequence[float], problem: InverseProblem, **options: float | str) -> Tensor:
    """What tells a run from others, stored with its states: a number for what has names, four for y and H, the plan.

    The prior has no such number: that it is the same is for the caller to see to.
    """
    chosen = {"first image": problem.first_image, "sigma_0": problem.sigma_0, **options}
    named = json.dumps([sampler, chosen], sort_keys=True, default=methodcaller("item"))  # of NumPy's numbers
    any_image = torch.rand(1, *problem.operator.image_shape, generator=torch.Generator().manual_seed(0))
    prints = (*_print_of(problem.y), *_print_of(problem.operator(any_image.to(problem.y.real))))
    return torch.tensor([zlib.crc32(named.encode()), *prints, *plan], dtype=torch.float64)


def _print_of(y: Tensor) -> tuple[float, float]:
    """The length of y and 2 plus its cosine with a ramp: another rounding hardly changes them, another y does."""
    flat = torch.view_as_real(y) if y.is_complex() else y
    flat = flat.detach().cpu().double().flatten()
    ramp, length = torch.linspace(1, 2, len(flat), dtype=torch.float64), float(flat.norm())
    return length, 2 + (float(ramp @ flat / ramp.norm()) / length if length > 0 else 0.0)


def own_state(stored: Stored | None, mark: Tensor) -> Stored | None:
    """The state where a run with this mark stopped, None where that was between two chunks; another run's is refused.

    A state without a mark is of a version that set none, so of other steps.
    """
    if stored is None:
        return None
    other, within = stored.get("mark"), "x" in stored
    if (within and other is None) or (other is not None and not _same_run(other.to(mark), mark)):
        raise ValueError(
            f"{OTHER_RUN} the measurement, the operator, the sampler, the number of calls, the seed, the options and "
            "the version of snips that it had"
        )
    return stored if within else None


def _same_run(mark: Tensor, other: Tensor) -> bool:
    return len(mark) == len(other) and bool(mark[0] == other[0]) and torch.allclose(mark, other, SAME_LEVEL, 0)


def remembered(state: State) -> Tensor:
    """What the step before left for this one. A state of this plan has it."""
    if state.memory is None:
        raise ValueError(f"{OTHER_RUN} the noise levels that it had")
    return state.memory
