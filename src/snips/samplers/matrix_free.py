"""Sampling without an SVD: the levels and corrections of the fast sampler, by products with H and H^T alone.

Above sigma_0 / s_max, in place of hidden coordinates, the clean image given the noisy one x and y is drawn under the
model N(D, C) of `guidance`, by perturbing and solving: with c ~ N(D, C) and z ~ N(0, sigma_0^2 I),

    x^ = c + C H^T (H C H^T + sigma_0^2 I)^-1 (y + z - H c),      by conjugate gradients.

Then the next noisy image follows from x^ and x as in ancestral sampling; at a repeated level it is x^ + sigma n.

Below, sigma s_max < sigma_0, the annealing noise is carved from the measurement noise as in the fast sampler. Its mean
and variance need no coordinates any more: with t = (sigma / sigma_0)^2 and G = H^T H

    m = D + t H^T (y - H D),      A = sigma^2 (I - t G),

and a root of I - t G is a short Chebyshev series in G. These levels target the exact posterior. Where none of them is
corrected any more, the flow needs no root: A' - k^2 A = sigma'^2 (t - t') G for k = sigma' / sigma.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.names import check_switch
from snips.operators.base import LinearOperator
from snips.priors.base import Prior
from snips.samplers.base import Call, OnStep, StepInfo, denoise_in_turn, repeats, run
from snips.samplers.conditional import believable_noise
from snips.samplers.guidance import SUREST, Photographs, spread_given_noisy
from snips.samplers.multistep import STEPS_VERSION, flows, in_the_middle
from snips.samplers.states import State, Stored, own_state, remembered, run_mark
from snips.schedules import checked_sigmas, noise_plan
from snips.solvers import Apply, conjugate_gradients
from snips.streams import Chain, Streams

CG_STEPS, CG_TOLERANCE = 40, 1e-3  # of each draw; the noise of the level hides what is left, but for the last
MOST_BELIEVED = 100.0  # y is believed to sigma s_max / MOST_BELIEVED at most: better is not solvable in so few steps
TERMS = 20  # of the Chebyshev series


def matrix_free(
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
    """Posterior samples for operators without an SVD -> (K, B, C, H, W); works for all others as well.

    Args: as in `fast`; with guided=False the draws know nothing of photographs, C = sigma^2 I.

    Each call of the denoiser goes with up to 40 products with H and H^T.
    """

    def steps(chains: Sequence[Chain], resume: Stored | None) -> Iterator[StepInfo]:
        return matrix_free_steps(
            problem, prior, chains, nfe=nfe, seed=seed, guided=guided, sigmas=sigmas, resume=resume
        )

    return run(steps, problem, samples, chunk, on_step, resume)


def matrix_free_steps(
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
    """The sampler as a generator: yields after each call, and goes on from the stored state `resume`."""
    check_switch("guided", guided)
    law = Law(problem, chains, guided)
    plan = chosen_sigmas(law, nfe) if sigmas is None else checked_sigmas(sigmas)
    mark = run_mark("matrix_free", plan, problem, seed=seed, guided=bool(guided), steps=STEPS_VERSION)
    state = _start(law, plan[0], Streams(seed, chains), repeats(plan, 0), own_state(resume, mark))
    state.mark = mark
    for i, sigma in list(enumerate(plan))[state.step :]:
        denoised = denoise_in_turn(prior, state.x, sigma, Call(plan, i))
        if i + 1 == len(plan):
            state.x = law.draw(state.x, denoised, sigma, state.streams)
        elif repeats(plan, i):
            state.x = correct(law, sigma, denoised, state)
        elif flows(plan, i, law.shown):
            middle = in_the_middle(denoised, state, plan, i, law.shown)
            state.x = flow(law, sigma, plan[i + 1], middle, state)
            state.memory = denoised.clone()  # a caller may change the one that it is shown
        else:
            state.x = predict(law, sigma, plan[i + 1], denoised, state, corrected=repeats(plan, i + 1))
        state.x = state.x.contiguous()
        state.step += 1
        yield StepInfo(state.step, len(plan), sigma, denoised, state)


class Law:
    """The law of images given y at each noise level, by products with H and H^T."""

    def __init__(self, problem: InverseProblem, chains: Sequence[Chain], guided: bool = True) -> None:
        self.operator: LinearOperator = problem.operator
        self.y = problem.y.detach()[[chain.image - problem.first_image for chain in chains]]
        self.largest = self.operator.largest()
        self.sigma_0 = believable_noise(problem, self.largest) or 1.0  # 0 only where H is: then y tells nothing anyway
        self.model, self.guided = Photographs(self.operator), guided

    def shown(self, sigma: float) -> bool:
        """Whether the noise is so small that it fits into the measurement's: nothing is hidden."""
        return sigma * self.largest < 0.99 * self.sigma_0

    def gram(self, x: Tensor) -> Tensor:
        """H^T H x."""
        return self.operator.adjoint(self.operator(x))

    def average(self) -> float:
        """Roughly the mean of H^T H's eigenvalues: |H x|^2 / |x|^2 for noise x."""
        x = torch.randn(1, *self.operator.image_shape, generator=torch.Generator().manual_seed(0)).to(self.y)
        return float(self.operator(x).square().sum() / x.square().sum())

    def spread(self, sigma: float, x: Tensor | None = None, denoised: Tensor | None = None) -> Tensor:
        """C^1/2 of each cosine, fitted to a noisy image and the denoised one where given; without the model, sigma."""
        if not self.guided:
            return torch.full_like(self.model.variances, sigma)
        fitted = self.model.variances if x is None or denoised is None else self.model.fitted(x, denoised, sigma)
        return spread_given_noisy(fitted, sigma)

    def draw(self, x: Tensor, denoised: Tensor, sigma: float, streams: Streams) -> Tensor:
        """x^ of N(D, C), and where y tells more than the noisy image x does, given y."""
        spread = self.spread(sigma, x, denoised)
        drawn = denoised + self.model.image(spread * streams.normal(denoised))
        if self.shown(sigma):
            return drawn
        return self.conditioned(drawn, self.y + self.believed(sigma) * streams.normal(self.y), sigma, spread)

    def believed(self, sigma: float) -> float:
        """The noise level of y that the solves work with."""
        return max(self.sigma_0, sigma * self.largest / MOST_BELIEVED)

    def conditioned(self, x: Tensor, y: Tensor, sigma: float, spread: Tensor) -> Tensor:
        """x + R u with (I + R^T G R / s^2) u = R^T H^T (y - H x) / s^2, R R^T = C, s the noise level of y."""
        precision = self.believed(sigma) ** -2

        def R(u: Tensor) -> Tensor:
            return self.model.image(spread * u)

        def Rt(x: Tensor) -> Tensor:
            return spread * self.model.cosines(x)

        wanted = precision * Rt(self.operator.adjoint(y - self.operator(x)))
        return x + R(solve(lambda u: u + precision * Rt(self.gram(R(u))), wanted))

    def mean(self, x: Tensor, sigma: float) -> Tensor:
        """m = x + t H^T (y - H x), where nothing is hidden."""
        return x + (sigma / self.sigma_0) ** 2 * self.operator.adjoint(self.y - self.operator(x))

    def root(self, alpha: float, beta: float, noise: Tensor) -> Tensor:
        """sqrt(alpha I - beta G) noise, by a Chebyshev series in G on [0, s_max^2]; beta s_max^2 < alpha."""
        half = self.largest**2 / 2
        if abs(beta) * half < 1e-12 * alpha:
            return math.sqrt(alpha) * noise
        nodes = np.cos(np.pi * (np.arange(TERMS + 1) + 0.5) / (TERMS + 1))
        fitted = np.polynomial.chebyshev.chebfit(nodes, np.sqrt(alpha - beta * half * (nodes + 1)), TERMS).tolist()
        previous, current = noise, self.gram(noise) / half - noise
        out = fitted[0] * previous + fitted[1] * current
        for coefficient in fitted[2:]:
            previous, current = current, 2 * (self.gram(current) / half - current) - previous
            out = out + coefficient * current
        return out


