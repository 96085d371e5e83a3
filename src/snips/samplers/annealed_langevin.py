"""Algorithm 1 of the paper: annealed Langevin dynamics with Newton's step sizes in the SVD basis of H.

Kawar, Vaksman, Elad: SNIPS: Solving Noisy Inverse Problems Stochastically. NeurIPS 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.names import check_count
from snips.priors.base import Prior
from snips.samplers.base import Call, OnStep, StepInfo, denoise_in_turn, run
from snips.samplers.conditional import Coordinates, Level
from snips.samplers.states import State, Stored, own_state, run_mark
from snips.schedules import checked_sigmas, geometric
from snips.streams import Chain, Streams


@dataclass(frozen=True)
class LangevinPreset:
    """The paper's hyper-parameters for one data set (its appendix D)."""

    first: float  # sigma_1
    last: float  # sigma_L
    levels: int  # L
    c: float
    tau: int

    def options(self) -> dict[str, object]:
        """As arguments of `langevin`."""
        return {"sigmas": geometric(self.first, self.last, self.levels), "c": self.c, "tau": self.tau}


PRESETS = {
    "celeba": LangevinPreset(first=90, last=0.01, levels=500, c=0.033, tau=5),
    "lsun": LangevinPreset(first=190, last=0.01, levels=1086, c=0.018, tau=3),
}


def noise_of_states(sigmas: Tensor | list[float], c: float, tau: int) -> list[float]:
    """The standard deviation of the noise that x holds before each step, and after the last: L tau + 1 numbers.

    That of a coordinate that is not measured, where the denoiser knows its value: x += c (D - x) + sqrt(2 c) sigma z.
    Steps follow the falling sigma with some delay, so it is larger than sigma: by 6 % with the paper's settings.
    """
    variances = [1 / 12]  # of U[0, 1], where it starts
    for sigma in checked_sigmas(torch.as_tensor(sigmas)):
        for _ in range(tau):
            variances.append((1 - c) ** 2 * variances[-1] + 2 * c * sigma**2)
    return [math.sqrt(variance) for variance in variances]


def langevin(
    problem: InverseProblem,
    prior: Prior,
    *,
    sigmas: Tensor | None = None,
    c: float = PRESETS["celeba"].c,
    tau: int = PRESETS["celeba"].tau,
    samples: int = 8,
    seed: int = 0,
    step: str = "newton",
    actual_noise: bool = False,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    resume: Stored | None = None,
) -> Tensor:
    """Posterior samples by Algorithm 1 -> (K, B, C, H, W).

    Args:
        sigmas: falling noise levels; the paper's for CelebA where not given. `PRESETS` has both of the paper's sets.
        c, tau: the step size and the number of steps at each level.
        samples, seed: K samples for each image; sample k is the same whatever K and the batch are.
        step: "newton" (the paper's), or "uniform": steps c sigma^2 for every coordinate, as in its ablation.
        actual_noise: tell the denoiser `noise_of_states` instead of sigma. For networks that are told sigma and take
            every excess for texture; the paper's does not see sigma and judges the noise by itself.
        chunk: how many chains go through the denoiser at once; all by default.
        on_step: called after each step with a `StepInfo`.
        resume: where an earlier run with the same arguments stopped, see `base.run`.
    """

    def steps(chains: Sequence[Chain], resume: Stored | None) -> Iterator[StepInfo]:
        options = {"sigmas": sigmas, "c": c, "tau": tau, "step": step, "actual_noise": actual_noise}
        return langevin_steps(problem, prior, chains, seed=seed, resume=resume, **options)

    return run(steps, problem, samples, chunk, on_step, resume)


def langevin_steps(
    problem: InverseProblem,
    prior: Prior,
    chains: Sequence[Chain],
    *,
    sigmas: Tensor | None = None,
    c: float = PRESETS["celeba"].c,
    tau: int = PRESETS["celeba"].tau,
    seed: int = 0,
    step: str = "newton",
    actual_noise: bool = False,
    resume: Stored | None = None,
) -> Iterator[StepInfo]:
    """Algorithm 1 as a generator: yields after each step, and goes on from the stored state `resume`."""
    preset = PRESETS["celeba"]
    levels = checked_sigmas(geometric(preset.first, preset.last, preset.levels) if sigmas is None else sigmas)
    check_count("tau", tau)
    if not 0 < c < 2:
        raise ValueError(f"the step size c must lie between 0 and 2, but is {c}")
    if step not in STEPS:
        raise ValueError(f"unknown step {step!r}: choose one of {', '.join(STEPS)}")
    plan = [sigma for sigma in levels for _ in range(tau)]
    told = noise_of_states(levels, c, tau) if actual_noise else plan
    coordinates = Coordinates(problem, chains)
    mark = run_mark("langevin", plan, problem, seed=seed, c=c, tau=tau, step=step, actual_noise=bool(actual_noise))
    state = _start(problem, chains, seed, own_state(resume, mark))
    state.mark = mark
    for i in range(state.step // tau, len(levels)):
        move = STEPS[step](coordinates, coordinates.at(levels[i]), c)
        for _ in range(state.step % tau, tau):
            denoised = denoise_in_turn(prior, state.x, told[state.step], Call(plan, state.step))
            state.x = move(state.x, denoised, state.streams.normal(state.x)).contiguous()
            state.step += 1
            yield StepInfo(state.step, tau * len(levels), levels[i], denoised, state)


def _start(problem: InverseProblem, chains: Sequence[Chain], seed: int, resume: Stored | None) -> State:
    """x ~ U[0, 1], or where an earlier run stopped."""
    streams = Streams(seed, chains)
    if resume is not None:
        return State.from_tensors(resume, streams, like=problem.y)
    x = problem.y.new_empty(len(chains), *problem.operator.image_shape)
    return State(0, streams.uniform(x), streams)


Move = Callable[[Tensor, Tensor, Tensor], Tensor]  # x, denoised x, noise -> the next x


def newton_step(coordinates: Coordinates, level: Level, c: float) -> Move:
    """x_bar += c A d + sqrt(2 c A) z, where A d = m - x_bar: the step size cancels the score's denominator."""
    H = coordinates.operator
    offset, weight, spread = c * level.pull, c * (1 - level.q), (2 * c * level.variance).sqrt()  # once for each level

    def move(x: Tensor, denoised: Tensor, noise: Tensor) -> Tensor:
        added = torch.addcmul(offset, weight, H.Vt(denoised)).addcmul_(spread, coordinates.white(noise))
        return H.V(added).add_(x, alpha=1 - c)

    return move


def uniform_step(coordinates: Coordinates, level: Level, c: float) -> Move:
    """x_bar += alpha d + sqrt(2 alpha) z with alpha = c sigma^2 for every coordinate: the paper's ablation."""
    H, alpha = coordinates.operator, c * level.sigma**2
    regular = level.variance > 0

    def move(x: Tensor, denoised: Tensor, noise: Tensor) -> Tensor:
        denoised_bar, x_bar = H.Vt(denoised), H.Vt(x)
        score = (level.mean(denoised_bar) - x_bar) / torch.where(regular, level.variance, 1)
        score = torch.where(regular, score, (denoised_bar - x_bar) / level.sigma**2)
        return x + H.V(alpha * score) + math.sqrt(2 * alpha) * noise

    return move


STEPS = {"newton": newton_step, "uniform": uniform_step}
