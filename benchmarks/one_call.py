"""Prior or sampler? Denoising, where one call of the network says what mean and variance the samples must have.

    python benchmarks/one_call.py --data FOLDER

Where y is the image with white noise of level sigma_0, the posterior mean is D(y), and the mean of the posterior
variances is sigma_0^2 times the mean derivative of D (Tweedie's formula and its second order). The samples come from
calls at other, smaller levels. With the exact prior of the first rows both must agree. With a network they agree only
as far as its answers at one level fit those at the others: what is missing then no sampler can mend.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from exact_priors import patch_mixture
from measure import print_table, store
from own_truths import data_and_prior, errors_and_variances, ratio_with_error
from snips import InverseProblem, make_operator
from snips.experiments.datasets import celeba
from snips.priors import Prior
from snips.samplers import fast
from snips.samplers.multistep import STEPS_VERSION

IMAGES, SAMPLES, EXACT_IMAGES, EXACT_SEED = 4, 24, 200, 1
SIGMAS, CALLS = (0.1, 0.4, 1.2), (50, 100)
PROBES, STEP = 16, 0.02  # directions for each image, and how far to go, in noise levels


def variance_by_one_call(prior: Prior, y: Tensor, sigma: float) -> Tensor:
    """sigma^2 tr(dD/dy) / n for each image, by differences along random signs."""
    random, found = torch.Generator().manual_seed(0), []
    for _ in range(PROBES):
        signs = torch.randint(0, 2, y.shape, generator=random).to(y) * 2 - 1
        up, down = (prior.denoise(y + way * STEP / 2 * sigma * signs, sigma) for way in (1, -1))
        found.append((signs * (up - down) / (STEP * sigma)).mean((1, 2, 3)))
    return sigma**2 * torch.stack(found).mean(0)


def rows_of(source: str, prior: Prior, exact: Prior, truth: Tensor, sigma: float) -> list[dict[str, Any]]:
    """`prior` draws the samples; `exact`, the same one without rounding, gives mean and variance by one call."""
    problem = InverseProblem.simulate(make_operator("denoise", tuple(truth.shape[1:])), truth, sigma, seed=0)
    mean, variance = exact.denoise(problem.y, sigma), variance_by_one_call(exact, problem.y, sigma)
    error = (mean - truth).square().mean((1, 2, 3))
    rows = []
    for nfe in CALLS:
        samples = fast(problem, prior, nfe=nfe, samples=SAMPLES, seed=0)
        off, spread = errors_and_variances(samples, mean)
        sampled_error, _ = errors_and_variances(samples, truth)
        row = {"prior": source, "sigma_0": sigma, "calls": nfe, "images": len(truth)}
        for name, pair in {
            "variance": (spread, variance),  # of samples over that of one call
            "off": (off, variance),  # squared distance of the two means over the variance
            "self": (variance, error),  # variance by one call over squared error of its mean: is the prior fair?
            "error": (sampled_error, error),  # squared error of the samples' mean over that of one call
        }.items():
            row[name], row[f"{name}_error"] = ratio_with_error(*pair)
        print(*row.values(), flush=True)
        rows.append(row)
    return rows


@torch.no_grad()
def main() -> None:
    data, network = data_and_prior(__doc__)
    mixture = patch_mixture(EXACT_SEED)
    drawn, faces = mixture.sample(EXACT_IMAGES, seed=3), celeba(data, IMAGES)
    rows = []
    for source, prior, truth in (("exact mixture", mixture, drawn), ("faces", network, faces)):
        exact = getattr(prior, "prior", prior)  # without the lower precision of its products
        for sigma in SIGMAS:
            rows += rows_of(source, prior, exact, truth, sigma)
    quantities = ("variance", "off", "self", "error")
    table = [
        [r["prior"], r["sigma_0"], r["calls"], *(f"{r[q]:.3f} ± {r[f'{q}_error']:.3f}" for q in quantities)]
        for r in rows
    ]
    print_table("samples / one call", ["prior", "sigma_0", "calls", *quantities], table)
    store("one_call", rows, network, steps=STEPS_VERSION)


if __name__ == "__main__":
    main()