def planned_sigmas(problem: InverseProblem, *, nfe: int = 100, sigmas: Tensor | None = None, **_: Any) -> list[float]:
    """The noise level of each call of `matrix_free` with these options."""
    return chosen_sigmas(Law(problem[0], []), nfe) if sigmas is None else checked_sigmas(sigmas)


def chosen_sigmas(law: Law, nfe: int) -> list[float]:
    """The plan of the fast sampler."""
    precision = max(law.sigma_0, SUREST * law.largest) ** -2
    spread = law.model.open_spread(lambda x: precision * law.gram(x), precision * law.average())
    return noise_plan(spread, law.sigma_0 / law.largest if law.largest > 0 else math.inf, nfe)


def solve(apply: Apply, b: Tensor) -> Tensor:
    return conjugate_gradients(apply, b, steps=CG_STEPS, tolerance=CG_TOLERANCE)


def correct(law: Law, sigma: float, denoised: Tensor, state: State) -> Tensor:
    """Another noisy image of the same level."""
    if not law.shown(sigma):
        return law.draw(state.x, denoised, sigma, state.streams) + sigma * state.streams.normal(denoised)
    shared, state.memory = remembered(state), state.streams.normal(denoised)
    t = (sigma / law.sigma_0) ** 2
    return law.mean(denoised, sigma) + law.root(sigma**2 / 2, t * sigma**2 / 2, shared + state.memory)


