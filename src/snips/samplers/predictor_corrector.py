"""The fast sampler: few noise levels, a predictor between them, large corrections that keep the variance right.

With q, m and A of `conditional.Level` (r = s sigma / sigma_0, q = min(r^2, 1), D the denoised image):

    m = (1 - q) D_bar + q y_bar / s,      A = sigma^2 (1 - q), or sigma^2 (1 - r^-2) where r >= 1.

Correction at one level: the paper's Newton step with two half noises, one of them shared with the next step
(Leimkuhler and Matthews 2013), which leaves no bias of the variance for Gaussian targets at any step size c,

    x_bar <- x_bar + c (m - x_bar) + a (z_k + z_k+1),      a^2 = c A / 2.

Prediction of the next level, marked ':

    x_bar' = m' + k (x_bar - m) + sqrt(A' - k^2 A) z,      k = min(sigma'^2 / sigma^2, A' / A),

and k = 0 where s sigma crosses sigma_0. For s = 0 this is ancestral sampling, for r >= 1 a Brownian bridge to y_bar / s. Where
corrections follow, k is small enough that a z_0 is a part of the prediction's noise: z_0 is the half noise that the first
correction shares with its past. Without that link the first correction would shrink the variance.

While coordinates are hidden (r > 1), D is moved towards y by `guidance.Guide`. Once none is, x is independent of y given
the noisy image, so the corrections converge to the exact posterior and the last D is the sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from snips.priors.base import Prior
from snips.problems import InverseProblem
from snips.samplers.base import OnStep, State, StepInfo, denoise, run
from snips.samplers.conditional import Coordinates, Level
from snips.samplers.guidance import Guide, Photographs
from snips.schedules import checked_sigmas, FEWEST_CALLS, noise_plan
from snips.streams import Chain, Streams

STEP_SIZE = 0.7  # c


def fast(
    problem: InverseProblem,
    prior: Prior,
    *,
    nfe: int = 100,
    samples: int = 8,
    seed: int = 0,
    sigmas: Tensor | None = None,
    chunk: int | None = None,
    on_step: OnStep | None = None,
) -> Tensor:
    """Posterior samples with at most `nfe` calls of the denoiser for each -> (K, B, C, H, W).

    Args:
        nfe: the number of calls; the noise levels are chosen from it, the operator and sigma_0.
        samples, seed: K samples for each image; sample k is the same whatever K and the batch are.
        sigmas: the noise level of each call, instead of `nfe`: repeat a level to correct there.
        chunk: how many chains go through the denoiser at once; all by default.
        on_step: called after each step with a `StepInfo`.
    """

    def steps(chains: Sequence[Chain]) -> Iterator[StepInfo]:
        return fast_steps(problem, prior, chains, nfe=nfe, seed=seed, sigmas=sigmas)

    return run(steps, problem, samples, chunk, on_step)


def fast_steps(
    problem: InverseProblem,
    prior: Prior,
    chains: Sequence[Chain],
    *,
    nfe: int = 100,
    seed: int = 0,
    sigmas: Tensor | None = None,
    resume: dict[str, Tensor] | None = None,
) -> Iterator[StepInfo]:
    """The fast sampler as a generator: yields after each call, and goes on from the stored state `resume`."""
    coordinates = Coordinates(problem, chains)
    H, model = problem.operator, Photographs(problem.operator)
    guide = Guide(coordinates, model)
    plan = chosen_sigmas(coordinates, model, nfe) if sigmas is None else checked_sigmas(sigmas)
    state = _start(coordinates, guide, plan, Streams(seed, chains), resume)
    for i in range(state.step, len(plan)):
        level = coordinates.at(plan[i])
        denoised = denoise(prior, state.x, level.sigma, i + 1)
        x_bar = H.Vt(state.x)
        denoised_bar = guide(level, H.Vt(denoised), x_bar)
        if i + 1 == len(plan):
            # nothing hidden: E[x | noisy x, y] = D. Else y_bar / s has less noise than the last level
            x_bar = torch.where(level.decided, level.pull, denoised_bar)
        elif plan[i + 1] == plan[i]:
            x_bar = correct(coordinates, level, x_bar, level.mean(denoised_bar), state)
        else:
            corrected = plan[i + 1] in plan[i + 2 : i + 3]
            x_bar = predict(coordinates, level, coordinates.at(plan[i + 1]), x_bar, denoised_bar, state, corrected)
        state.x = H.V(x_bar)
        state.step += 1
        yield StepInfo(state.step, len(plan), level.sigma, denoised, state)


def chosen_sigmas(coordinates: Coordinates, model: Photographs, nfe: int) -> list[float]:
    """The noise level of each call: from far above what y leaves open to well below its noise."""
    if nfe < FEWEST_CALLS:
        raise ValueError(f"the fast sampler needs at least nfe={FEWEST_CALLS} calls of the denoiser, not {nfe}")
    s, sigma_0 = coordinates.s, coordinates.sigma_0
    spread = model.hidden_spread(coordinates.operator, s, sigma_0)
    largest = float(s.max()) if s.numel() else 0.0
    return noise_plan(spread, sigma_0 / largest if largest > 0 else math.inf, nfe)


def correct(coordinates: Coordinates, level: Level, x_bar: Tensor, mean: Tensor, state: State) -> Tensor:
    """x_bar + c (m - x_bar) + a (z_k + z_k+1), where z_k is remembered."""
    noise = state.streams.normal(state.x)
    both = noise if state.memory is None else noise + state.memory
    state.memory = noise
    half = (STEP_SIZE / 2 * level.variance).sqrt()
    return torch.lerp(x_bar, mean, STEP_SIZE) + half * coordinates.white(both)


def predict(
    coordinates: Coordinates,
    level: Level,
    following: Level,
    x_bar: Tensor,
    denoised_bar: Tensor,
    state: State,
    corrected: bool,
) -> Tensor:
    """m' + k (x_bar - m) + sqrt(A' - k^2 A - a^2) w + a z_0; a = 0 where no correction follows."""
    A, A_next = level.variance, following.variance
    a2 = STEP_SIZE / 2 * A_next if corrected else torch.zeros_like(A_next)
    ratio = A_next / A.clamp(min=torch.finfo(A.dtype).tiny)
    k = ratio.clamp(max=(following.sigma / level.sigma) ** 2)
    k = torch.minimum(k, ((A_next - a2) / A.clamp(min=torch.finfo(A.dtype).tiny)).sqrt())
    k = torch.where(level.decided == following.decided, k, 0)
    spread = (A_next - k**2 * A - a2).clamp(min=0).sqrt()
    move = torch.addcmul(following.mean(denoised_bar), k, x_bar - level.mean(denoised_bar))
    move = move + spread * coordinates.white(state.streams.normal(state.x))
    if not corrected:
        state.memory = None
        return move
    state.memory = state.streams.normal(state.x)
    return move + a2.sqrt() * coordinates.white(state.memory)


def _start(
    coordinates: Coordinates, guide: Guide, plan: list[float], streams: Streams, resume: dict[str, Tensor] | None
) -> State:
    """The first level with a grey image for D, or where an earlier run stopped."""
    H, like = coordinates.operator, coordinates.y_bar.real
    if resume is not None:
        return State.from_tensors(resume, streams, like=like)
    grey = like.new_full((len(like), *H.image_shape), 0.5)
    level = coordinates.at(plan[0])
    noise = streams.normal(grey)
    white = coordinates.white(noise)
    x_bar = level.mean(H.Vt(grey)) + level.variance.sqrt() * white
    x_bar = level.mean(guide(level, H.Vt(grey), x_bar)) + level.variance.sqrt() * white
    return State(0, H.V(x_bar), streams)
