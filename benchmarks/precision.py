"""Products in bfloat16: what they save, and what they change in denoised faces and in samples of faces.

    python benchmarks/precision.py --data FOLDER

The same images, noise and random streams for both precisions. Weights, images and the sampler stay in float32; only the
products inside the network have 8 instead of 24 bits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor

from measure import print_table, seconds, store
from snips import InverseProblem, load_prior, make_operator
from snips.allocator import keep_freed_memory
from snips.experiments.datasets import celeba
from snips.experiments.published import SIGMA_CELEBA, TABLE_1
from snips.metrics import psnr
from snips.priors import Prior
from snips.priors.precision import PRECISIONS, with_precision
from snips.samplers import fast
from snips.samplers.multistep import STEPS_VERSION

IMAGES, SAMPLES = 8, 8
SIGMAS = (0.01, 0.05, 0.2, 1.0)


def denoised(prior: Prior, images: Tensor, sigma: float) -> Tensor:
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
    return psnr(prior.denoise(images + sigma * noise, sigma), images)


def sampled(prior: Prior, problem: InverseProblem) -> tuple[Tensor, Tensor]:
    """PSNR of the samples and of their mean, for each image."""
    assert problem.truth is not None, "it was simulated"
    samples = fast(problem, prior, samples=SAMPLES, seed=0, chunk=SAMPLES).clamp(0, 1)
    each = torch.stack([psnr(one, problem.truth) for one in samples])
    return each.mean(0), psnr(samples.mean(0), problem.truth)


def row_of(name: str, scores: dict[str, Tensor]) -> dict[str, object]:
    """Both means over images, and their difference with its standard error."""
    full, low = (scores[precision] for precision in PRECISIONS)
    change = low - full
    row = {"what": name, **{precision: float(values.mean()) for precision, values in scores.items()}}
    row |= {"difference": float(change.mean()), "error": float(change.std() / len(change) ** 0.5)}
    print(*row.values(), flush=True)
    return row


def call_seconds(prior: Prior, images: Tensor) -> float:
    return seconds(lambda: prior.denoise(images, 0.1), repeat=11)


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds celeba")
    keep_freed_memory()
    images = celeba(parser.parse_args().data, IMAGES)
    priors = {precision: with_precision(load_prior("faces"), precision) for precision in PRECISIONS}
    full, low = (call_seconds(prior, images) for prior in priors.values())
    rows = [
        row_of(f"denoised, sigma {sigma:g}", {name: denoised(prior, images, sigma) for name, prior in priors.items()})
        for sigma in SIGMAS
    ]
    for name in TABLE_1:
        problem = InverseProblem.simulate(make_operator(name, tuple(images.shape[1:])), images, SIGMA_CELEBA, seed=0)
        found = {precision: sampled(prior, problem) for precision, prior in priors.items()}
        rows.append(row_of(f"{name}, samples", {precision: scores[0] for precision, scores in found.items()}))
        rows.append(row_of(f"{name}, mean of {SAMPLES}", {precision: scores[1] for precision, scores in found.items()}))
    table = [
        [r["what"], *(f"{r[p]:.2f}" for p in PRECISIONS), f"{r['difference']:+.3f} ± {r['error']:.3f}"] for r in rows
    ]
    print_table(f"PSNR in dB, {IMAGES} faces, sigma_0 = {SIGMA_CELEBA}", ["", *PRECISIONS, "difference"], table)
    print(f"a call for {IMAGES} images is {full / low:.2f} times as fast in {PRECISIONS[1]}")
    store("precision", {"call_speedup": full / low, "rows": rows}, steps=STEPS_VERSION)


if __name__ == "__main__":
    main()
