"""Samples of one test image, and what Table 1 and the faithfulness section say about them."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from snips.experiments.base import ACTUAL, Measured, Part, Request
from snips.experiments.published import CELEBA_SAMPLES
from snips.inverse_problem import InverseProblem
from snips.metrics.calibration import coverage, widest_level
from snips.metrics.faithfulness import P_THRESHOLD, RHO_THRESHOLD, faithfulness
from snips.priors import Prior
from snips.priors.choice import prior_for
from snips.priors.digest import weights_digest
from snips.priors.precision import with_precision
from snips.problems import make_operator
from snips.restoration import Restoration, restore
from snips.samplers import PRESETS, LangevinPreset
from snips.samplers.base import OnStep
from snips.samplers.multistep import STEPS_VERSION

QUICK_NFE, QUICK_SAMPLES = 8, 3
QUICK_LANGEVIN = LangevinPreset(first=90, last=0.01, levels=12, c=0.033, tau=1)


@dataclass(frozen=True)
class Sampling:
    """How samples are drawn."""

    sampler: str  # a name in ALL_SAMPLERS
    samples: int
    seed: int
    nfe: int  # of `fast`
    preset: LangevinPreset  # of the others
    precision: str = "float32"  # of the prior's network

    @classmethod
    def of(cls, request: Request, sampler: str, samples: int = CELEBA_SAMPLES, preset: str = "celeba") -> Sampling:
        """The full settings, or tiny ones for a quick run."""
        return cls(
            sampler,
            request.choose(samples, min(samples, QUICK_SAMPLES)),
            request.seed,
            request.choose(100, QUICK_NFE) if request.nfe is None else request.nfe,
            QUICK_LANGEVIN if request.quick else PRESETS[preset],
            request.precision,
        )

    def options(self) -> dict[str, Any]:
        if self.sampler == "fast":
            return {"nfe": self.nfe}
        return {**self.preset.options(), "actual_noise": self.sampler == ACTUAL}

    def settings(self) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        chosen = {"nfe": self.nfe} if self.sampler == "fast" else vars(self.preset)
        return {self.sampler: {"samples": self.samples, "seed": self.seed, **chosen}}

    def key(self, label: str) -> str:
        """For the names of its parts: samples of another precision, or of other steps, are others."""
        steps = f"-steps-{STEPS_VERSION}" if self.sampler == "fast" else ""
        return label + steps + ("" if self.precision == "float32" else f"-{self.precision}")

    def facts(self) -> dict[str, Any]:
        """What results say of it."""
        calls = self.nfe if self.sampler == "fast" else self.preset.levels * self.preset.tau
        return {self.sampler: {"calls": calls, "samples": self.samples}}

    def restore(self, problem: InverseProblem, prior: Prior, on_step: OnStep | None = None) -> Restoration:
        return restore(
            problem,
            prior,
            sampler="fast" if self.sampler == "fast" else "langevin",
            samples=self.samples,
            seed=self.seed,
            on_step=on_step,
            **self.options(),
        )


def experiment_prior(request: Request, usual: str, images: Tensor) -> Prior:
    """The prior of an experiment, or another that the user named, as `snips restore` understands it."""
    image_shape = (images.shape[1], images.shape[2], images.shape[3])
    return with_precision(prior_for(request.prior or usual, image_shape), request.precision)


def prior_identity(prior: Prior) -> dict[str, str]:
    """Name and digest of the weights: results of other weights are other results."""
    return {"name": prior.name or type(prior).__name__, "sha256": weights_digest(prior)}


def weights_identity(prior: Prior) -> dict[str, str]:
    """The same for every precision, for tables in which each sampler may have its own."""
    return prior_identity(prior.with_stored_weights())


def image_key(index: int, image: Tensor) -> str:
    """The place of an image among the others (its random numbers depend on it) and a digest of its pixels."""
    return f"{index:03d}-{hashlib.sha256(image.contiguous().numpy().tobytes()).hexdigest()[:10]}"


def simulated(name: str, images: Tensor, sigma_0: float, seed: int) -> InverseProblem:
    """All images measured by a problem of PROBLEMS; `[i]` is one of them, the same whatever the others are."""
    operator = make_operator(name, tuple(images.shape[1:]))
    return InverseProblem.simulate(operator, images, sigma_0, seed)


def sampled_part(
    name: str, problem: InverseProblem, prior: Prior, sampling: Sampling, keep: bool = False, group: str = ""
) -> Part:
    """Draw samples for a problem of one image and measure them; `keep` keeps them for pictures."""
    assert problem.truth is not None, "experiments know the truth"
    label = f"{group}{name}, {sampling.sampler}, image {problem.first_image + 1}"
    key = f"{group}{name}-{sampling.key(sampling.sampler)}-{image_key(problem.first_image, problem.truth[0])}"

    def compute(on_step: OnStep) -> Measured:
        result = sampling.restore(problem, prior, on_step)
        facts = {"problem": name, "group": group, "sampler": sampling.sampler, **sample_facts(result)}
        return Measured(facts, {"samples": result.samples} if keep else {})

    return Part(key.replace(" ", ""), label, compute)


def sample_facts(result: Restoration) -> dict[str, Any]:
    """All that is said about the samples of one image."""
    scores, truth = result.psnr(), result.problem.truth
    assert scores is not None, "experiments know the truth"
    assert truth is not None, "experiments know the truth"
    verdict, K = result.faithfulness(), len(result.samples)
    covered = coverage(result.samples, truth, widest_level(K)) if K > 1 else None  # one sample is no interval
    rows = {"std_ratio": verdict.std_ratio, "p_value": verdict.p_value, "rho": verdict.rho}
    return {
        "image": result.problem.first_image,
        "sigma_0": result.problem.sigma_0,
        "psnr_samples": scores[0][:, 0].tolist(),
        "psnr_mean": scores[1].item(),
        "covered": None if covered is None else covered.share,
        "coverage_level": None if covered is None else covered.level,
        **{name: None if values is None else values[:, 0].tolist() for name, values in rows.items()},
        "seconds": result.settings["seconds"],
    }


def mean_and_error(values: list[float]) -> dict[str, float | None]:
    """The mean over images and its standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "standard_error": error}


