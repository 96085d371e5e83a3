"""The figures of docs/method.md that follow from formulas or take seconds: `python docs/figures/method.py`."""

from __future__ import annotations

import math

import numpy as np
import torch
from drawing import BLUE, GREEN, GREY, ORANGE, plt, save_figure
from matplotlib.axes import Axes

import snips
from snips.samplers.conditional import Coordinates
from snips.samplers.guidance import Photographs
from snips.samplers.predictor_corrector import chosen_sigmas
from snips.streams import Chain

SHAPE = (1, 16, 16)


def coordinates() -> None:
    """Some right singular vectors of a blur, and the singular values of four problems."""
    figure, axes = plt.subplot_mosaic(
        [["a", "b", "c", "d", "s", "s"]], figsize=(8.4, 2.3), width_ratios=[1, 1, 1, 1, 1.5, 1.5]
    )
    blur = snips.make_operator("deblur_uniform", SHAPE)
    order = blur.singular_values.expand(SHAPE).flatten().argsort(descending=True)
    for name, rank in zip("abcd", (0, 12, 60, 200), strict=True):
        unit = torch.zeros(1, 256)
        unit[0, order[rank]] = 1
        value = blur.singular_values.expand(SHAPE).flatten()[order[rank]]
        picture = blur.V(unit.reshape(1, *SHAPE))[0, 0]
        axes[name].imshow(picture, cmap="RdBu", vmin=-picture.abs().max(), vmax=picture.abs().max())
        axes[name].set(xticks=[], yticks=[], title=f"s = {value:.2f}")
    for problem, colour in zip(("deblur_uniform", "sr4", "inpaint", "cs4"), (BLUE, ORANGE, GREEN, GREY), strict=True):
        s = snips.make_operator(problem, SHAPE).singular_values.expand(SHAPE).flatten().sort(descending=True).values
        axes["s"].plot(np.arange(256) + 1, s, color=colour, label=problem)
    axes["s"].set(xlabel="coordinate, sorted for this plot only", ylabel="singular value s")
    axes["s"].legend(fontsize=7)
    save_figure(figure, "method/coordinates")


def brownian(variances: np.ndarray, seed: int) -> np.ndarray:
    """A Brownian path, as a function of its variance."""
    steps = np.sqrt(np.diff(variances, prepend=0)) * np.random.default_rng(seed).standard_normal(len(variances))
    return np.cumsum(steps)


def carving() -> None:
    """All noise on one coordinate as one Brownian path: y / s is a point on it."""
    measured, x, path = 1.0, 0.4, np.linspace(0, 2.5, 300)
    at_y = int(np.searchsorted(path, measured))
    free = brownian(path, 26)
    figure, (one, many) = plt.subplots(1, 2, figsize=(8.4, 2.9), sharey=True)
    y = x + free[at_y]
    one.plot(path, x + free, color=BLUE, linewidth=0.8)
    one.annotate("clean x", (0, x), (0.05, x + 2.6), arrowprops={"arrowstyle": "->"})
    one.annotate("measured y / s", (measured, y), (1.15, y + 1.5), arrowprops={"arrowstyle": "->"})
    one.plot([0, measured], [x, y], "o", color=ORANGE)
    one.set(
        xlabel="noise variance, in units of (sigma_0 / s)²", ylabel="coordinate", title="one path: x plus growing noise"
    )
    for seed in range(40):
        noise = brownian(path, 100 + seed)
        bridge = x + noise - path / measured * noise[at_y] + path / measured * (y - x)
        many.plot(
            path,
            np.where(path <= measured, bridge, y + noise - noise[at_y]),
            color=BLUE,
            linewidth=0.3,
            alpha=0.5,
            rasterized=True,
        )
    spread = np.sqrt(np.where(path <= measured, path * (measured - path) / measured, path - measured))
    mean = np.where(path <= measured, x + path / measured * (y - x), y)
    many.plot(path, mean, color="black", linewidth=1)
    for sign in (-2, 2):
        many.plot(path, mean + sign * spread, color="black", linewidth=0.8, linestyle="--")
    many.plot([0, measured], [x, y], "o", color=ORANGE)
    many.set(xlabel="noise variance", title="all paths that agree with x and y: mean, ± 2 sqrt(A)")
    save_figure(figure, "method/carving")


def level_curves(s: float, sigma_0: float, sigmas: np.ndarray) -> tuple[list[float], list[float]]:
    """q and A / sigma^2 of one singular value as the samplers compute them."""
    operator = snips.make_operator("matrix", (1, 1, 1), matrix=torch.tensor([[s]]))
    problem = snips.InverseProblem(operator, torch.zeros(1, *operator.measurement_shape), sigma_0)
    found = Coordinates(problem, [Chain(0, 0)])
    levels = [found.at(float(sigma)) for sigma in sigmas]
    return [float(level.q) for level in levels], [float(level.variance) / level.sigma**2 for level in levels]


