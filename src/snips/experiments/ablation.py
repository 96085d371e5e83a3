"""The appendix on step sizes: the paper's A_i against uniform steps c sigma^2, everything else equal."""

from __future__ import annotations

import statistics
from typing import Any

import torch
from torch import Tensor

from snips.experiments import datasets
from snips.experiments.base import Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.markdown import setting, table, with_error
from snips.experiments.published import SIGMA_CELEBA, UNIFORM_STEPS
from snips.experiments.sampled import Sampling, experiment_prior, image_key, mean_and_error, prior_identity, simulated
from snips.inverse_problem import InverseProblem
from snips.metrics import psnr
from snips.priors import Prior
from snips.report import degraded_view, picture_grid
from snips.samplers import langevin
from snips.samplers.base import OnStep, StepInfo

FULL_IMAGES, QUICK_IMAGES = 4, 1
FAR = 10.0  # pixels belong in [0, 1]: a largest one beyond this is called diverged
STALLED = 1.0  # dB; less than this above the degraded image is called stalled

VARIANTS: dict[str, dict[str, Any]] = {"A_i": {"step": "newton"}}
VARIANTS |= {f"c = {c:g}": {"step": "uniform", "c": c} for c in UNIFORM_STEPS}


def prepare(request: Request) -> Study:
    test = datasets.faces(request, request.count(FULL_IMAGES, QUICK_IMAGES))
    prior = experiment_prior(request, "faces", test.images)
    sampling = Sampling.of(request, "langevin", samples=1)
    problem = simulated("deblur_uniform", test.images, SIGMA_CELEBA, request.seed)
    parts = [_part(name, problem[i], prior, sampling) for i in range(len(problem)) for name in VARIANTS]
    settings = {"prior": prior_identity(prior), **sampling.settings()}
    facts = {"prior": settings["prior"], **test.facts()}
    facts |= {"sigma_0": SIGMA_CELEBA, "steps": sampling.preset.levels * sampling.preset.tau}

    def conclude(measured: list[Measured]) -> Outcome:
        blurred = psnr(degraded_view(problem), test.images).mean().item()
        rows = [_row(name, [m.facts for m in measured if m.facts["variant"] == name], blurred) for name in VARIANTS]
        columns = [("original", test.images), ("blurred", degraded_view(problem))]
        for name in VARIANTS:
            columns.append((name, torch.cat([m.tensors["x"] for m in measured if m.facts["variant"] == name])))
        return Outcome({**facts, "blurred": blurred, "rows": rows}, {"ablation": picture_grid(columns)})

    return Study(settings, parts, conclude)


def _part(name: str, problem: InverseProblem, prior: Prior, sampling: Sampling) -> Part:
    assert problem.truth is not None, "experiments know the truth"
    truth = problem.truth

    def compute(on_step: OnStep) -> Measured:
        options = {**sampling.options(), **VARIANTS[name]}
        x, stopped = last_state(problem, prior, options, sampling.seed, on_step)
        facts = {"variant": name, "image": problem.first_image, "stopped": stopped}
        facts |= {"psnr": psnr(x, truth).item(), "largest": x.abs().max().item()}
        return Measured(facts, {"x": x})

    key = f"{name}-{image_key(problem.first_image, truth[0])}".replace(" ", "")
    return Part(key, f"{name}, image {problem.first_image + 1}", compute)


def last_state(
    problem: InverseProblem, prior: Prior, options: dict[str, Any], seed: int, on_step: OnStep
) -> tuple[Tensor, int | None]:
    """The sample, or the last finite state and the step at which the denoiser could not go on."""
    kept: dict[str, Any] = {}

    def keep(info: StepInfo) -> None:
        on_step(info)
        if torch.isfinite(info.state.x).all():
            kept.update(x=info.state.x.clone(), step=info.step)

    try:
        return langevin(problem, prior, samples=1, seed=seed, on_step=keep, **options)[0], None
    except ValueError:
        if not kept:
            raise
        return kept["x"], kept["step"]


def _row(name: str, facts: list[dict[str, Any]], blurred: float) -> dict[str, Any]:
    scores = mean_and_error([f["psnr"] for f in facts])
    largest = statistics.fmean(f["largest"] for f in facts)
    stopped = [f["stopped"] for f in facts if f["stopped"] is not None]
    verdict = "converges"
    if stopped or largest > FAR:
        verdict = "diverges"
    elif (scores["mean"] or 0.0) < blurred + STALLED:
        verdict = "stalls"
    return {"variant": name, "images": len(facts), "psnr": scores, "largest": largest, "verdict": verdict}


def describe(results: dict[str, Any]) -> str:
    rows = [
        [row["variant"], str(row["images"]), with_error(row["psnr"]), f"{row['largest']:.3g}", row["verdict"]]
        for row in results["rows"]
    ]
    note = (
        f"Uniform 5 x 5 blur, σ₀ = {results['sigma_0']:g}, {results['steps']} steps, one sample for each image. The "
        f"blurred images themselves: {results['blurred']:.2f} dB. The paper: uniform steps diverge.\n\n"
    )
    return setting(results) + note + table(["step size", "images", "PSNR dB", "largest abs pixel", ""], rows)


ABLATION = Experiment("Step sizes: the paper's A_i against uniform ones", prepare, describe)
