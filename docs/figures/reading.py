"""The figures of docs/reading_results.md: `python docs/figures/reading.py`. A Gaussian prior, so that all is known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from drawing import BLUE, GREY, ORANGE, plt, save_figure, save_values
from matplotlib.axes import Axes

import snips
from snips.metrics import faithfulness

SHAPE, SIGMA_0 = (1, 32, 32), 0.05
COMMAND = "python docs/figures/reading.py"


def posed(images: int) -> tuple[snips.InverseProblem, snips.StationaryGaussian]:
    prior = snips.StationaryGaussian.natural(SHAPE)
    seen = torch.ones(32, 32, dtype=torch.bool)
    seen[10:22, 10:22] = False
    operator = snips.make_operator("inpaint", SHAPE, mask=seen)
    return snips.InverseProblem.simulate(operator, prior.sample(images, seed=0), SIGMA_0, seed=1), prior


def uncertainty() -> None:
    """Standard deviations against the errors of the mean, pixel by pixel, over 20 images."""
    problem, prior = posed(images=20)
    result = snips.restore(problem, prior, samples=16, nfe=60)
    assert problem.truth is not None
    std, error = result.std.flatten().numpy(), (result.mean - problem.truth).flatten().abs().numpy()
    edges = np.quantile(std, np.linspace(0, 1, 13))
    groups = [(std >= low) & (std <= high) for low, high in pairwise(edges)]
    said = [float(np.sqrt((std[group] ** 2).mean())) for group in groups]
    found = [float(np.sqrt((error[group] ** 2).mean())) for group in groups]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.0))
    picture = left.imshow(result.std[0, 0], cmap="viridis")
    figure.colorbar(picture, ax=left)
    left.set(xticks=[], yticks=[], title="std of a pixel: a hole is hidden")
    right.plot([0, max(said)], [0, max(said)], color=GREY, linewidth=0.8)
    right.plot(said, found, "o-", color=BLUE)
    right.set(xlabel="std of the samples", ylabel="error of their mean (rms)", title="pixels in groups of equal std")
    save_figure(figure, "reading/uncertainty")
    save_values("reading_uncertainty", COMMAND, {"std": said, "rms_error": found})


def verdicts() -> None:
    """Residuals of samples for the right noise, for too little and too much, and of an image that is too smooth."""
    prior = snips.StationaryGaussian.natural(SHAPE)
    blur = snips.make_operator("deblur_uniform", SHAPE)
    problem = snips.InverseProblem.simulate(blur, prior.sample(1, seed=3), SIGMA_0, seed=1)
    smooth = torch.nn.functional.avg_pool2d(problem.y, 7, stride=1, padding=3, count_include_pad=False)
    given = {"a sample": 1.0, "sigma_0 said to be a third": 1 / 3, "sigma_0 said to be threefold": 3.0}
    cases = {name: sampled(problem, prior, factor) for name, factor in given.items()}
    cases["the measurement, smoothed"] = (problem, smooth[None])
    figure, axes = plt.subplots(1, 4, figsize=(9.6, 2.5), sharey=True)
    stored = {name: draw_residual(axis, name, *case) for axis, (name, case) in zip(axes, cases.items(), strict=True)}
    axes[0].set(ylabel="density")
    save_figure(figure, "reading/verdicts")
    save_values("reading_verdicts", COMMAND, stored)


def sampled(
    problem: snips.InverseProblem, prior: snips.Prior, factor: float
) -> tuple[snips.InverseProblem, torch.Tensor]:
    """One sample for someone who thinks that the noise is stronger by a factor; with the problem as they see it."""
    believed = snips.InverseProblem(problem.operator, problem.y, factor * problem.sigma_0)
    return believed, snips.restore(believed, prior, samples=1, nfe=60).samples


def draw_residual(axis: Axes, name: str, problem: snips.InverseProblem, x: torch.Tensor) -> dict[str, float | bool]:
    """The histogram of y - H x over that of the noise, with the verdict; x is (1, 1, C, H, W)."""
    test = faithfulness(problem, x)
    figures = (test.std_ratio, test.p_value, test.rho, test.faithful)
    ratio, p, rho, faithful = (figure.item() for figure in figures if figure is not None)
    residual = (problem.y - problem.operator(x[0])).flatten() / problem.sigma_0
    grid, edges = np.linspace(-4, 4, 200), np.linspace(-4, 4, 41)
    axis.hist(residual.numpy(), bins=edges.tolist(), density=True, color=BLUE if faithful else ORANGE, alpha=0.6)
    axis.plot(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), color=GREY)
    axis.set_title(f"{name}:\n{'faithful' if faithful else 'not faithful'}", fontsize=9)
    axis.set_xlabel(f"residual / sigma_0\nratio {ratio:.2f}, p {p:.2f}, rho {rho:.2f}")
    return {"std_ratio": ratio, "p_value": p, "rho": rho, "faithful": bool(faithful)}


if __name__ == "__main__":
    uncertainty()
    verdicts()
