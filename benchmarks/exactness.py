"""How far samplers are from posteriors that are known exactly.

    python benchmarks/exactness.py                  distance to exact posteriors of image patches, table and plot
    python benchmarks/exactness.py --langevin       the same for the paper's 2,500 calls (takes long)
    python benchmarks/exactness.py --stationary     standard deviations at 64x64
    python benchmarks/exactness.py --calibration    coverage of 90 % intervals
    python benchmarks/exactness.py --seed 1 ...     other patches, mixtures, measurements and draws

Priors and distances are those of exact_priors.py, 64x64 images those of stationary.py.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable

import matplotlib
import numpy as np
from torch import Tensor

from exact_priors import FIVE, SAMPLES, SIZE, Case, compare, directions, exact_again, make_case, patch_mixture
from measure import RESULTS, print_table, store
from snips import InverseProblem, make_operator
from snips.metrics import calibration
from snips.samplers import fast, langevin
from stationary import stationary

matplotlib.use("Agg")
from matplotlib import pyplot

OTHERS = ("denoise", "inpaint")
SIGMAS_0 = (0.1, 0.04)
CALLS = (25, 50, 100, 200)
TARGETS = {25: 2.0, 50: 1.3, 100: 1.1}
DETAILS = ("std_ratio", "mean_error", "mode_error")


class Measured:
    """Rows of results, stored and printed one by one as they come; with `resume`, those stored earlier are kept."""

    def __init__(self, name: str, seed: int, resume: bool) -> None:
        self.name, self.projections = name, directions(SIZE**2, seed)
        self.rows = stored_rows(name) if resume else []

    def add(self, case: Case, sampler: str, calls: int, run: Callable[[], Tensor]) -> None:
        started = time.perf_counter()
        row = {"sampler": sampler, "calls": calls, "problem": case.name, "sigma_0": case.problem.sigma_0}
        if any(row.items() <= done.items() for done in self.rows):
            return
        self.rows.append({**row, **compare(case, run(), self.projections)})
        print(*row.values(), f"{self.rows[-1]['ratio']:.2f} ({time.perf_counter() - started:.0f} s)", flush=True)
        store(self.name, self.rows)


def stored_rows(name: str) -> list[dict]:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text())["results"] if file.is_file() else []


def fast_distances(seed: int, resume: bool) -> None:
    prior, measured = patch_mixture(seed), Measured(f"exactness_seed{seed}", seed, resume)
    for sigma_0 in SIGMAS_0:
        for name in (*FIVE, *OTHERS):
            case = make_case(prior, name, sigma_0, seed, measured.projections)
            measured.add(case, "exact", 0, lambda case=case: exact_again(case))
            for nfe in CALLS:
                options = {"nfe": nfe, "samples": SAMPLES, "seed": seed}
                measured.add(case, "fast", nfe, lambda case=case, o=options: fast(case.problem, prior, **o))


def langevin_distances(seed: int, resume: bool) -> None:
    prior, measured = patch_mixture(seed), Measured(f"exactness_langevin_seed{seed}", seed, resume)
    for name in FIVE:
        case = make_case(prior, name, 0.1, seed, measured.projections)
        options = {"samples": SAMPLES, "seed": seed}
        measured.add(case, "langevin", 2500, lambda case=case, o=options: langevin(case.problem, prior, **o))


def show_stored(seed: int) -> None:
    """Table and plot of all that was measured with this seed."""
    rows = stored_rows(f"exactness_seed{seed}") + stored_rows(f"exactness_langevin_seed{seed}")
    for sigma_0 in SIGMAS_0:
        show_distances([row for row in rows if row["sigma_0"] == sigma_0], sigma_0)
    plot(rows, seed)


def show_distances(rows: list[dict], sigma_0: float) -> None:
    table = []
    for kind in dict.fromkeys((row["sampler"], row["calls"]) for row in rows):
        mine = {row["problem"]: row for row in rows if (row["sampler"], row["calls"]) == kind}
        if not mine.keys() >= set(FIVE):
            continue  # still being measured
        mean = {key: float(np.mean([mine[p][key] for p in FIVE])) for key in ("ratio", *DETAILS)}
        target = f" (<= {TARGETS[kind[1]]})" if sigma_0 == 0.1 and kind[1] in TARGETS else ""
        problems = [f"{mine[p]['ratio']:.2f}" if p in mine else "" for p in (*FIVE, *OTHERS)]
        table.append([*kind, f"{mean['ratio']:.2f}{target}", *problems, *(f"{mean[key]:.3f}" for key in DETAILS)])
    columns = ["sampler", "calls", "five", *FIVE, *OTHERS, *DETAILS]
    print_table(f"distance / distance of exact sets, sigma_0 = {sigma_0}", columns, table)


def plot(rows: list[dict], seed: int) -> None:
    """Distance against calls, one curve for each sampler and noise level, averaged over the five problems."""
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for sampler, sigma_0 in dict.fromkeys((row["sampler"], row["sigma_0"]) for row in rows if row["calls"]):
        mine = [
            row for row in rows if (row["sampler"], row["sigma_0"]) == (sampler, sigma_0) and row["problem"] in FIVE
        ]
        calls = sorted({row["calls"] for row in mine})
        means = [np.mean([row["ratio"] for row in mine if row["calls"] == n]) for n in calls]
        axes.loglog(calls, means, "o-", label=f"{sampler}, sigma_0 = {sigma_0}")
    axes.axhline(1, color="black", linewidth=0.8, label="exact samples")
    axes.set_xticks([*CALLS, 2500], labels=[f"{n:,}" for n in (*CALLS, 2500)])
    axes.set_yticks([1, 1.5, 2, 3, 5], labels=["1", "1.5", "2", "3", "5"])
    axes.minorticks_off()
    axes.set_xlabel("calls of the denoiser for each sample")
    axes.set_ylabel("distance to the exact posterior / distance of exact sets")
    axes.legend()
    figure.savefig(RESULTS / f"exactness_seed{seed}.png", dpi=110, bbox_inches="tight")
    pyplot.close(figure)


def calibrate(seed: int, nfe: int, truths: int = 400, samples: int = 19) -> None:
    """Truths from the prior, their measurements, and how often 90 % intervals of 19 samples hold them."""
    prior, rows = patch_mixture(seed), []
    for name in (*FIVE, *OTHERS):
        truth = prior.sample(truths, seed=2000 + seed)
        problem = InverseProblem.simulate(make_operator(name, prior.image_shape), truth, 0.1, seed)
        drawn = fast(problem, prior, nfe=nfe, samples=samples, seed=seed)
        pixels = calibration.coverage(drawn, truth)
        per_image = pixels.inside.flatten(1).double().mean(1)
        error = float(per_image.std() / math.sqrt(truths))
        row: dict[str, object] = {"problem": name, "level": pixels.level, "pixels": f"{pixels.share:.3f} ± {error:.3f}"}
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
    parser.add_argument("--langevin", action="store_true", help="the paper's 2,500 calls (takes long)")
    parser.add_argument("--resume", action="store_true", help="keep the distances that are stored already")
    parser.add_argument("--stationary", action="store_true")
    parser.add_argument("--calibration", action="store_true")
    options = parser.parse_args()
    if options.stationary:
        stationary(options.seed, options.nfe)
    elif options.calibration:
        calibrate(options.seed, options.nfe)
    else:
        (langevin_distances if options.langevin else fast_distances)(options.seed, options.resume)
        show_stored(options.seed)


if __name__ == "__main__":
    main()
