"""The fast sampler: few noise levels, a predictor between them, large corrections that keep the variance right.

With q, m and A of `conditional.Level` (r = s sigma / sigma_0, q = min(r^2, 1), D the denoised image):

    m = (1 - q) D_bar + q y_bar / s,      A = sigma^2 (1 - q), or sigma^2 (1 - r^-2) where r >= 1.

Correction at one level: the paper's Newton step with c = 1 and two half noises, of which the next step shares one
(Leimkuhler and Matthews 2013). For Gaussian targets it leaves no bias of the variance, however large the step:

    x_bar <- m + a (z_k + z_k+1),      a^2 = A / 2.

Prediction of the next level, marked ', with some x^ in place of D in m and m':

    x_bar' = m' + k (x_bar - m) + sqrt(A' - k^2 A) z.

Given x^ = x and y this is exact for any k; for s = 0 and k = sigma'^2 / sigma^2 it is ancestral sampling, for r >= 1 a
Brownian bridge to y_bar / s. There are two such steps:

- While coordinates are hidden (r > 1) and where corrections follow, k = min(sigma'^2 / sigma^2, A' / A), and k = 0
  where s sigma crosses sigma_0. x^ is drawn around D by `guidance.Guide`, as its mean alone would lose variance in
  large steps; the guide also moves it towards y. Where corrections follow, k is so small that a z_0 fits into the
  prediction's noise: z_0 is the half noise that the first correction shares. A fresh one would shrink the variance.
- Below, the flow, unless its first step were very large: k = sigma' / sigma, for s = 0 the largest, which leaves no
  noise at all (DDIM). Then small steps are exact with D itself, and x^ = `in_the_middle`, which the call before tells,
  makes large ones more exact by an order. The noise that is left is that of what y tells:
  A' - k^2 A = sigma'^2 (q - q').

Once nothing is hidden, x is independent of y given the noisy image: corrections converge to its exact posterior, the
flow keeps it, and the sample is an x^ of the guide at the last, smallest level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.names import check_switch
from snips.priors.base import Prior
from snips.samplers.base import Call, OnStep, StepInfo, denoise_in_turn, repeats, run
from snips.samplers.conditional import Coordinates, Level
from snips.samplers.guidance import SHARPEST, SUREST, Guide, Photographs
from snips.samplers.multistep import STEPS_VERSION, flows, in_the_middle
from snips.samplers.states import State, Stored, own_state, remembered, run_mark
from snips.schedules import checked_sigmas, noise_plan
from snips.streams import Chain, Streams


def fast(
    problem: InverseProblem,
    prior: Prior,
    *,
    nfe: int = 100,
    samples: int = 8,
    seed: int = 0,
    guided: bool = True,
    sigmas: Tensor | None = None,
    chunk: int | None = None,
    on_step: OnStep | None = None,
    resume: Stored | None = None,
) -> Tensor:
    """Posterior samples with at most `nfe` calls of the denoiser for each -> (K, B, C, H, W).

    Args:
        nfe: the number of calls; the noise levels are chosen from it, the operator and sigma_0.
        samples, seed: K samples for each image; sample k is the same whatever K and the batch are.
        guided: carry y to unmeasured directions as photographs would; not for priors that are quite unlike them.
        sigmas: the noise level of each call, instead of `nfe`: repeat a level to correct there.
        chunk: how many chains go through the denoiser at once; all by default.
        on_step: called after each step with a `StepInfo`.
        resume: where an earlier run with the same arguments stopped, see `base.run`.
    """

    def steps(chains: Sequence[Chain], resume: Stored | None) -> Iterator[StepInfo]:
        return fast_steps(problem, prior, chains, nfe=nfe, seed=seed, guided=guided, sigmas=sigmas, resume=resume)

    return run(steps, problem, samples, chunk, on_step, resume)


def fast_steps(
    problem: InverseProblem,
    prior: Prior,
    chains: Sequence[Chain],
    *,
    nfe: int = 100,
    seed: int = 0,
    guided: bool = True,
    sigmas: Tensor | None = None,
    resume: Stored | None = None,
) -> Iterator[StepInfo]:
    """The fast sampler as a generator: yields after each call, and goes on from the stored state `resume`."""
    check_switch("guided", guided)
    coordinates, model = Coordinates(problem, chains), Photographs(problem.operator)
    plan = chosen_sigmas(coordinates, model, nfe) if sigmas is None else checked_sigmas(sigmas)

    def at(sigma: float) -> Guide:
        return Guide(coordinates, model, coordinates.at(sigma), guided)

    mark = run_mark("fast", plan, problem, seed=seed, guided=bool(guided), steps=STEPS_VERSION)
    state = _start(coordinates, at(plan[0]), Streams(seed, chains), repeats(plan, 0), own_state(resume, mark))
    state.mark = mark
    guide = at(plan[min(state.step, len(plan) - 1)])
    for i in range(state.step, len(plan)):
        level = guide.level
        denoised = denoise_in_turn(prior, state.x, level.sigma, Call(plan, i))
        if i + 1 == len(plan):
            x_bar = finish(coordinates, guide, denoised, state)
        elif repeats(plan, i):
            x_bar = correct(coordinates, level, guide.mean(state.x, denoised), state)
        elif flows(plan, i, coordinates.shown):
            guide = at(plan[i + 1])
            middle = in_the_middle(denoised, state, plan, i, coordinates.shown)
            x_bar = flow(coordinates, level, guide.level, middle, state)
            state.memory = denoised.clone()  # a caller may change the one that it is shown
        else:
            drawn_bar, guide = guide.draw(state.x, denoised, state.streams), at(plan[i + 1])
            x_bar = predict(coordinates, level, guide.level, drawn_bar, state, corrected=repeats(plan, i + 1))
        state.x = problem.operator.V(x_bar).contiguous()  # as a stored state is: strides may change the rounding
        state.step += 1
        yield StepInfo(state.step, len(plan), level.sigma, denoised, state)


def planned_sigmas(problem: InverseProblem, *, nfe: int = 100, sigmas: Tensor | None = None, **_: Any) -> list[float]:
    """The noise level of each call of `fast` with these options."""
    if sigmas is not None:
        return checked_sigmas(sigmas)
    return chosen_sigmas(Coordinates(problem[0], []), Photographs(problem.operator), nfe)


def chosen_sigmas(coordinates: Coordinates, model: Photographs, nfe: int) -> list[float]:
    """The noise level of each call: from far above what y leaves open to well below its noise."""
    H, s, sigma_0 = coordinates.operator, coordinates.s, coordinates.sigma_0
    precision = torch.where(s > 0, (s / max(sigma_0, SUREST * s.max())) ** 2, 0).to(model.variances)
    average = float(precision.expand(coordinates.y_bar.shape[1:]).mean())
    spread = model.open_spread(lambda x: H.V(precision * H.Vt(x)), average)
    largest = float(s.max()) if s.numel() else 0.0
    return noise_plan(spread, sigma_0 / largest if largest > 0 else math.inf, nfe)


def correct(coordinates: Coordinates, level: Level, denoised_bar: Tensor, state: State) -> Tensor:
    """m + a (z_k + z_k+1), where z_k is remembered."""
    shared, state.memory = remembered(state), state.streams.normal(state.x)
    return level.mean(denoised_bar).addcmul((level.variance / 2).sqrt(), coordinates.white(shared + state.memory))


def predict(
    coordinates: Coordinates,
    level: Level,
    following: Level,
    drawn_bar: Tensor,
    state: State,
    corrected: bool,
) -> Tensor:
    """m' + k (x_bar - m) + sqrt(A' - k^2 A - a^2) z + a z_0, with a = 0 where no correction follows."""
    A, A_next = level.variance.clamp(min=torch.finfo(level.variance.dtype).tiny), following.variance
    a2 = A_next / 2 if corrected else torch.zeros_like(A_next)
    k = (A_next / A).clamp(max=(following.sigma / level.sigma) ** 2).minimum(((A_next - a2) / A).sqrt())
    k = torch.where(level.hidden == following.hidden, k, 0)
    left = coordinates.operator.Vt(state.x) - level.mean(drawn_bar)
    move = torch.addcmul(following.mean(drawn_bar), k, left)
    spread = (A_next - k**2 * A - a2).clamp(min=0).sqrt()
    move = move.addcmul(spread, coordinates.white(state.streams.normal(state.x)))
    state.memory = state.streams.normal(state.x) if corrected else None
    return move if state.memory is None else move.addcmul(a2.sqrt(), coordinates.white(state.memory))


def flow(coordinates: Coordinates, level: Level, following: Level, denoised: Tensor, state: State) -> Tensor:
    """m' + k (x_bar - m) + sigma' sqrt(q - q') z with k = sigma' / sigma: what is not measured moves without noise."""
    H, k = coordinates.operator, following.sigma / level.sigma
    denoised_bar, noise = H.Vt(denoised), coordinates.white(state.streams.normal(state.x))
    move = following.mean(denoised_bar) + k * (H.Vt(state.x) - level.mean(denoised_bar))
    return move.addcmul(following.sigma * (level.q - following.q).sqrt(), noise)


def finish(coordinates: Coordinates, guide: Guide, denoised: Tensor, state: State) -> Tensor:
    """The clean image: x^; but y_bar / s, with the noise that it has, where y is far more precise than the last level.

    There x^, which trusts y no further than `SHARPEST`, would be less precise than y.
    """
    drawn_bar = guide.draw(state.x, denoised, state.streams, last=True)
    noise = coordinates.white(state.streams.normal(state.x))
    sure = guide.level.hidden & (SHARPEST * coordinates.spread <= guide.level.sigma)
    return torch.where(sure, torch.addcmul(guide.level.pull, coordinates.spread, noise), drawn_bar)


def _start(coordinates: Coordinates, guide: Guide, streams: Streams, corrected: bool, resume: Stored | None) -> State:
    """The first level with a grey image for D, or where an earlier run stopped."""
    H, like, level = coordinates.operator, coordinates.y_bar.real, guide.level
    if resume is not None:
        return State.from_tensors(resume, streams, like=like)
    grey = like.new_full((len(like), *H.image_shape), 0.5)
    memory = streams.normal(grey) if corrected else None
    drawn = streams.normal(grey)
    noise = level.variance.sqrt() * coordinates.white(drawn if memory is None else (drawn + memory) / math.sqrt(2))
    x = H.V(level.mean(H.Vt(grey)) + noise)
    return State(0, H.V(level.mean(guide.mean(x, grey, guide.model.variances)) + noise), streams, memory)