def summary_row(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of a table: some images with the same problem and sampler."""
    samples = [statistics.fmean(f["psnr_samples"]) for f in facts]
    means = [f["psnr_mean"] for f in facts]
    first = facts[0]
    return {
        "group": first["group"],
        "problem": first["problem"],
        "sampler": first["sampler"],
        "sigma_0": first["sigma_0"],
        "images": len(facts),
        "samples": len(first["psnr_samples"]),
        "psnr_sample": mean_and_error(samples),
        "psnr_mean": mean_and_error(means),
        "gap": mean_and_error([m - s for m, s in zip(means, samples, strict=True)]),
        "coverage": None if first["covered"] is None else mean_and_error([f["covered"] for f in facts]),
        "coverage_level": first["coverage_level"],
        "faithfulness": pooled_faithfulness(facts),
        "seconds": statistics.fmean(f["seconds"] for f in facts),
        "psnr_of_each_image": [[round(s, 3), round(m, 3)] for s, m in zip(samples, means, strict=True)],
    }


def pooled_faithfulness(facts: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """Counts over all samples of some images; None where the residuals are too few to say."""
    tested = [f for f in facts if f["p_value"] is not None and f["rho"] is not None]
    if not tested:
        return None
    ratio, p, rho = ([value for f in tested for value in f[name]] for name in ("std_ratio", "p_value", "rho"))
    return {
        "samples": len(p),
        "std_ratio": statistics.fmean(ratio),
        "std_ratio_range": [min(ratio), max(ratio)],
        "normal": sum(value > P_THRESHOLD for value in p),
        "uncorrelated": sum(abs(value) < RHO_THRESHOLD for value in rho),
        "shares_of_each_image": [_shares(f) for f in tested],
    }


def _shares(facts: dict[str, Any]) -> list[float]:
    """Of the samples of one image: how many have p > 0.05, how many |rho| < 0.1."""
    normal = statistics.fmean(value > P_THRESHOLD for value in facts["p_value"])
    return [normal, statistics.fmean(abs(value) < RHO_THRESHOLD for value in facts["rho"])]


def of_the_truth(problem: InverseProblem) -> dict[str, Any] | None:
    """The same of the true images, whose residuals are the noise itself: what chance alone gives."""
    assert problem.truth is not None, "experiments know the truth"
    found = faithfulness(problem, problem.truth[None])
    if found.p_value is None or found.rho is None or found.std_ratio is None:
        return None
    rows = zip(found.std_ratio[0].tolist(), found.p_value[0].tolist(), found.rho[0].tolist(), strict=True)
    return pooled_faithfulness({"std_ratio": [ratio], "p_value": [p], "rho": [rho]} for ratio, p, rho in rows)


def less(row: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """PSNR of a row less that of another one, image by image: both have the first images, in the same order."""
    pairs = list(zip(row["psnr_of_each_image"], other["psnr_of_each_image"], strict=False))
    differences = ([mine[i] - theirs[i] for mine, theirs in pairs] for i in (0, 1))
    names = ("psnr_sample", "psnr_mean")
    found = {name: mean_and_error(values) for name, values in zip(names, differences, strict=True)}
    return {"sampler": other["sampler"], "images": len(pairs), **found}


def grouped_rows(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each group, sampler and problem, in the order in which they came."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for f in facts:
        groups.setdefault((f["group"], f["sampler"], f["problem"]), []).append(f)
    return [summary_row(group) for group in groups.values()]