def predict(law: Law, sigma: float, following: float, denoised: Tensor, state: State, corrected: bool) -> Tensor:
    """The next level from x^ and x: a bridge between them, or the law given x^ where the two levels' laws differ."""
    drawn = law.draw(state.x, denoised, sigma, state.streams)
    ratio, state.memory = (following / sigma) ** 2, None
    if not law.shown(following):
        spread = following * math.sqrt(1 - ratio)
        return drawn + ratio * (state.x - drawn) + spread * state.streams.normal(drawn)
    # A = sigma^2 (I - t G), of which a share a^2 = A' / 2 is kept as the noise that a correction uses again
    kept = 0.5 if corrected else 0.0
    k = min(ratio, 0.9 * math.sqrt((1 - kept) * ratio)) if law.shown(sigma) else 0.0  # room for a smooth root
    t, t_next = ((level / law.sigma_0) ** 2 for level in (sigma, following))
    alpha = (1 - kept) * following**2 - k**2 * sigma**2
    beta = (1 - kept) * following**2 * t_next - k**2 * sigma**2 * t
    moved = law.mean(drawn, following) + law.root(alpha, beta, state.streams.normal(drawn))
    if k > 0:
        moved = moved + k * (state.x - law.mean(drawn, sigma))
    if not corrected:
        return moved
    state.memory = state.streams.normal(drawn)
    return moved + law.root(kept * following**2, kept * following**2 * t_next, state.memory)


def flow(law: Law, sigma: float, following: float, denoised: Tensor, state: State) -> Tensor:
    """m' + k (x - m) + sigma' sqrt(t - t') H^T z with k = sigma' / sigma, where nothing is hidden."""
    k, t, t_next = following / sigma, (sigma / law.sigma_0) ** 2, (following / law.sigma_0) ** 2
    residual, noise = law.y - law.operator(denoised), state.streams.normal(law.y)
    told = (t_next - k * t) * residual + following * math.sqrt(t - t_next) * noise
    return denoised + k * (state.x - denoised) + law.operator.adjoint(told)


def _start(law: Law, sigma: float, streams: Streams, corrected: bool, resume: Stored | None) -> State:
    """A grey image for D at the first level, or where an earlier run stopped."""
    grey = law.y.new_full((len(law.y), *law.operator.image_shape), 0.5)
    if resume is not None:
        return State.from_tensors(resume, streams, like=grey)
    if not law.shown(sigma):
        x = law.conditioned(grey, law.y, sigma, law.spread(sigma))
        return State(0, x + sigma * streams.normal(grey), streams)
    memory, drawn = streams.normal(grey) if corrected else None, streams.normal(grey)
    noise = drawn if memory is None else (drawn + memory) / math.sqrt(2)
    x = law.mean(grey, sigma) + law.root(sigma**2, (sigma / law.sigma_0) ** 2 * sigma**2, noise)
    return State(0, x, streams, memory)
