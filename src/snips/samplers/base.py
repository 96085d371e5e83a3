"""What all samplers share: chains, calls of the prior, and the loop that drives them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.names import check_count, unknown_name
from snips.priors.base import Prior, denoised_copy
from snips.samplers.states import OTHER_RUN, State, Stored
from snips.streams import Chain


@dataclass(frozen=True)
class StepInfo:
    """What `on_step` is told after each step."""

    step: int  # steps done, over all chunks
    total: int
    sigma: float
    denoised: Tensor  # (chains of this chunk, C, H, W)
    state: State


OnStep = Callable[[StepInfo], None]
SHARED = ("problem", "prior", "samples", "seed", "on_step", "resume")  # arguments that `restore` gives to all samplers
Steps = Callable[[Sequence[Chain], Stored | None], Iterator[StepInfo]]


def run(
    steps: Steps,
    problem: InverseProblem,
    samples: int,
    chunk: int | None,
    on_step: OnStep | None,
    resume: Stored | None = None,
) -> Tensor:
    """Drive the chains of all samples and images, at most `chunk` of them at a time -> (K, B, C, H, W).

    `resume` is where an earlier run with the same arguments stopped: the chains of its finished chunks, (chains, C, H,
    W), under the name `finished`, and the state within the next chunk, where there is one.
    """
    check_count("samples", samples)
    if chunk is not None:
        check_count("chunk", chunk)
    images = range(problem.first_image, problem.first_image + len(problem))
    chains = [Chain(image, sample) for sample in range(samples) for image in images]
    chunk = min(chunk or len(chains), len(chains))
    parts = [chains[i : i + chunk] for i in range(0, len(chains), chunk)]
    stored = dict(resume or {})
    finished = [stored.pop("finished").to(problem.y)] if "finished" in stored else []
    _check_chains(stored, sum(map(len, finished)), parts)
    for index in range(math.ceil(sum(map(len, finished)) / chunk), len(parts)):
        finished.append(_run_part(steps(parts[index], stored or None), index, len(parts), on_step))
        stored = {}
    return torch.cat(finished).reshape(samples, len(problem), *problem.operator.image_shape)


def _check_chains(stored: Stored, finished: int, parts: list[list[Chain]]) -> None:
    """Whether a state is one of this run: as many chains, and no chunk that is half finished."""
    sizes, within = [len(part) for part in parts], "x" in stored
    done = math.ceil(finished / sizes[0])
    fits = finished == sum(sizes[:done]) and (not within or done < len(sizes))
    if not fits or (within and len(stored["x"]) != sizes[done]):
        raise ValueError(f"{OTHER_RUN} as many samples, images and chains at a time as it had")


def _run_part(steps: Iterator[StepInfo], index: int, parts: int, on_step: OnStep | None) -> Tensor:
    info = None
    for info in steps:
        _check_finite(info)
        if on_step is not None:
            done = index * info.total + info.step
            on_step(StepInfo(done, parts * info.total, info.sigma, info.denoised, info.state))
    if info is None:
        raise ValueError("the stored state has no steps left: it is that of a finished run, or of one with more calls")
    return info.state.x


def _check_finite(info: StepInfo) -> None:
    """Numbers that are finite may still be too large for the step that follows; it must not be stored."""
    if not is_finite(info.state.x):
        where, largest = f"step {info.step} of {info.total}, sigma = {info.sigma:.4g}", float(info.denoised.abs().max())
        raise PriorFailed(f"{where} ended in NaN or Inf: the prior returned numbers up to {largest:.3g} there")


def check_options(name: str, sampler: Callable[..., Tensor], options: Mapping[str, Any]) -> None:
    """Refuse what a sampler does not take, and say what it does."""
    parameters = inspect.signature(sampler).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    known = [option for option in parameters if option not in SHARED]
    for option in options:
        if option not in known:
            raise ValueError(unknown_name(f"option of the sampler {name}", option, known))


def repeats(plan: Sequence[float], i: int) -> bool:
    """Whether call i + 1 of a plan of noise levels is a correction at the level of call i; both count from 0."""
    return i + 1 < len(plan) and plan[i + 1] == plan[i]


@dataclass(frozen=True)
class Call:
    """Call i, from 0, of those that a plan has the noise levels of; as text, where that is."""

    plan: Sequence[float]
    i: int

    def __str__(self) -> str:
        level, levels = len(set(self.plan[: self.i + 1])), len(set(self.plan))
        return f"level {level} of {levels} (call {self.i + 1} of {len(self.plan)})"


def denoise_in_turn(prior: Prior, x: Tensor, sigma: float, call: Call) -> Tensor:
    """One call of a plan; of a `mirrored` prior every other one sees the mirror image.

    A network treats the two a little differently. In turn, these errors cancel over the steps instead of adding up.
    """
    if prior.mirrored and call.i % 2:
        return denoise(prior, x.flip(-1), sigma, call).flip(-1)
    return denoise(prior, x, sigma, call)


class PriorFailed(ValueError):
    """A prior returned what is no image, in the middle of a run."""


def denoise(prior: Prior, x: Tensor, sigma: float, place: object) -> Tensor:
    """One call of the prior, with what it returns checked; `place` says, as text, where in the run that was."""
    with torch.no_grad():
        denoised = denoised_copy(prior, x, sigma)
    if denoised.shape != x.shape or denoised.dtype != x.dtype or denoised.device != x.device:
        raise ValueError(
            f"the prior returned {denoised.dtype} {tuple(denoised.shape)} on {denoised.device} "
            f"for {x.dtype} {tuple(x.shape)} on {x.device}: it must keep shape, dtype and device"
        )
    if not is_finite(denoised):
        raise PriorFailed(f"the prior returned NaN or Inf at {place}, sigma = {sigma:.4g}: sampling stopped")
    return denoised


def is_finite(x: Tensor) -> bool:
    """Whether no entry is NaN or Inf: one pass without a temporary, for it is asked after every call."""
    flat = x.reshape(-1)
    return math.isfinite(flat.dot(flat)) or bool(
        flat.isfinite().all()
    )  # squares may be too large where entries are not