def regimes() -> None:
    """What share of a coordinate y decides, and the step size, at each noise level."""
    sigmas, sigma_0 = np.geomspace(0.005, 10, 400), 0.1
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 2.7))
    for s, colour in ((1.0, BLUE), (0.25, ORANGE), (0.0, GREEN)):
        q, step = level_curves(s, sigma_0, sigmas)
        left.semilogx(sigmas, q, color=colour, label=f"s = {s:g}")
        right.semilogx(sigmas, step, color=colour)
        if s > 0:
            right.axvline(sigma_0 / s, color=colour, linestyle=":", linewidth=0.8)
            left.axvline(sigma_0 / s, color=colour, linestyle=":", linewidth=0.8)
    left.set(xlabel="noise level sigma (falls from right to left)", ylabel="q: the part y decides")
    right.set(xlabel="noise level sigma", ylabel="A / sigma²: the step size")
    left.legend(title="sigma_0 = 0.1")
    save_figure(figure, "method/regimes")


def newton() -> None:
    """Equal steps are too large where s sigma is near sigma_0; measured with the two step rules of `langevin`."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 2.7))
    r, c = np.geomspace(0.05, 20, 801), 0.1
    room = np.abs(1 - np.minimum(r, 1 / r) ** 2)
    left.loglog(r, c / np.maximum(room, 1e-4), color=ORANGE, label="equal: c sigma² / A")
    left.axhline(c, color=BLUE, label="Newton: c")
    left.axhline(2, color=GREY, linestyle=":", label="above, a chain diverges")
    left.set(xlabel="r = s sigma / sigma_0", ylabel="step / A", ylim=(0.05, 50))
    left.legend(fontsize=7)
    draw_spreads(right, c)
    save_figure(figure, "method/newton")


def draw_spreads(axis: Axes, c: float) -> None:
    """The spread of samples over the exact posterior's, for a Gaussian prior and a blur."""
    prior = snips.StationaryGaussian.natural(SHAPE)
    operator = snips.make_operator("deblur_uniform", SHAPE)
    problem = snips.InverseProblem.simulate(operator, prior.sample(1, seed=0), 0.05, seed=1)
    exact = operator.Vt(prior.posterior(problem).sample(400, seed=2)).std(0).flatten()
    s = operator.singular_values.expand(SHAPE).flatten()
    sigmas = snips.schedules.geometric(20, 0.01, 60)
    for step, colour in (("uniform", ORANGE), ("newton", BLUE)):
        drawn = snips.samplers.langevin(problem, prior, sigmas=sigmas, c=c, tau=5, samples=200, seed=3, step=step)
        ratio = operator.Vt(drawn[:, 0]).std(0).flatten() / exact
        axis.loglog(
            s.clamp(min=1e-3), ratio, ".", markersize=3, color=colour, label={"uniform": "equal"}.get(step, "Newton")
        )
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set(xlabel="singular value s", ylabel="std / exact std", title="blur, Gaussian prior, 300 calls")
    axis.legend(fontsize=7)


def corrections() -> None:
    """The stationary variance of large steps, with fresh noise and with shared halves, for a Gaussian target."""
    steps = np.linspace(0.02, 1.0, 25)
    fresh, shared = zip(*(chain_variances(float(c)) for c in steps), strict=True)
    figure, axis = plt.subplots(figsize=(4.6, 2.7))
    axis.plot(steps, 2 / (2 - steps), color=GREY, linewidth=0.8, label="2 / (2 - c)")
    axis.plot(steps, fresh, ".", color=ORANGE, label="fresh noise in each step")
    axis.plot(steps, shared, ".", color=BLUE, label="half of it shared with the next")
    axis.set(xlabel="step size c", ylabel="variance / exact variance", ylim=(0.9, 2.1))
    axis.legend(fontsize=7)
    save_figure(figure, "method/corrections")


def chain_variances(c: float, chains: int = 20_000) -> tuple[float, float]:
    """After many steps towards N(0, 1), started exactly; standard error of each value: about 1 %."""
    random = torch.Generator().manual_seed(0)
    fresh, noise = (torch.randn(chains, generator=random, dtype=torch.float64) for _ in range(2))
    shared = math.sqrt(c / 2) * noise + math.sqrt(1 - c / 2) * fresh  # holds its half of the noise, and has variance 1
    for _ in range(int(20 / c)):
        following = torch.randn(chains, generator=random, dtype=torch.float64)
        fresh = fresh - c * fresh + math.sqrt(2 * c) * following
        shared = shared - c * shared + math.sqrt(c / 2) * (noise + following)
        noise = following
    return float(fresh.var()), float(shared.var())


def plan() -> None:
    """The noise level of each call of the fast sampler, for a noisy and a precise measurement."""
    figure, axis = plt.subplots(figsize=(5.6, 2.9))
    operator = snips.make_operator("deblur_uniform", (3, 64, 64))  # its s_max is 1
    for sigma_0, colour in ((0.1, BLUE), (0.01, ORANGE)):
        problem = snips.InverseProblem.simulate(operator, torch.full((1, 3, 64, 64), 0.5), sigma_0, seed=0)
        levels = chosen_sigmas(Coordinates(problem, [Chain(0, 0)]), Photographs(operator), 100)
        repeats = [i for i in range(1, 100) if levels[i] == levels[i - 1]]
        axis.semilogy(levels, color=colour, label=f"sigma_0 = {sigma_0}")
        axis.semilogy(repeats, [levels[i] for i in repeats], ".", color=colour)
        axis.axhline(sigma_0, color=colour, linestyle=":", linewidth=1)
    axis.set(xlabel="call of the denoiser", ylabel="noise level sigma")
    axis.legend(fontsize=7)
    save_figure(figure, "method/plan")


if __name__ == "__main__":
    for draw in (coordinates, carving, regimes, newton, corrections, plan):
        draw()
