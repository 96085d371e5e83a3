"""Priors fitted to photographs, whose posteriors are known exactly, and how far samples are from those.

The priors are Gaussian mixtures of 8x8 patches. A distance is the sliced Wasserstein-2 distance of 1,000 samples to
exact ones, divided by the mean distance of two exact sets: 1.0 is perfect.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from skimage import data
from torch import Tensor

from snips import InverseProblem, make_operator
from snips.priors import GaussianMixture
from snips.samplers.multistep import STEPS_VERSION

FIVE = ("sr4", "sr2", "deblur_uniform", "cs4", "cs8")
SAMPLES, PROJECTIONS, MEASUREMENTS, EXACT_SETS = 1000, 200, 4, 9
SIZE, COMPONENTS, PATCHES = 8, 10, 8000
PHOTOGRAPHS = (data.astronaut, data.coffee, data.chelsea, data.camera)


def patches(seed: int) -> Tensor:
    """Grey patches of photographs at half their resolution, (n, SIZE^2)."""
    random, rows = np.random.default_rng(seed), []
    for photograph in PHOTOGRAPHS:
        image = photograph() / 255
        image = image @ [0.299, 0.587, 0.114] if image.ndim == 3 else image
        height, width = (n // 2 for n in image.shape)
        image = image[: 2 * height, : 2 * width].reshape(height, 2, width, 2).mean((1, 3))
        for _ in range(PATCHES // len(PHOTOGRAPHS)):
            i, j = random.integers(height - SIZE), random.integers(width - SIZE)
            rows.append(image[i : i + SIZE, j : j + SIZE].ravel())
    return torch.from_numpy(np.array(rows))


def fit_mixture(x: Tensor, components: int, seed: int, steps: int = 30, floor: float = 1e-4) -> GaussianMixture:
    """Expectation maximisation for a mixture of Gaussians of square images; `floor` is added to all variances."""
    n, d = x.shape
    start = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:components]
    weights, means = torch.full((components,), 1 / components, dtype=x.dtype), x[start]
    ridge = floor * torch.eye(d, dtype=x.dtype)
    covariances = (0.3 * torch.cov(x.T) + ridge).repeat(components, 1, 1)
    for _ in range(steps):
        roots = torch.linalg.cholesky(covariances)
        whitened = torch.linalg.solve_triangular(roots, (x - means[:, None]).mT, upper=False)  # (K, d, n)
        log_det = roots.diagonal(dim1=1, dim2=2).log().sum(1)
        joint = weights.log()[:, None] - whitened.square().sum(1) / 2 - log_det[:, None]
        share = torch.softmax(joint, 0)  # (K, n)
        total = share.sum(1).clamp(min=1e-9)
        weights, means = total / total.sum(), share @ x / total[:, None]
        moved = x - means[:, None]
        covariances = (share[..., None] * moved).mT @ moved / total[:, None, None] + ridge
    kept = weights * n > 3
    return GaussianMixture(weights[kept], means[kept], covariances[kept], (1, math.isqrt(d), math.isqrt(d)))


@dataclass
class Case:
    """One problem with several measurements and, for each, exact samples."""

    name: str
    problem: InverseProblem
    posteriors: list[GaussianMixture]
    exact: list[list[Tensor]]  # for each measurement, EXACT_SETS of (samples, pixels)
    noise: list[float]  # the mean distance of two exact sets


def directions(pixels: int, seed: int) -> Tensor:
    random = torch.randn(pixels, PROJECTIONS, generator=torch.Generator().manual_seed(seed))
    return random / random.norm(dim=0)


def distance(a: Tensor, b: Tensor, projections: Tensor) -> float:
    """Sliced Wasserstein-2 of two sets of equal size (n, pixels)."""
    return float(((a @ projections).sort(0).values - (b @ projections).sort(0).values).square().mean().sqrt())


def patch_mixture(seed: int) -> GaussianMixture:
    """The benchmark's prior."""
    return fit_mixture(patches(seed), COMPONENTS, seed)


def make_case(
    prior: GaussianMixture,
    name: str,
    sigma_0: float,
    seed: int,
    projections: Tensor,
    measurements: int = MEASUREMENTS,
    samples: int = SAMPLES,
) -> Case:
    truth = prior.sample(measurements, seed=1000 + seed)
    problem = InverseProblem.simulate(make_operator(name, prior.image_shape), truth, sigma_0, seed)
    posteriors = [prior.posterior(problem[i : i + 1]) for i in range(measurements)]
    exact = [
        [posterior.sample(samples, seed=10_000 * seed + 100 * i + j).flatten(1) for j in range(EXACT_SETS)]
        for i, posterior in enumerate(posteriors)
    ]
    noise = [np.mean([distance(*pair, projections) for pair in combinations(sets, 2)]).item() for sets in exact]
    return Case(name, problem, posteriors, exact, noise)


def mode_error(samples: Tensor, posterior: GaussianMixture) -> float:
    """Total variation between the posterior's weights and the components that samples (n, C, H, W) belong to."""
    rotated = posterior._rotate(samples)
    share = torch.softmax(posterior._log_joint(rotated, posterior.eigen()[0][:, None].clamp(min=1e-8)), 0).mean(1)
    return float((share - posterior.weights).abs().sum() / 2)


def compare(case: Case, samples: Tensor, projections: Tensor) -> dict[str, Any]:
    """Means over the measurements, for samples (SAMPLES, measurements, C, H, W), and `ratios`, that of each."""
    rows = []
    for i, (sets, noise, posterior) in enumerate(zip(case.exact, case.noise, case.posteriors, strict=True)):
        ours, exact = samples[:, i].flatten(1), torch.cat(sets)
        std = exact.std(0).square().mean().sqrt()
        rows.append(
            {
                "ratio": np.mean([distance(ours, e, projections) for e in sets]) / noise,
                "std_ratio": float(ours.std(0).square().mean().sqrt() / std),
                "mean_error": float((ours.mean(0) - posterior.mean.flatten()).square().mean().sqrt() / std),
                "mode_error": mode_error(samples[:, i], posterior),
            }
        )
    means: dict[str, Any] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    return {**means, "ratios": [float(row["ratio"]) for row in rows]}


def steps(sampler: str) -> int | None:
    """The version of our fast sampler's steps: stored rows of others are measured again."""
    return STEPS_VERSION if sampler == "fast" else None


def exact_again(case: Case, seed: int) -> Tensor:
    """Another set of exact samples, others for each case: what a perfect sampler would get."""
    key = zlib.crc32(f"{case.name} {case.problem.sigma_0} {seed}".encode())
    drawn = [posterior.sample(SAMPLES, seed=key + i) for i, posterior in enumerate(case.posteriors)]
    return torch.stack(drawn, 1).reshape(SAMPLES, MEASUREMENTS, *case.problem.operator.image_shape)
