"""RED's parameters for our denoiser: PSNR over its weight, the noise level that its denoiser removes, and iterations.

They are chosen on validation images, so that the test images of `red` had no say in them.
"""

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
from snips.experiments.stored import stored_record
from snips.images import luminance
from snips.inverse_problem import InverseProblem
from snips.metrics import lpips, perceptual_weights, psnr, ssim
from snips.metrics.perceptual import lpips_ready
from snips.priors import Prior
from snips.samplers.base import OnStep
from snips.samplers.red import DENOISER_SIGMA, red_luminance_steps

FULL_IMAGES, QUICK_IMAGES = 4, 1
QUICK_ITERATIONS, QUICK_VALUES = 5, 2
METRICS = {"psnr": "PSNR dB", "psnr_luminance": "PSNR of the luminance dB", "lpips": "LPIPS", "ssim": "SSIM"}
CHOSEN_BY = "psnr_luminance"  # all that RED changes
WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # lambda sigma_0^2: the prior's weight over the measurement's
SIGMAS = (DENOISER_SIGMA, 0.006, 0.025, 0.05)
ITERATIONS = (25, 50, 100, 200, 400)


@dataclass(frozen=True)
class RedSetting:
    """The arguments of RED for one noise level."""

    weight: float  # for pixels in [0, 1]
    iterations: int
    denoiser_sigma: float = DENOISER_SIGMA


def prepare(request: Request) -> Study:
    validation = datasets.faces(request, request.count(FULL_IMAGES, QUICK_IMAGES), part="validation")
    prior = experiment_prior(request, "faces", validation.images)
    values, iterations = (
        request.choose(len(WEIGHTS), QUICK_VALUES),
        (QUICK_ITERATIONS,) if request.quick else ITERATIONS,
    )
    settings = {"prior": prior_identity(prior), "seed": request.seed, "iterations": list(iterations)}
    settings |= {"images": len(validation.images), "lpips": lpips_ready()}
    problems = {sigma_0: simulated("deblur_uniform", validation.images, sigma_0, request.seed) for sigma_0 in RED}
    parts = [
        _part(problem, prior, weight / sigma_0**2, sigma, iterations)
        for sigma_0, problem in problems.items()
        for weight in (RED[sigma_0].weight * sigma_0**2, *WEIGHTS[:values])
        for sigma in SIGMAS[:values]
    ]

    parts = list({part.key: part for part in parts}.values())  # the paper's lambda may be one of WEIGHTS, too

    def conclude(measured: list[Measured]) -> Outcome:
        rows = [row for m in measured for row in m.facts["rows"]]
        best = [_best([row for row in rows if row["sigma_0"] == sigma_0]) for sigma_0 in RED]
        return Outcome({"prior": settings["prior"], **validation.facts(), "sweep": rows, "best": best})

    return Study(settings, parts, conclude)


def _part(problem: InverseProblem, prior: Prior, weight: float, sigma: float, iterations: tuple[int, ...]) -> Part:
    """One descent, looked at after several numbers of iterations."""
    assert problem.truth is not None, "experiments know the truth"
    truth = problem.truth

    def compute(on_step: OnStep) -> Measured:
        rows, steps = [], red_luminance_steps(problem, prior, weight=weight, denoiser_sigma=sigma)
        for n, x in zip(range(1, max(iterations) + 1), steps, strict=False):
            if n in iterations:
                chosen = RedSetting(weight, n, sigma)
                rows.append({"sigma_0": problem.sigma_0, **vars(chosen), **compare(x, truth)})
        return Measured({"rows": rows})

    key = f"{problem.sigma_0:g}-{weight:.6g}-{sigma:.4f}-{image_key(0, truth)}"
    return Part(key, f"sigma_0 = {problem.sigma_0:g}, lambda = {weight:.4g}, denoiser at {sigma:.3g}", compute)


def compare(images: Tensor, truth: Tensor) -> dict[str, float | None]:
    """Means over images (N, C, H, W) beside their truth (N or 1, C, H, W); LPIPS is None without its weights."""
    truth = truth.expand_as(images)
    return {
        "psnr": psnr(images, truth).mean().item(),
        "psnr_luminance": psnr(luminance(images), luminance(truth)).mean().item(),
        "lpips": lpips(images, truth).mean().item() if perceptual_weights.available() else None,
        "ssim": ssim(images, truth).mean().item(),
    }


def _best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return max(rows, key=lambda row: row[CHOSEN_BY])


def stored_best(result: Path, sigma_0: float, prior: dict[str, str]) -> RedSetting | None:
    """What an earlier sweep with the same prior found best, or None."""
    if not result.is_file():
        return None
    with stored_record(result, "red_sweep") as record:
        if record["results"]["prior"] != prior:
            return None
        best = {row["sigma_0"]: row for row in record["results"]["best"]}[sigma_0]
        return RedSetting(best["weight"], best["iterations"], best["denoiser_sigma"])


def describe(results: dict[str, Any]) -> str:
    columns = ["σ₀", "λ", "denoiser's σ", "N", "PSNR dB", "PSNR of the luminance dB", "LPIPS"]
    tried = sorted({row["iterations"] for row in results["sweep"]})
    best = f"The best by PSNR of the luminance, with N of {', '.join(map(str, tried))}{_edge(results, tried)}:\n\n"
    note = "\nAll, each with its best N (the first λ at each σ₀ is the paper's, for pixels in [0, 1]):\n\n"
    found: dict[tuple[float, ...], list[dict[str, Any]]] = {}
    for row in results["sweep"]:
        found.setdefault((row["sigma_0"], row["weight"], row["denoiser_sigma"]), []).append(row)
    tables = [table(columns, [_cells(row) for row in rows]) for rows in (results["best"], map(_best, found.values()))]
    return setting(results) + best + tables[0] + note + tables[1]


def _edge(results: dict[str, Any], tried: list[int]) -> str:
    """Where the best N is the last that was tried, the best of all may lie beyond."""
    at_edge = [f"σ₀ = {row['sigma_0']:g}" for row in results["best"] if row["iterations"] == tried[-1]]
    if len(tried) == 1 or not at_edge:
        return ""
    return f" (at {' and '.join(at_edge)} the best N lies at the edge of what was tried: more may be better still)"


def _cells(row: dict[str, Any]) -> list[str]:
    distance = "-" if row["lpips"] is None else f"{row['lpips']:.4f}"
    chosen = [f"{row['sigma_0']:g}", f"{row['weight']:.4g}", f"{row['denoiser_sigma']:.4f}", str(row["iterations"])]
    return [*chosen, f"{row['psnr']:.2f}", f"{row['psnr_luminance']:.2f}", distance]


RED_SWEEP = Experiment("RED's parameters for our denoiser", prepare, describe)
