"""The appendix on step sizes: the paper's A_i against uniform steps c sigma^2, everything else equal."""

from __future__ import annotations

import math
import statistics
from typing import Any

import torch
from torch import Tensor

from snips.experiments import datasets
from snips.experiments.base import Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.markdown import setting, table, with_error
from snips.experiments.published import SIGMA_CELEBA, UNIFORM_STEPS
from snips.experiments.sampled import Sampling, experiment_prior, image_key, mean_and_error, prior_identity, simulated
from snips.experiments.stored import prior_of, stored_record
from snips.inverse_problem import InverseProblem
from snips.metrics import psnr
from snips.priors import Prior
from snips.report import degraded_view, picture_grid
from snips.samplers import LangevinPreset, langevin
from snips.samplers.annealed_langevin import noise_of_states
from snips.samplers.base import OnStep, StepInfo
from snips.schedules import geometric

FULL_IMAGES, QUICK_IMAGES = 4, 1
FAR = 10.0  # pixels belong in [0, 1]: a largest one beyond this has diverged, unless noise alone explains it
CLEARLY = 2.0  # times as large as noise alone explains
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
    facts["more_noise_than_told"] = _noise(sampling.preset, "A_i") / sampling.preset.last - 1

    def conclude(measured: list[Measured]) -> Outcome:
        blurred = psnr(degraded_view(problem), test.images).mean().item()
        rows = [
            _row(
                name,
                [m.facts for m in measured if m.facts["variant"] == name],
                blurred,
                largest_of_noise(_noise(sampling.preset, name), test.images[0].numel()),
            )
            for name in VARIANTS
        ]
        columns = [("original", test.images), ("blurred", degraded_view(problem))]
        for name in VARIANTS:
            columns.append((name, torch.cat([m.tensors["x"] for m in measured if m.facts["variant"] == name])))
        fast = stored_fast(request, settings["prior"], list(test.names))
        return Outcome({**facts, "blurred": blurred, "rows": rows, "fast": fast}, {"ablation": picture_grid(columns)})

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


def _noise(preset: LangevinPreset, variant: str) -> float:
    """The noise at the end, where nothing but the steps themselves explains it: for uniform ones, a random walk's."""
    sigmas, options = geometric(preset.first, preset.last, preset.levels), VARIANTS[variant]
    if options["step"] == "newton":
        return noise_of_states(sigmas, preset.c, preset.tau)[-1]
    return math.sqrt(2 * options["c"] * preset.tau * sigmas.square().sum().item())


def largest_of_noise(std: float, values: int) -> float:
    """About the largest of so many pixels of [0, 1] with that noise."""
    return 1 + std * math.sqrt(2 * math.log(values))


def _row(name: str, facts: list[dict[str, Any]], blurred: float, explained: float) -> dict[str, Any]:
    scores = mean_and_error([f["psnr"] for f in facts])
    largest = statistics.fmean(f["largest"] for f in facts)
    stopped = [f["stopped"] for f in facts if f["stopped"] is not None]
    verdict = "converges"
    if stopped or largest > max(FAR, CLEARLY * explained):
        verdict = "diverges"
    elif (scores["mean"] or 0.0) < blurred + STALLED:
        verdict = "stalls"
    sizes = {"largest": largest, "largest_of_noise": explained}
    return {"variant": name, "images": len(facts), "psnr": scores, **sizes, "verdict": verdict}


def stored_fast(request: Request, prior: dict[str, str], names: list[str]) -> dict[str, Any] | None:
    """What single samples of `fast` have for the same measurements, where an experiment in the folder drew them."""
    for name in ("table1", "figures"):
        file = request.out / name / "result.json"
        if file.is_file():
            with stored_record(file, name) as record:
                if found := _of_fast(record, prior, names, request.seed):
                    return found
    return None


def _of_fast(record: dict[str, Any], prior: dict[str, str], names: list[str], seed: int) -> dict[str, Any] | None:
    results, count = record["results"], len(names)
    chosen = record["settings"].get("fast", {"seed": None})
    if (prior_of(results, "fast"), results["names"][""][:count], chosen["seed"]) != (prior, names, seed):
        return None
    wanted = ("fast", "deblur_uniform", SIGMA_CELEBA)
    for row in results["rows"]:
        if (row["sampler"], row["problem"], row["sigma_0"]) == wanted and row["images"] >= count:
            each = [sample for sample, _ in row["psnr_of_each_image"][:count]]
            return {"calls": chosen["nfe"], "psnr": mean_and_error(each), "stored_by": record["experiment"]}
    return None


def describe(results: dict[str, Any]) -> str:
    rows = []
    for row in results["rows"]:
        sizes = [f"{row[key]:.3g}" for key in ("largest", "largest_of_noise")]
        rows.append([row["variant"], str(row["images"]), with_error(row["psnr"]), *sizes, row["verdict"]])
    note = (
        f"Uniform 5 x 5 blur, σ₀ = {results['sigma_0']:g}, {results['steps']} steps, one sample for each image. The "
        f"blurred images themselves: {results['blurred']:.2f} dB. The paper: uniform steps diverge. Here *diverges* "
        f"means that the largest pixel is beyond {FAR:g} and more than {CLEARLY:g} times what the noise explains that "
        "the steps add (uniform ones: a random walk of the variance 2 c τ Σ σᵢ²), and *stalls* that it is not, with a "
        f"PSNR less than {STALLED:g} dB above that of the blurred images.\n\n"
    )
    columns = ["step size", "images", "PSNR dB", "largest abs pixel", "of noise alone, about", ""]
    return setting(results) + note + table(columns, rows) + f"\n{_on_newton(results)}\n"


def _on_newton(results: dict[str, Any]) -> str:
    """How good the paper's steps are with this network, and why not better."""
    ours, fast = results["rows"][0], results["fast"]
    said = f"With {ours['variant']}, a sample has {with_error(ours['psnr'])} dB"
    if fast is not None:
        said += f", and one of `fast` with {fast['calls']} calls {with_error(fast['psnr'])} dB on the same images"
    return (
        f"{said}. Algorithm 1's states hold more noise than the level that it tells the network, at the end by "
        f"{100 * results['more_noise_than_told']:.0f} %; a network that is told σ may take the excess for texture."
    )


ABLATION = Experiment("Step sizes: the paper's A_i against uniform ones", prepare, describe)
