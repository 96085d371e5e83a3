"""Prior or sampler? Truths drawn from the network's own prior, beside real faces.

    python benchmarks/own_truths.py --data FOLDER

Unconditional samples of the prior (H = 0) serve as truths. For them the network is the right prior, so posterior
samples must scatter as much as the mean of many of them errs, whatever the problem: what is missing is the sampler's
fault. With the same sampler, what is missing for faces of CelebA is the prior's.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from measure import RESULTS, print_table, store
from snips import InverseProblem, load_prior, make_operator
from snips.experiments.datasets import celeba
from snips.experiments.published import SIGMA_CELEBA, TABLE_1
from snips.metrics import psnr
from snips.metrics.calibration import coverage
from snips.operators import Zero
from snips.priors import Prior
from snips.priors.digest import weights_digest
from snips.priors.precision import PRECISIONS, with_precision
from snips.samplers import fast
from snips.samplers.multistep import STEPS_VERSION

IMAGES, SAMPLES = 16, 19  # from the lowest to the highest of 19 samples is a 90 % interval
SHAPE = (3, 64, 64)
LEVEL = 0.9
UNFINISHED = "own_truths.unfinished"


def own_truths(prior: Prior, count: int) -> Tensor:
    """Samples of the prior alone: nothing is measured."""
    nothing = Zero(SHAPE)
    problem = InverseProblem(nothing, torch.zeros(1, *nothing.measurement_shape), SIGMA_CELEBA)
    return fast(problem, prior, samples=count, seed=1)[:, 0]


def errors_and_variances(samples: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """For each image: squared error of the mean of infinitely many samples (K, B, C, H, W), and their variance.

    The mean of K samples errs by var / K more, which is taken off.
    """
    variance = samples.var(0)
    error = (samples.mean(0) - truth).square() - variance / len(samples)
    return error.mean((1, 2, 3)), variance.mean((1, 2, 3))


def ratio_with_error(numerator: Tensor, denominator: Tensor) -> tuple[float, float]:
    """The ratio of two means over images, and its standard error by leaving out one image at a time."""
    n = len(numerator)
    left_out = (numerator.sum() - numerator) / (denominator.sum() - denominator)
    error = ((n - 1) / n * (left_out - left_out.mean()).square().sum()).sqrt()
    return float(numerator.sum() / denominator.sum()), float(error)


def row_of(name: str, source: str, truth: Tensor, prior: Prior) -> dict[str, object]:
    problem = InverseProblem.simulate(make_operator(name, SHAPE), truth, SIGMA_CELEBA, seed=0)
    samples = fast(problem, prior, samples=SAMPLES, seed=0, chunk=SAMPLES)
    error, variance = errors_and_variances(samples, truth)
    ratio, uncertainty = ratio_with_error(variance, error)
    each = coverage(samples, truth, LEVEL).inside.double().mean((1, 2, 3))
    row = {"problem": name, "truths": source, "images": len(truth), "error": float(error.mean())}
    row |= {"variance": float(variance.mean()), "ratio": ratio, "ratio_error": uncertainty}
    row |= {"coverage": float(each.mean()), "coverage_error": float(each.std() / len(each) ** 0.5)}
    row["psnr_samples"] = float(torch.stack([psnr(one, truth) for one in samples]).mean())
    print(*row.values(), flush=True)
    return row


def data_and_prior(description: str | None) -> tuple[Path, Prior]:
    """What the command line asks for: the folder of the images, and `faces` in a precision."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds celeba")
    parser.add_argument("--precision", default="float32", help=", ".join(PRECISIONS))
    options = parser.parse_args()
    return options.data, with_precision(load_prior("faces"), options.precision)


@torch.no_grad()
def main() -> None:
    data, prior = data_and_prior(__doc__)
    truths = {"the prior's own": own_truths(prior, IMAGES), "CelebA": celeba(data, IMAGES)}
    rows = rows_so_far(prior)
    for name, (source, truth) in product(TABLE_1, truths.items()):
        if (name, source) not in [(row["problem"], row["truths"]) for row in rows]:
            rows.append(row_of(name, source, truth, prior))
            store(UNFINISHED, rows, prior, steps=STEPS_VERSION)
    table = [
        [r["problem"], r["truths"], *(f"{r[k]:.3f} ± {r[f'{k}_error']:.3f}" for k in ("ratio", "coverage"))]
        for r in rows
    ]
    title = f"{IMAGES} truths, {SAMPLES} samples each, sigma_0 = {SIGMA_CELEBA}"
    print_table(title, ["problem", "truths", "variance / error", f"coverage (exact: {LEVEL})"], table)
    store("own_truths", rows, prior, steps=STEPS_VERSION)
    (RESULTS / f"{UNFINISHED}.json").unlink()


def rows_so_far(prior: Prior) -> list[dict[str, object]]:
    """Of a run that was stopped, if it had the same weights and steps: each row takes minutes."""
    file = RESULTS / f"{UNFINISHED}.json"
    record = json.loads(file.read_text()) if file.is_file() else {}
    same = (record.get("weights"), record.get("steps")) == (weights_digest(prior), STEPS_VERSION)
    return record["results"] if same else []


if __name__ == "__main__":
    main()
