"""What all samplers share: chains, resumable states, and the loop that drives them."""

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
from snips.priors.base import Prior
from snips.streams import Chain, Streams


@dataclass
class State:
    """Where a sampler stands between two steps: all that is needed to go on exactly as if it had not stopped."""

    step: int  # steps done
    x: Tensor  # (chains, C, H, W)
    streams: Streams
    memory: Tensor | None = None  # what a sampler carries over beside x, for example the previous noise

    def tensors(self) -> dict[str, Tensor]:
        """A copy that can be stored (safetensors) and given back as `resume`."""
        stored = {"step": torch.tensor(self.step), "x": self.x.clone(), "streams": self.streams.state()}
        return stored if self.memory is None else {**stored, "memory": self.memory.clone()}

    @classmethod
    def from_tensors(cls, stored: dict[str, Tensor], streams: Streams, like: Tensor) -> State:
        streams.restore(stored["streams"])
        memory = stored.get("memory")
        return cls(int(stored["step"]), stored["x"].to(like), streams, None if memory is None else memory.to(like))


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
Stored = dict[str, Tensor]  # a State as tensors; with the chains of earlier chunks, `finished`, a whole run
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
    _check_stored(stored, sum(map(len, finished)), parts)
    for index in range(math.ceil(sum(map(len, finished)) / chunk), len(parts)):
        finished.append(_run_part(steps(parts[index], stored or None), index, len(parts), on_step))
        stored = {}
    return torch.cat(finished).reshape(samples, len(problem), *problem.operator.image_shape)


def _check_stored(stored: Stored, finished: int, parts: list[list[Chain]]) -> None:
    """Whether a state is one of this run: as many chains, and no chunk that is half finished."""
    sizes = [len(part) for part in parts]
    done = math.ceil(finished / sizes[0])
    fits = finished == sum(sizes[:done]) and (not stored or done < len(sizes))
    if not fits or (stored and len(stored["x"]) != sizes[done]):
        raise ValueError(
            "the stored state is of another run: go on with as many samples, images and chains at a time as it had"
        )


def _run_part(steps: Iterator[StepInfo], index: int, parts: int, on_step: OnStep | None) -> Tensor:
    info = None
    for info in steps:
        if on_step is not None:
            done = index * info.total + info.step
            on_step(StepInfo(done, parts * info.total, info.sigma, info.denoised, info.state))
    if info is None:
        raise ValueError("the stored state has no steps left: it is that of a finished run, or of one with more calls")
    return info.state.x


def check_options(name: str, sampler: Callable[..., Tensor], options: Mapping[str, Any]) -> None:
    """Refuse what a sampler does not take, and say what it does."""
    parameters = inspect.signature(sampler).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    known = [option for option in parameters if option not in SHARED]
    for option in options:
        if option not in known:
            raise ValueError(unknown_name(f"option of the sampler {name}", option, known))


def denoise_in_turn(prior: Prior, x: Tensor, sigma: float, step: int) -> Tensor:
    """The call of step number `step`; of a `mirrored` prior every other one sees the mirror image.

    A network treats the two a little differently. In turn, these errors cancel over the steps instead of adding up.
    """
    if prior.mirrored and step % 2 == 0:
        return denoise(prior, x.flip(-1), sigma, step).flip(-1)
    return denoise(prior, x, sigma, step)


class PriorFailed(ValueError):
    """A prior returned what is no image, in the middle of a run."""


def denoise(prior: Prior, x: Tensor, sigma: float, step: int) -> Tensor:
    """One call of the prior, with what it returns checked."""
    with torch.no_grad():
        denoised = prior.denoise(x, sigma)
    if denoised.shape != x.shape or denoised.dtype != x.dtype or denoised.device != x.device:
        raise ValueError(
            f"the prior returned {denoised.dtype} {tuple(denoised.shape)} on {denoised.device} "
            f"for {x.dtype} {tuple(x.shape)} on {x.device}: it must keep shape, dtype and device"
        )
    if not is_finite(denoised):
        raise PriorFailed(f"the prior returned NaN or Inf in step {step} at sigma = {sigma:.4g}: sampling stopped")
    return denoised


def is_finite(x: Tensor) -> bool:
    """Whether no entry is NaN or Inf: one pass without a temporary, for it is asked after every call."""
    flat = x.reshape(-1)
    return math.isfinite(flat.dot(flat)) or bool(
        flat.isfinite().all()
    )  # squares may be too large where entries are not
