"""The appendix on RED: PSNR and LPIPS of samples, their mean, and RED with the same denoiser, for deblurring.

The paper gives RED's lambda without its units. In units of pixels in [0, 1] it reproduces the paper's PSNR of RED; in
units of 0 .. 255 it is another, so both are shown, and beside them the best of a sweep for our denoiser.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from snips.experiments import datasets
from snips.experiments.base import Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.markdown import setting, table, with_error
from snips.experiments.published import RED
from snips.experiments.sampled import (
    Sampling,
    experiment_prior,
    image_key,
    mean_and_error,
    pooled_faithfulness,
    prior_identity,
    sample_facts,
    simulated,
)
from snips.metrics import lpips, perceptual_weights, psnr, ssim
from snips.priors import Prior
from snips.problems import InverseProblem
from snips.report import picture_grid
from snips.samplers import red_luminance
from snips.samplers.base import OnStep
from snips.samplers.red import DENOISER_SIGMA

FULL_IMAGES, QUICK_IMAGES = 8, 1
QUICK_ITERATIONS = 5
METRICS = ("psnr", "lpips", "ssim")


@dataclass(frozen=True)
class RedSetting:
    """The arguments of RED for one noise level."""

    weight: float  # for pixels in [0, 1]
    denoiser_sigma: float = DENOISER_SIGMA


BEST: dict[float, RedSetting] = {  # the best mean PSNR in `snips experiment red_sweep`
    0.006: RedSetting(weight=0.3 / 0.006**2),
    0.1: RedSetting(weight=3 / 0.1**2, denoiser_sigma=0.05),
}


def red_settings(sigma_0: float) -> dict[str, RedSetting]:
    """The variants that are shown, by name."""
    weight = RED[sigma_0].weight
    return {"RED": RedSetting(weight), "RED (0 .. 255)": RedSetting(255**2 * weight), "RED (best)": BEST[sigma_0]}


def prepare(request: Request) -> Study:
    with_lpips = perceptual_weights.available()
    if not (with_lpips or request.quick):
        raise ValueError(f"this experiment needs the weights of LPIPS: {perceptual_weights.HOW_TO_GET}")
    test = datasets.faces(request, request.images or request.choose(FULL_IMAGES, QUICK_IMAGES))
    prior = experiment_prior(request, "faces", test.images)
    sampling = Sampling.of(request, "fast")
    iterations = {sigma_0: request.choose(row.iterations, QUICK_ITERATIONS) for sigma_0, row in RED.items()}
    problems = {sigma_0: simulated("deblur_uniform", test.images, sigma_0, request.seed) for sigma_0 in RED}
    parts = [
        _part(problem[i], prior, sampling, iterations[sigma_0])
        for sigma_0, problem in problems.items()
        for i in range(len(problem))
    ]
    variants = {str(sigma_0): {name: vars(s) for name, s in red_settings(sigma_0).items()} for sigma_0 in RED}
    settings = {"prior": prior_identity(prior), "lpips": with_lpips, "red": variants, **sampling.settings()}
    settings["iterations"] = list(iterations.values())
    facts = {"prior": settings["prior"], "source": test.source, "publishable": test.publishable, "red": variants}

    def conclude(measured: list[Measured]) -> Outcome:
        rows = [_row(sigma_0, [m.facts for m in measured if m.facts["sigma_0"] == sigma_0]) for sigma_0 in RED]
        return Outcome({**facts, "rows": rows}, {"red": picture_grid(_columns(problems, measured), scale=2)})

    return Study(settings, parts, conclude)


def _part(problem: InverseProblem, prior: Prior, sampling: Sampling, iterations: int) -> Part:
    assert problem.truth is not None, "experiments know the truth"
    truth, sigma_0 = problem.truth, problem.sigma_0

    def compute(on_step: OnStep) -> Measured:
        result = sampling.restore(problem, prior, on_step)
        samples = result.samples.clamp(0, 1)
        images = {"SNIPS": samples[:, 0], "SNIPS mean": samples.mean(0)}
        for name, chosen in red_settings(sigma_0).items():
            images[name] = red_luminance(problem, prior, iterations=iterations, **vars(chosen))
        scores = {name: compare(image, truth) for name, image in images.items()}
        tensors = {name: image[:1].clone() for name, image in images.items()}
        return Measured({**sample_facts(result), "scores": scores}, tensors)

    key = f"{sigma_0:g}-{image_key(problem.first_image, truth[0])}"
    return Part(key, f"sigma_0 = {sigma_0:g}, image {problem.first_image + 1}", compute)


def compare(images: Tensor, truth: Tensor) -> dict[str, float | None]:
    """Means over images (N, C, H, W) of one truth (1, C, H, W); LPIPS is None where its weights are absent."""
    truth = truth.expand_as(images)
    distance = lpips(images, truth).mean().item() if perceptual_weights.available() else None
    return {"psnr": psnr(images, truth).mean().item(), "lpips": distance, "ssim": ssim(images, truth).mean().item()}


def _row(sigma_0: float, facts: list[dict[str, Any]]) -> dict[str, Any]:
    methods = {}
    for method in facts[0]["scores"]:
        scores = [f["scores"][method] for f in facts]
        methods[method] = {
            metric: mean_and_error([s[metric] for s in scores]) if scores[0][metric] is not None else None
            for metric in METRICS
        }
    identity = {"group": "", "problem": "deblur_uniform", "sampler": "fast", "sigma_0": sigma_0, "images": len(facts)}
    return {**identity, "methods": methods, "faithfulness": pooled_faithfulness(facts)}


def _columns(problems: dict[float, InverseProblem], measured: list[Measured]) -> list[tuple[str, Tensor]]:
    """The first image at each noise level."""
    shown = {sigma_0: next(m for m in measured if m.facts["sigma_0"] == sigma_0) for sigma_0 in problems}
    truths = [problem.truth[:1] for problem in problems.values() if problem.truth is not None]
    columns = [("original", torch.cat(truths)), ("blurred", torch.cat([p.y[:1] for p in problems.values()]))]
    names = next(iter(shown.values())).tensors
    return columns + [(name, torch.cat([m.tensors[name] for m in shown.values()])) for name in names]


def describe(results: dict[str, Any]) -> str:
    rows = []
    for row in results["rows"]:
        published = RED[row["sigma_0"]]
        paper = {"psnr": published.psnr, "lpips": published.lpips}
        for metric in METRICS:
            values = {name: scores[metric] for name, scores in row["methods"].items()}
            cells = [
                "-" if value is None else with_error(value, 2 if metric == "psnr" else 3) for value in values.values()
            ]
            beside = " / ".join(f"{value:g}" for value in paper[metric]) if metric in paper else "-"
            rows.append([f"{row['sigma_0']:g}", metric.upper(), *cells, beside])
    columns = ["σ₀", "", *results["rows"][0]["methods"], "paper: SNIPS / mean / RED"]
    note = f"Uniform 5 x 5 blur, {results['rows'][0]['images']} images. λ for pixels in [0, 1]: " + "; ".join(
        f"σ₀ = {sigma_0}: " + ", ".join(f"{name} {s['weight']:.4g}" for name, s in variants.items())
        for sigma_0, variants in results["red"].items()
    )
    return setting(results) + note + ".\n\n" + table(columns, rows)


RED_COMPARISON = Experiment("Deblurring by RED with the same denoiser: PSNR and LPIPS", prepare, describe)

# --- the sweep ---------------------------------------------------------------------------------------------------

SWEEP_WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # lambda sigma_0^2: the prior's weight over the measurement's
SWEEP_SIGMAS = (DENOISER_SIGMA, 0.025, 0.05, 0.1)
QUICK_SWEEP = 2  # of each


def prepare_sweep(request: Request) -> Study:
    test = datasets.faces(request, request.images or request.choose(4, 1))
    prior = experiment_prior(request, "faces", test.images)
    weights, sigmas = (values[:QUICK_SWEEP] if request.quick else values for values in (SWEEP_WEIGHTS, SWEEP_SIGMAS))
    settings = {"prior": prior_identity(prior), "images": len(test.images), "seed": request.seed}
    settings["iterations"] = request.choose(100, QUICK_ITERATIONS)
    parts = []
    for sigma_0 in RED:
        problem = simulated("deblur_uniform", test.images, sigma_0, request.seed)
        for weight in (RED[sigma_0].weight * sigma_0**2, *weights):
            for sigma in sigmas:
                parts.append(
                    _sweep_part(problem, prior, RedSetting(weight / sigma_0**2, sigma), settings["iterations"])
                )

    def conclude(measured: list[Measured]) -> Outcome:
        rows = [m.facts for m in measured]
        best = [max((row for row in rows if row["sigma_0"] == s), key=lambda row: row["psnr"]) for s in RED]
        return Outcome({"prior": settings["prior"], "source": test.source, "sweep": rows, "best": best})

    return Study(settings, parts, conclude)


def _sweep_part(problem: InverseProblem, prior: Prior, chosen: RedSetting, iterations: int) -> Part:
    assert problem.truth is not None, "experiments know the truth"
    truth = problem.truth

    def compute(on_step: OnStep) -> Measured:
        x = red_luminance(problem, prior, iterations=iterations, **vars(chosen))
        scores = [compare(x[i : i + 1], truth[i : i + 1]) for i in range(len(x))]
        found = {m: _mean([s[m] for s in scores]) for m in METRICS}
        return Measured({"sigma_0": problem.sigma_0, **vars(chosen), **found})

    key = f"{problem.sigma_0:g}-{chosen.weight:.6g}-{chosen.denoiser_sigma:.4f}"
    return Part(key, f"sigma_0 = {problem.sigma_0:g}, lambda {chosen.weight:.4g}", compute)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def describe_sweep(results: dict[str, Any]) -> str:
    def cells(row: dict[str, Any]) -> list[str]:
        distance = "-" if row["lpips"] is None else f"{row['lpips']:.4f}"
        numbers = [f"{row['sigma_0']:g}", f"{row['weight']:.4g}", f"{row['denoiser_sigma']:.4f}", f"{row['psnr']:.2f}"]
        return [*numbers, distance]

    columns = ["σ₀", "λ", "denoiser's σ", "PSNR dB", "LPIPS"]
    best = "The best by PSNR:\n\n" + table(columns, [cells(row) for row in results["best"]])
    return setting(results) + best + "\nAll:\n\n" + table(columns, [cells(row) for row in results["sweep"]])


RED_SWEEP = Experiment("RED's parameters for our denoiser", prepare_sweep, describe_sweep)
