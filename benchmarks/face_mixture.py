"""Would exact sampling restore faces better? PSNR of exact posterior samples beside those of the fast sampler.

    python benchmarks/face_mixture.py --data FOLDER

The prior is a mixture of Gaussians fitted to CelebA's training faces, grey and 32x32, and the truths are drawn from it:
the posterior is known exactly, and no error of a network is left. What remains between the two is the sampler's share
in the PSNR of the paper's Table 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from exact_priors import fit_mixture
from measure import print_table, store
from snips import InverseProblem, make_operator
from snips.experiments.published import TABLE_1
from snips.images import luminance
from snips.priors import GaussianMixture
from snips.samplers import fast
from snips.samplers.multistep import STEPS_VERSION
from snips.training.image_files import load_images

COMPONENTS, STEPS = 6, 10
TRUTHS, SAMPLES, SIGMA_0 = 64, 8, 0.1
CALLS = (25, 50, 100)


def faces(data: Path, cache: Path) -> Tensor:
    """All training faces, (n, 1024)."""
    images, _ = load_images([str(data / "celeba" / "img_align_celeba")], "celeba64", str(cache))
    small = [F.avg_pool2d(luminance(images.image(i)[None].double() / 255), 2) for i in range(len(images))]
    return torch.cat(small).flatten(1)


def restored(problem: InverseProblem, prior: GaussianMixture) -> dict[str, Tensor]:
    """Samples (SAMPLES, TRUTHS, 1, H, W) of each sampler."""
    exact = [prior.posterior(problem[i]).sample(SAMPLES, seed=i) for i in range(len(problem))]
    chosen = {"exact": torch.stack(exact, 1)}
    for nfe in CALLS:
        chosen[f"fast {nfe}"] = fast(problem, prior, nfe=nfe, samples=SAMPLES, seed=0)
    return chosen


def scores(samples: Tensor, truth: Tensor) -> dict[str, Tensor]:
    """For each truth, PSNR of the samples and of their mean; not clamped, as the mixture is not."""
    each = torch.stack([-10 * (s - truth).square().mean((1, 2, 3)).log10() for s in samples])
    mean = -10 * (samples.mean(0) - truth).square().mean((1, 2, 3)).log10()
    return {"samples": each.mean(0), "mean": mean, "std": samples.var(0).mean((1, 2, 3)).sqrt()}


def rows_of(name: str, prior: GaussianMixture) -> list[dict]:
    truth = prior.sample(TRUTHS, seed=1).float()
    problem = InverseProblem.simulate(make_operator(name, prior.image_shape), truth, SIGMA_0, seed=0)
    found = {sampler: scores(drawn, truth) for sampler, drawn in restored(problem, prior.float()).items()}
    rows = []
    for sampler, mine in found.items():
        row: dict[str, object] = {"problem": name, "sampler": sampler}
        row |= {key: float(value.mean()) for key, value in mine.items()}
        for key in ("samples", "mean"):
            difference = mine[key] - found["exact"][key]
            row[f"{key}_difference"] = float(difference.mean())
            row[f"{key}_error"] = float(difference.std() / TRUTHS**0.5)
        rows.append(row)
        print(*row.values(), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds celeba")
    parser.add_argument("--cache", type=Path, default=Path("cache"), help="where decoded images are kept")
    options = parser.parse_args()
    prior = fit_mixture(faces(options.data, options.cache), COMPONENTS, seed=0, steps=STEPS)
    rows = [row for name in TABLE_1 for row in rows_of(name, prior)]
    table = [
        [r["problem"], r["sampler"], *(f"{r[k]:.2f}" for k in ("samples", "mean")), f"{r['std']:.4f}"] for r in rows
    ]
    for line, r in zip(table, rows, strict=True):
        line += [f"{r[f'{k}_difference']:+.2f} ± {r[f'{k}_error']:.2f}" for k in ("samples", "mean")]
    columns = ["problem", "sampler", "samples dB", "mean dB", "std", "samples - exact", "mean - exact"]
    print_table(f"{TRUTHS} truths of a mixture of faces, {SAMPLES} samples each, sigma_0 = {SIGMA_0}", columns, table)
    store("face_mixture", rows, steps=STEPS_VERSION)


if __name__ == "__main__":
    main()
