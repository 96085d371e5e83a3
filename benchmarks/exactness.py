"""How far samplers are from posteriors that are known exactly.

    python benchmarks/exactness.py                  distance to exact posteriors of image patches, table and plot
    python benchmarks/exactness.py --stationary     standard deviations at 64x64
    python benchmarks/exactness.py --calibration    coverage of 90 % intervals
    python benchmarks/exactness.py --seed 1 ...     other patches, mixtures, measurements and draws

The priors are Gaussian mixtures fitted to 8x8 patches of photographs. A distance is the sliced Wasserstein-2 distance
of 1,000 samples to exact ones, divided by the mean distance of two exact sets: 1.0 is perfect.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageDraw
from skimage import data
from torch import Tensor

from measure import RESULTS, print_table, store
from snips import InverseProblem, make_operator
from snips.metrics import calibration
from snips.operators import Zero
from snips.priors import GaussianMixture, StationaryGaussian
from snips.samplers import fast, langevin

FIVE = ("sr4", "sr2", "deblur_uniform", "cs4", "cs8")
OTHERS = ("denoise", "inpaint")
SIGMAS_0 = (0.1, 0.04)
CALLS = (25, 50, 100, 200)
SAMPLES, PROJECTIONS, MEASUREMENTS, EXACT_SETS = 1000, 200, 4, 9
SIZE, COMPONENTS, PATCHES = 8, 10, 8000
PHOTOGRAPHS = (data.astronaut, data.coffee, data.chelsea, data.camera)
TARGETS = {25: 2.0, 50: 1.3, 100: 1.1}


# --- priors ---------------------------------------------------------------------------------------------------------


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
    """Expectation maximisation for a mixture of Gaussians; `floor` is added to all variances."""
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
    return GaussianMixture(weights[kept], means[kept], covariances[kept], (1, SIZE, SIZE))


# --- distances ------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """One problem with several measurements and, for each, exact samples."""

    name: str
    problem: InverseProblem
    posteriors: list[GaussianMixture]
    exact: list[list[Tensor]]  # for each measurement, EXACT_SETS of (SAMPLES, pixels)
    noise: list[float]  # the mean distance of two exact sets


def directions(pixels: int, seed: int) -> Tensor:
    random = torch.randn(pixels, PROJECTIONS, generator=torch.Generator().manual_seed(seed))
    return random / random.norm(dim=0)


def distance(a: Tensor, b: Tensor, projections: Tensor) -> float:
    """Sliced Wasserstein-2 of two sets of equal size (n, pixels)."""
    return float(((a @ projections).sort(0).values - (b @ projections).sort(0).values).square().mean().sqrt())


def make_case(prior: GaussianMixture, name: str, sigma_0: float, seed: int, projections: Tensor) -> Case:
    truth = prior.sample(MEASUREMENTS, seed=1000 + seed)
    problem = InverseProblem.simulate(make_operator(name, prior.image_shape), truth, sigma_0, seed)
    posteriors = [prior.posterior(problem[i : i + 1]) for i in range(MEASUREMENTS)]
    exact = [
        [posterior.sample(SAMPLES, seed=10_000 * seed + 100 * i + j).flatten(1) for j in range(EXACT_SETS)]
        for i, posterior in enumerate(posteriors)
    ]
    noise = [float(np.mean([distance(sets[0], other, projections) for other in sets[1:]])) for sets in exact]
    return Case(name, problem, posteriors, exact, noise)


def mode_error(samples: Tensor, posterior: GaussianMixture) -> float:
    """Total variation between the posterior's weights and the components that samples (n, C, H, W) belong to."""
    rotated = posterior._rotate(samples)
    share = torch.softmax(posterior._log_joint(rotated, posterior.eigen()[0][:, None].clamp(min=1e-8)), 0).mean(1)
    return float((share - posterior.weights).abs().sum() / 2)


def compare(case: Case, samples: Tensor, projections: Tensor) -> dict[str, float]:
    """Means over the measurements, for samples (SAMPLES, measurements, C, H, W)."""
    rows = []
    for i, (sets, noise, posterior) in enumerate(zip(case.exact, case.noise, case.posteriors, strict=True)):
        ours, exact = samples[:, i].flatten(1), torch.cat(sets)
        others = [e for e in sets if e is not ours]
        std = exact.std(0).square().mean().sqrt()
        rows.append(
            {
                "ratio": np.mean([distance(ours, e, projections) for e in others]) / noise,
                "std_ratio": float(ours.std(0).square().mean().sqrt() / std),
                "mean_error": float((ours.mean(0) - posterior.mean.flatten()).square().mean().sqrt() / std),
                "mode_error": mode_error(samples[:, i], posterior),
            }
        )
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def exact_again(case: Case) -> Tensor:
    """Another set of exact samples: what a perfect sampler would get."""
    image = case.problem.operator.image_shape
    drawn = [posterior.sample(SAMPLES, seed=77_000 + i) for i, posterior in enumerate(case.posteriors)]
    return torch.stack(drawn, 1).reshape(SAMPLES, MEASUREMENTS, *image)


