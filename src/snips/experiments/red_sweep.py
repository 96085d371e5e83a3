"""RED's parameters for our denoiser: PSNR over its weight and over the noise level that its denoiser removes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from snips.experiments import datasets
from snips.experiments.base import Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.markdown import setting, table
from snips.experiments.published import RED
from snips.experiments.sampled import experiment_prior, image_key, prior_identity, simulated
from snips.files import read_json
from snips.metrics import lpips, perceptual_weights, psnr, ssim
from snips.priors import Prior
from snips.problems import InverseProblem
from snips.samplers import red_luminance
from snips.samplers.base import OnStep
from snips.samplers.red import DENOISER_SIGMA

FULL_IMAGES, QUICK_IMAGES = 4, 1
QUICK_ITERATIONS, QUICK_VALUES = 5, 2
METRICS = ("psnr", "lpips", "ssim")
WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # lambda sigma_0^2: the prior's weight over the measurement's
SIGMAS = (DENOISER_SIGMA, 0.006, 0.025, 0.05)


@dataclass(frozen=True)
class RedSetting:
    """The arguments of RED for one noise level."""

    weight: float  # for pixels in [0, 1]
    denoiser_sigma: float = DENOISER_SIGMA


def prepare(request: Request) -> Study:
    test = datasets.faces(request, request.images or request.choose(FULL_IMAGES, QUICK_IMAGES))
    prior = experiment_prior(request, "faces", test.images)
    values = request.choose(len(WEIGHTS), QUICK_VALUES)
    iterations = {sigma_0: request.choose(row.iterations, QUICK_ITERATIONS) for sigma_0, row in RED.items()}
    settings = {"prior": prior_identity(prior), "seed": request.seed, "iterations": list(iterations.values())}
    settings |= {"images": len(test.images), "lpips": perceptual_weights.available()}
    problems = {sigma_0: simulated("deblur_uniform", test.images, sigma_0, request.seed) for sigma_0 in RED}
    parts = [
        _part(problem, prior, RedSetting(weight / sigma_0**2, sigma), iterations[sigma_0])
        for sigma_0, problem in problems.items()
        for weight in (RED[sigma_0].weight * sigma_0**2, *WEIGHTS[:values])
        for sigma in SIGMAS[:values]
    ]

    def conclude(measured: list[Measured]) -> Outcome:
        rows = [m.facts for m in measured]
        best = [max((row for row in rows if row["sigma_0"] == s), key=lambda row: row["psnr"]) for s in RED]
        return Outcome({"prior": settings["prior"], "source": test.source, "sweep": rows, "best": best})

    return Study(settings, parts, conclude)


def _part(problem: InverseProblem, prior: Prior, chosen: RedSetting, iterations: int) -> Part:
    assert problem.truth is not None, "experiments know the truth"
    truth = problem.truth

    def compute(on_step: OnStep) -> Measured:
        x = red_luminance(problem, prior, iterations=iterations, **vars(chosen))
        facts = {"sigma_0": problem.sigma_0, "iterations": iterations, **vars(chosen)}
        return Measured({**facts, **compare(x, truth)})

    key = f"{problem.sigma_0:g}-{chosen.weight:.6g}-{chosen.denoiser_sigma:.4f}-{image_key(0, truth)}"
    label = f"sigma_0 = {problem.sigma_0:g}, lambda = {chosen.weight:.4g}, denoiser at {chosen.denoiser_sigma:.3g}"
    return Part(key, label, compute)


def compare(images: Tensor, truth: Tensor) -> dict[str, float | None]:
    """Means over images (N, C, H, W) beside their truth (N or 1, C, H, W); LPIPS is None without its weights."""
    truth = truth.expand_as(images)
    distance = lpips(images, truth).mean().item() if perceptual_weights.available() else None
    return {"psnr": psnr(images, truth).mean().item(), "lpips": distance, "ssim": ssim(images, truth).mean().item()}


def stored_best(result: Path, sigma_0: float, iterations: int, prior: dict[str, str]) -> RedSetting | None:
    """What an earlier sweep with the same prior and number of iterations found best, or None."""
    if not result.is_file():
        return None
    results = read_json(result)["results"]
    if results["prior"] != prior:
        return None
    for best in results["best"]:
        if (best["sigma_0"], best["iterations"]) == (sigma_0, iterations):
            return RedSetting(best["weight"], best["denoiser_sigma"])
    return None


def describe(results: dict[str, Any]) -> str:
    columns = ["σ₀", "λ", "denoiser's σ", "PSNR dB", "LPIPS"]
    best = "The best by PSNR:\n\n" + table(columns, [_cells(row) for row in results["best"]])
    note = "\nAll (the first λ at each σ₀ is the paper's, for pixels in [0, 1]):\n\n"
    return setting(results) + best + note + table(columns, [_cells(row) for row in results["sweep"]])


def _cells(row: dict[str, Any]) -> list[str]:
    distance = "-" if row["lpips"] is None else f"{row['lpips']:.4f}"
    sigma = f"{row['denoiser_sigma']:.4f}"
    return [f"{row['sigma_0']:g}", f"{row['weight']:.4g}", sigma, f"{row['psnr']:.2f}", distance]


RED_SWEEP = Experiment("RED's parameters for our denoiser", prepare, describe)
