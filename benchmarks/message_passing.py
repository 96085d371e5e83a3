"""Prior or sampler? The mean of samples of faces beside an estimate that draws no samples, with the same network.

    python benchmarks/message_passing.py --data FOLDER

For random projections, vector approximate message passing (Rangan, Schniter and Fletcher 2019) finds the posterior mean
by calling the denoiser on images whose noise is white and of a known level. It shares nothing with the fast sampler
but the network. Where both give the same PSNR, the network's errors are what limits it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from measure import print_table, store
from own_truths import data_and_prior, errors_and_variances
from snips import InverseProblem, make_operator
from snips.experiments.datasets import celeba
from snips.metrics import psnr
from snips.priors import Prior
from snips.samplers import fast
from snips.samplers.multistep import STEPS_VERSION

IMAGES, SAMPLES, SIGMA_0 = 8, 8, 0.1
PROBLEMS = ("cs4", "cs8", "cs16")
STEPS, DAMPING = 50, 0.25  # with 0.5 it diverges for cs8 and cs16; 0.15 ends in the same
PRIOR_VARIANCE = 0.06  # of pixels around grey, before anything is known

Error = Callable[[float], float]  # variance of the noise -> mean squared error of the denoiser


def error_of(prior: Prior, images: Tensor) -> Error:
    """The denoiser's error on images with white noise, between levels by interpolation in the logarithms."""
    sigmas = np.geomspace(0.03, 3, 14)
    random = torch.Generator().manual_seed(1)
    errors = []
    for sigma in sigmas:
        noisy = images + sigma * torch.randn(images.shape, generator=random)
        errors.append(float((prior.denoise(noisy, float(sigma)) - images).square().mean()))
    return lambda variance: float(np.exp(np.interp(np.log(variance) / 2, np.log(sigmas), np.log(errors))))


def message_passing(problem: InverseProblem, prior: Prior, error: Error) -> tuple[Tensor, float]:
    """The estimate of x after STEPS calls of the denoiser, and the noise level that it saw in the last."""
    H, y_bar, sigma_0 = problem.operator, problem.operator.Ut(problem.y), problem.sigma_0
    s = H.singular_values.expand(y_bar.shape[1:])
    centre, variance, seen = torch.full((len(problem), *H.image_shape), 0.5), PRIOR_VARIANCE, 0.0
    denoised = centre
    for step in range(STEPS):
        # Given y and x ~ N(centre, variance): the posterior, and what y alone added to it.
        spread = 1 / (s**2 / sigma_0**2 + 1 / variance)
        linear = H.V(spread * (s * y_bar / sigma_0**2 + H.Vt(centre) / variance))
        mean_spread = float(spread.mean())
        seen = 1 / (1 / mean_spread - 1 / variance)
        noisy = seen * (linear / mean_spread - centre / variance)
        # Given x with white noise: the denoised image, and what the prior alone added to it.
        denoised, left = prior.denoise(noisy, seen**0.5), error(seen)
        following = 1 / (1 / left - 1 / seen)
        weight = DAMPING if step else 1.0
        centre = torch.lerp(centre, following * (denoised / left - noisy / seen), weight)
        variance = (weight * following**0.5 + (1 - weight) * variance**0.5) ** 2
    return denoised, seen**0.5


def of_infinitely_many(samples: Tensor, truth: Tensor) -> Tensor:
    """PSNR that the mean of more and more samples (K, B, C, H, W) tends to, for each image."""
    return -10 * errors_and_variances(samples.clamp(0, 1), truth)[0].log10()


def row_of(name: str, images: Tensor, prior: Prior, error: Error) -> dict[str, object]:
    problem = InverseProblem.simulate(make_operator(name, (3, 64, 64)), images, SIGMA_0, seed=0)
    estimate, seen = message_passing(problem, prior, error)
    samples = fast(problem, prior, samples=SAMPLES, chunk=SAMPLES)
    row = {"problem": name, "images": len(images), "sigma_seen": seen}
    row["message_passing"] = float(psnr(estimate, images).mean())
    row["mean_of_samples"] = float(psnr(samples.clamp(0, 1).mean(0), images).mean())
    row["mean_of_infinitely_many"] = float(of_infinitely_many(samples, images).mean())
    print(*row.values(), flush=True)
    return row


@torch.no_grad()
def main() -> None:
    data, prior = data_and_prior(__doc__)
    images = celeba(data, 4 * IMAGES)
    error = error_of(prior, images[IMAGES:])
    rows = [row_of(name, images[:IMAGES], prior, error) for name in PROBLEMS]
    keys = ("message_passing", "mean_of_infinitely_many", "mean_of_samples")
    table = [[r["problem"], f"{r['sigma_seen']:.3f}", *(f"{r[key]:.2f}" for key in keys)] for r in rows]
    columns = ["problem", "sigma seen", "message passing dB", "mean of infinitely many dB", f"mean of {SAMPLES} dB"]
    print_table(f"{IMAGES} faces, sigma_0 = {SIGMA_0}", columns, table)
    store("message_passing", rows, prior, steps=STEPS_VERSION)


if __name__ == "__main__":
    main()
