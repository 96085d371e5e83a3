"""The appendix on RED: PSNR and LPIPS of samples, their mean, and RED with the same denoiser, for deblurring.

The paper gives RED's lambda without the units of the pixels, so it is read in both: [0, 1] and 0 .. 255. Beside them
stands the best that `red_sweep` found for our denoiser, where its results lie in the same folder. As RED restores the
luminance only, the true luminance with the colours of y is shown as well.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from snips.experiments import datasets
from snips.experiments.base import WITH_CALLS, Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.markdown import setting, table, with_error
from snips.experiments.pictures import with_row_names
from snips.experiments.published import RED
from snips.experiments.red_sweep import METRICS, QUICK_ITERATIONS, RedSetting, compare, stored_best
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
from snips.images import luminance
from snips.inverse_problem import InverseProblem
from snips.metrics import perceptual_weights
from snips.metrics.perceptual import lpips_ready
from snips.priors import Prior
from snips.report import picture_grid
from snips.samplers import red_luminance
from snips.samplers.base import OnStep

FULL_IMAGES, QUICK_IMAGES = 8, 1
BEST, TRUE = "RED (best)", "true luminance"


def red_settings(request: Request, sigma_0: float, prior: dict[str, str]) -> dict[str, RedSetting]:
    """The variants that are shown, by name."""
    weight = RED[sigma_0].weight
    iterations = request.choose(RED[sigma_0].iterations, QUICK_ITERATIONS)
    best = stored_best(request.out / "red_sweep" / "result.json", sigma_0, prior)
    chosen = {"RED": RedSetting(weight, iterations), "RED (0 .. 255)": RedSetting(255**2 * weight, iterations)}
    return chosen if best is None else {**chosen, BEST: best}


def prepare(request: Request) -> Study:
    with_lpips = lpips_ready()
    if not (with_lpips or request.quick):
        raise ValueError(f"this experiment needs the weights of LPIPS: {perceptual_weights.HOW_TO_GET}")
    test = datasets.faces(request, request.count(FULL_IMAGES, QUICK_IMAGES))
    prior = experiment_prior(request, "faces", test.images)
    identity, sampling = prior_identity(prior), Sampling.of(request, "fast")
    chosen = {sigma_0: red_settings(request, sigma_0, identity) for sigma_0 in RED}
    problems = {sigma_0: simulated("deblur_uniform", test.images, sigma_0, request.seed) for sigma_0 in RED}
    parts = [
        _part(problem[i], prior, sampling, chosen[sigma_0])
        for sigma_0, problem in problems.items()
        for i in range(len(problem))
    ]
    variants = {str(sigma_0): {name: vars(s) for name, s in each.items()} for sigma_0, each in chosen.items()}
    facts = {"prior": identity, **test.facts(), "sampling": sampling.facts(), "red": variants}
    settings = {"prior": identity, "lpips": with_lpips, "red": variants, **sampling.settings()}

    def conclude(measured: list[Measured]) -> Outcome:
        rows = [_row(sigma_0, [m.facts for m in measured if m.facts["sigma_0"] == sigma_0]) for sigma_0 in RED]
        levels = [f"sigma_0 = {sigma_0:g}" for sigma_0 in problems]
        picture = with_row_names(picture_grid(_columns(problems, measured)), levels)
        return Outcome({**facts, "rows": rows}, {"red": picture})

    return Study(settings, parts, conclude)


def _part(problem: InverseProblem, prior: Prior, sampling: Sampling, variants: dict[str, RedSetting]) -> Part:
    assert problem.truth is not None, "experiments know the truth"
    truth, sigma_0 = problem.truth, problem.sigma_0

    def compute(on_step: OnStep) -> Measured:
        result = sampling.restore(problem, prior, on_step)
        samples = result.samples.clamp(0, 1)
        images = {"SNIPS": samples[:, 0], "SNIPS mean": samples.mean(0)}
        for name, variant in variants.items():
            images[name] = red_luminance(problem, prior, **vars(variant))
        images[TRUE] = (problem.y + luminance(truth) - luminance(problem.y)).clamp(0, 1)
        scores = {name: compare(image, truth) for name, image in images.items()}
        tensors = {name: image[:1].clone() for name, image in images.items()}
        return Measured({**sample_facts(result), "scores": scores}, tensors)

    key = f"{sigma_0:g}-{image_key(problem.first_image, truth[0])}"
    return Part(key, f"sigma_0 = {sigma_0:g}, image {problem.first_image + 1}", compute)


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
    methods = measured[0].facts["scores"]  # in their order, which files of tensors do not keep
    return columns + [(name, torch.cat([m.tensors[name] for m in shown.values()])) for name in methods]


def describe(results: dict[str, Any]) -> str:
    rows = []
    for row in results["rows"]:
        published = RED[row["sigma_0"]]
        paper = {"psnr": published.psnr, "lpips": published.lpips}
        for metric in METRICS:
            values = {name: scores[metric] for name, scores in row["methods"].items()}
            digits = 2 if metric.startswith("psnr") else 3
            if "luminance" in METRICS[metric]:
                values[TRUE] = None  # nothing but rounding is left
            cells = ["-" if value is None else with_error(value, digits) for value in values.values()]
            beside = " / ".join(f"{value:g}" for value in paper[metric]) if metric in paper else "-"
            rows.append([f"{row['sigma_0']:g}", METRICS[metric], *cells, beside])
    columns = ["σ₀", "", *results["rows"][0]["methods"], "paper: SNIPS / mean / RED"]
    return setting(results) + _note(results) + table(columns, rows)


def _note(results: dict[str, Any]) -> str:
    chosen = "; ".join(
        f"σ₀ = {sigma_0}: "
        + ", ".join(
            f"{name} λ = {s['weight']:.4g}, N = {s['iterations']}, σ = {s['denoiser_sigma']:.4f}"
            for name, s in variants.items()
        )
        for sigma_0, variants in results["red"].items()
    )
    swept = all(BEST in variants for variants in results["red"].values())
    best = f"*{BEST}* was chosen on validation images by `red_sweep`." if swept else "`red_sweep` was not run."
    return (
        f"Uniform 5 x 5 blur, {results['rows'][0]['images']} images. RED works on the luminance and leaves the colours "
        f"of y as they are, noise and blur with them; *{TRUE}* is y with the true luminance. *SNIPS* are single "
        "samples, *SNIPS mean* is the mean of those of an image. λ and the denoiser's σ are for pixels in [0, 1]: "
        f"{chosen}. {best}\n\n"
    )


RED_COMPARISON = Experiment("Deblurring by RED with the same denoiser: PSNR and LPIPS", prepare, describe, WITH_CALLS)