def distances(seed: int, with_langevin: bool) -> None:
    prior = fit_mixture(patches(seed), COMPONENTS, seed)
    projections, rows = directions(SIZE**2, seed), []

    def add(case: Case, sampler: str, calls: int, run: Callable[[], Tensor]) -> None:
        started = time.perf_counter()
        row = {"sampler": sampler, "calls": calls, "problem": case.name, "sigma_0": case.problem.sigma_0}
        rows.append({**row, **compare(case, run(), projections)})
        print(*row.values(), f"{rows[-1]['ratio']:.2f} ({time.perf_counter() - started:.0f} s)", flush=True)
        store(f"exactness_seed{seed}", rows)

    for sigma_0 in SIGMAS_0:
        for name in (*FIVE, *OTHERS):
            case = make_case(prior, name, sigma_0, seed, projections)
            add(case, "exact", 0, lambda case=case: exact_again(case))
            for nfe in CALLS:
                options = {"nfe": nfe, "samples": SAMPLES, "seed": seed}
                add(case, "fast", nfe, lambda case=case, o=options: fast(case.problem, prior, **o))
    show_distances(rows)
    for name in FIVE if with_langevin else ():
        case = make_case(prior, name, 0.1, seed, projections)
        add(case, "langevin", 2500, lambda case=case: langevin(case.problem, prior, samples=SAMPLES, seed=seed))
    show_distances(rows)
    plot(rows, seed)


def show_distances(rows: list[dict]) -> None:
    kinds = list(dict.fromkeys((row["sampler"], row["calls"]) for row in rows))
    for sigma_0 in SIGMAS_0:
        table = []
        for kind in kinds:
            mine = {r["problem"]: r for r in rows if (r["sampler"], r["calls"]) == kind and r["sigma_0"] == sigma_0}
            if not mine:
                continue
            mean = {key: float(np.mean([mine[p][key] for p in FIVE])) for key in ("ratio", *DETAILS)}
            target = f"{mean['ratio']:.2f}" + (
                f" (<= {TARGETS[kind[1]]})" if sigma_0 == 0.1 and kind[1] in TARGETS else ""
            )
            problems = [f"{mine[p]['ratio']:.2f}" if p in mine else "" for p in (*FIVE, *OTHERS)]
            table.append([*kind, target, *problems, *(f"{mean[key]:.3f}" for key in DETAILS)])
        print_table(
            f"distance / distance of exact sets, sigma_0 = {sigma_0}",
            ["sampler", "calls", "five", *FIVE, *OTHERS, *DETAILS],
            table,
        )


DETAILS = ("std_ratio", "mean_error", "mode_error")


def plot(rows: list[dict], seed: int) -> None:
    """Distance against calls on logarithmic axes, one curve for each noise level, averaged over the five problems."""
    width, height, margin = 900, 560, 70
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)

    def at(calls: float, ratio: float) -> tuple[float, float]:
        x = margin + (math.log(calls / 20) / math.log(3000 / 20)) * (width - 2 * margin)
        return x, height - margin - math.log(ratio / 0.9) / math.log(10 / 0.9) * (height - 2 * margin)

    for ratio in (1, 1.5, 2, 3, 5, 10):
        draw.line([at(20, ratio), at(3000, ratio)], fill="black" if ratio == 1 else "lightgray")
        draw.text((margin - 40, at(20, ratio)[1] - 6), f"{ratio:g}", fill="black")
    for calls in (25, 50, 100, 200, 500, 1000, 2500):
        draw.text((at(calls, 1)[0] - 10, height - margin + 10), f"{calls}", fill="black")
    draw.text((margin, 10), "distance to the exact posterior / distance of exact sample sets", fill="black")
    draw.text((width // 2 - 60, height - 30), "calls of the denoiser", fill="black")
    for index, sigma_0 in enumerate(SIGMAS_0):
        for sampler, colour in (("fast", ("navy", "teal")[index]), ("langevin", ("darkred", "orange")[index])):
            points = []
            for calls in sorted({r["calls"] for r in rows if r["sampler"] == sampler}):
                chosen = [
                    r["ratio"]
                    for r in rows
                    if (r["sampler"], r["calls"], r["sigma_0"]) == (sampler, calls, sigma_0) and r["problem"] in FIVE
                ]
                if chosen:
                    points.append(at(calls, max(0.9, float(np.mean(chosen)))))
            if points:
                draw.line(points, fill=colour, width=3)
                for x, y in points:
                    draw.ellipse([x - 5, y - 5, x + 5, y + 5], fill=colour)
                draw.text((points[-1][0] - 60, points[-1][1] - 24), f"{sampler}, sigma_0 = {sigma_0}", fill=colour)
    image.save(RESULTS / f"exactness_seed{seed}.png")


# --- 64x64 ----------------------------------------------------------------------------------------------------------


def box_mask(size: int) -> Tensor:
    mask = torch.ones(size, size, dtype=torch.bool)
    mask[size // 4 : 3 * size // 4, size // 4 : 3 * size // 4] = False
    return mask


STATIONARY = {
    "zero": lambda: Zero((1, 64, 64)),
    "inpaint box": lambda: make_operator("inpaint", (1, 64, 64), mask=box_mask(64)),
    "colorize": lambda: make_operator("colorize", (3, 64, 64)),
    "mri": lambda: make_operator("mri", (1, 64, 64)),
    "cs4": lambda: make_operator("cs4", (1, 64, 64)),
}


def bands(samples: Tensor, centre: Tensor) -> dict[str, float]:
    """Root of the total variance of samples (n, C, H, W): all, and below, around and above some frequencies."""
    height, width = samples.shape[-2:]
    radius = torch.hypot(torch.fft.fftfreq(height)[:, None] * height, torch.fft.fftfreq(width) * width)
    power = torch.fft.fft2(samples.double() - centre, norm="ortho").abs().square().mean(0).sum(0)
    chosen = {"all": radius >= 0, "low": radius <= 2, "middle": (radius > 2) & (radius <= 10), "high": radius > 10}
    return {name: float(power[mask].sum().sqrt()) for name, mask in chosen.items()}


def stationary(seed: int, nfe: int, samples: int = 256, sigma_0: float = 0.1) -> None:
    rows = []
    for name, build in STATIONARY.items():
        operator = build()
        prior = StationaryGaussian.natural(operator.image_shape)
        problem = InverseProblem.simulate(operator, prior.sample(1, seed=seed), sigma_0, seed)
        if name == "zero":
            mean, exact = prior.mean, prior.sample(4 * samples, seed=seed + 5)
        else:
            posterior = prior.posterior(problem)
            mean, exact = posterior.mean, posterior.sample(samples, seed=seed + 5)
        ours = fast(problem, prior, nfe=nfe, samples=samples, seed=seed)[:, 0]
        truth = bands(exact, mean.double())
        found = bands(ours, ours.double().mean(0))
        shift = float((ours.mean(0) - mean).square().mean().sqrt() / exact.std(0).square().mean().sqrt())
        rows.append([name, *(f"{found[band] / truth[band]:.3f}" for band in truth), f"{shift:.3f}"])
        print(*rows[-1], flush=True)
    columns = ["problem", "std / exact", "|f| <= 2", "2 .. 10", "> 10", f"mean error (noise {samples**-0.5:.3f})"]
    print_table(f"64x64 stationary Gaussian, {nfe} calls, {samples} samples", columns, rows)
    store(f"exactness_stationary_{nfe}_seed{seed}", [dict(zip(columns, row, strict=True)) for row in rows])


# --- calibration ----------------------------------------------------------------------------------------------------


def calibrate(seed: int, nfe: int, truths: int = 400, samples: int = 19) -> None:
    """Truths from the prior, their measurements, and how often 90 % intervals of 19 samples hold them."""
    prior, rows = fit_mixture(patches(seed), COMPONENTS, seed), []
    for name in (*FIVE, *OTHERS):
        truth = prior.sample(truths, seed=2000 + seed)
        problem = InverseProblem.simulate(make_operator(name, prior.image_shape), truth, 0.1, seed)
        drawn = fast(problem, prior, nfe=nfe, samples=samples, seed=seed)
        pixels = calibration.coverage(drawn, truth)
        row: dict[str, object] = {"problem": name, "level": pixels.level, "pixels": pixels.share}
        for key, summary in calibration.SUMMARIES.items():
            inside = calibration.coverage(summary(drawn), summary(truth)).share
            rank = calibration.ranks(summary(drawn), summary(truth))
            row[key] = f"{inside:.3f} (p {calibration.uniformity(rank, samples):.2f})"
        rows.append(row)
        print(*row.values(), flush=True)
    error = math.sqrt(0.09 / truths)
    title = f"coverage of 90 % intervals, {nfe} calls; {truths} truths: a summary's standard error is {error:.3f}"
    print_table(title, list(rows[0]), [list(row.values()) for row in rows])
    store(f"exactness_calibration_{nfe}_seed{seed}", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nfe", type=int, default=100, help="calls, for --stationary and --calibration")
    parser.add_argument("--langevin", action="store_true", help="also the paper's 2,500 calls (takes long)")
    parser.add_argument("--stationary", action="store_true")
    parser.add_argument("--calibration", action="store_true")
    options = parser.parse_args()
    if options.stationary:
        stationary(options.seed, options.nfe)
    elif options.calibration:
        calibrate(options.seed, options.nfe)
    else:
        distances(options.seed, options.langevin)


if __name__ == "__main__":
    main()
