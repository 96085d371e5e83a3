"""The samplers of deepinv beside ours: same denoiser, same operator, same number of calls, exact posteriors.

    python benchmarks/peers.py             sweep each method's knobs, then measure its default and its best setting
    python benchmarks/peers.py --nfe 50    one number of calls only

Needs deepinv 0.5, `pip install '.[deepinv]'`; beside a CPU build of torch:

    pip install --no-deps deepinv==0.5.0 torchvision==0.28.0 torchmetrics lightning-utilities
    pip install matplotlib tqdm einops requests h5py natsort

Priors and distances are those of exact_priors.py. The peers' settings, and the constants of `fast`, were chosen with
other measurements than the final ones. What is measured already is kept in benchmarks/results/peers.json and not
repeated, but for `fast` where its steps have changed, and for a sweep of other measurements; delete the file to begin
anew. A whole run leaves only the rows that it needed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exact_priors import FIVE, SIZE, Case, compare, directions, make_case, patch_mixture, steps
from measure import RESULTS, print_table, store
from peer_methods import METHODS, SIGMA_0, Setting, draw
from snips import InverseProblem, make_operator
from snips.metrics import calibration
from snips.priors import GaussianMixture

CALLS, SWEEP_CALLS = (25, 50, 100), 50
SAMPLES, MEASUREMENTS, SEED = 500, 4, 1
SWEEP_SAMPLES, SWEEP_MEASUREMENTS, SWEEP_SEED = 250, 2, 100
TIMED_CALLS, TIMED_ROUNDS, TIMED_PROBLEM = 25, 3, "sr4"
TRUTHS, INTERVAL_SAMPLES = 50, 19


class Results:
    """Rows by what they measured; each is stored at once and never measured again."""

    def __init__(self) -> None:
        file = RESULTS / "peers.json"
        stored = json.loads(file.read_text())["results"] if file.is_file() else []
        self.rows: dict[str, dict[str, Any]] = {self.key(row): row for row in stored if self.current(row)}
        self.asked: dict[str, None] = {}  # keys, in the order of the run

    @staticmethod
    def current(row: dict[str, Any]) -> bool:
        """Whether it would be measured in the same way now."""
        measurements = SWEEP_MEASUREMENTS if row["kind"] == "sweep" else None
        return row.get("steps") == steps(row["method"]) and row.get("measurements") == measurements

    @staticmethod
    def key(row: dict[str, Any]) -> str:
        return json.dumps([row[name] for name in ("kind", "method", "setting", "nfe", "problem")])

    def measure(self, row: dict[str, Any], run: Callable[[], dict[str, float]]) -> dict[str, Any]:
        key = self.key(row)
        self.asked[key] = None
        if key not in self.rows:
            found = {"steps": steps(row["method"]), **run()}
            self.rows[key] = {**row, **{name: value for name, value in found.items() if value is not None}}
            store("peers", list(self.rows.values()))
            print(*self.rows[key].values(), flush=True)
        return self.rows[key]

    def forget_others(self) -> None:
        """After a whole run: rows that it did not ask for are of settings no longer swept, or no longer the best."""
        kept = {key: self.rows[key] for key in self.asked}
        if list(kept) != list(self.rows):
            self.rows = kept
            store("peers", list(kept.values()))


def distance(row: dict[str, Any], prior: GaussianMixture, case: Case, samples: int, projections: Tensor) -> dict:
    drawn, calls = draw(row["method"], row["setting"], row["nfe"], prior, case.problem, samples)
    found = compare(case, drawn, projections) if torch.isfinite(drawn).all() else {"ratio": float("inf")}
    return {**found, "calls": calls}


def coverage(row: dict[str, Any], prior: GaussianMixture) -> dict:
    truth = prior.sample(TRUTHS, seed=3000)
    problem = InverseProblem.simulate(make_operator(row["problem"], prior.image_shape), truth, SIGMA_0, seed=1)
    drawn, calls = draw(row["method"], row["setting"], row["nfe"], prior, problem, INTERVAL_SAMPLES)
    found = calibration.coverage(drawn, truth)
    return {"coverage": found.share, "level": found.level, "calls": calls}


def rows_for(kind: str, method: str, setting: Setting, nfe: int) -> Iterator[dict[str, Any]]:
    more = {"measurements": SWEEP_MEASUREMENTS} if kind == "sweep" else {}
    for problem in FIVE:
        yield {"kind": kind, "method": method, "setting": setting, "nfe": nfe, "problem": problem, **more}


def best_settings(results: Results, prior: GaussianMixture, projections: Tensor) -> dict[str, list[Setting]]:
    """For each method its default and the setting with the smallest mean distance; one entry where they agree."""
    options = (SWEEP_SEED, projections, SWEEP_MEASUREMENTS, SWEEP_SAMPLES)
    cases = {name: make_case(prior, name, SIGMA_0, *options) for name in FIVE}
    chosen: dict[str, list[Setting]] = {"fast": [{}]}
    for method, (_, settings) in METHODS.items():
        scores = []
        for setting in settings:
            rows = [
                results.measure(
                    row, lambda row=row: distance(row, prior, cases[row["problem"]], SWEEP_SAMPLES, projections)
                )
                for row in rows_for("sweep", method, setting, SWEEP_CALLS)
            ]
            scores.append(np.mean([row["ratio"] for row in rows]))
        best = settings[int(np.argmin(scores))]
        chosen[method] = [{}] if best == {} else [{}, best]
    return chosen


def times(results: Results, chosen: dict[str, list[Setting]], prior: GaussianMixture) -> dict[str, float]:
    """Time of a call with all that belongs to it over that of the bare denoiser: all in one go, or none."""
    wanted = [
        {"kind": "time", "method": method, "setting": setting, "nfe": TIMED_CALLS, "problem": TIMED_PROBLEM}
        for method, settings in chosen.items()
        for setting in settings
    ]
    found: list[float] = []
    if any(results.key(row) not in results.rows for row in wanted):
        found = _over_bare(wanted, prior)
        for row in wanted:
            results.rows.pop(results.key(row), None)
    stored = [results.measure(row, lambda i=i: {"over_bare": found[i]}) for i, row in enumerate(wanted)]
    return {json.dumps([row["method"], row["setting"]]): row["over_bare"] for row in stored}


def _over_bare(rows: list[dict[str, Any]], prior: GaussianMixture) -> list[float]:
    """The fastest of some rounds, in which the methods take turns: a busy machine slows all of them alike."""
    truth = prior.sample(1, seed=3000)
    problem = InverseProblem.simulate(make_operator(TIMED_PROBLEM, prior.image_shape), truth, SIGMA_0, seed=1)
    images = prior.sample(SAMPLES, seed=3001)  # as the prior expects them: denoising what it finds absurd takes longer
    images = images + SIGMA_0 * torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
    found = []
    for _ in range(TIMED_ROUNDS):
        bare = _seconds(lambda: [prior.denoise(images, SIGMA_0) for _ in range(TIMED_CALLS)]) / TIMED_CALLS
        found.append([bare, *(_seconds_per_call(row, prior, problem) for row in rows)])
    bare, *others = np.min(found, axis=0).tolist()
    return [seconds / bare for seconds in others]


def _seconds_per_call(row: dict[str, Any], prior: GaussianMixture, problem: InverseProblem) -> float:
    calls = 0

    def run() -> None:
        nonlocal calls
        calls = draw(row["method"], row["setting"], row["nfe"], prior, problem, SAMPLES)[1]

    return _seconds(run) / calls


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def final(
    results: Results,
    chosen: dict[str, list[Setting]],
    prior: GaussianMixture,
    nfe: int,
    projections: Tensor,
    over_bare: dict[str, float],
):
    """A table row for each method and setting: mean distance, its parts, coverage, time."""
    cases = {name: make_case(prior, name, SIGMA_0, SEED, projections, MEASUREMENTS, SAMPLES) for name in FIVE}
    for method, settings in chosen.items():
        for setting in settings:
            far = [
                results.measure(row, lambda row=row: distance(row, prior, cases[row["problem"]], SAMPLES, projections))
                for row in rows_for("distance", method, setting, nfe)
            ]
            held = [
                results.measure(row, lambda row=row: coverage(row, prior))
                for row in rows_for("coverage", method, setting, nfe)
            ]
            label = ", ".join(f"{key}={value}" for key, value in setting.items()) or "default"
            shares = [f"{row['coverage']:.2f}" for row in held]
            mean = f"{np.mean([row['ratio'] for row in far]):.2f}"
            cost = f"{over_bare[json.dumps([method, setting])]:.1f}"
            yield [
                method,
                label,
                far[0]["calls"],
                mean,
                *(f"{row['ratio']:.2f}" for row in far),
                " ".join(shares),
                cost,
            ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nfe", type=int, choices=CALLS)
    options = parser.parse_args()
    prior, projections, results = patch_mixture(SEED), directions(SIZE**2, 0), Results()
    chosen = best_settings(results, prior, projections)
    columns = ["method", "setting", "calls", "five", *FIVE, "coverage of 90 %, each problem", "time / bare"]
    over_bare = times(results, chosen, prior)
    for nfe in (options.nfe,) if options.nfe else CALLS:
        table = list(final(results, chosen, prior, nfe, projections, over_bare))
        print_table(f"distance / distance of exact sets, {SAMPLES} samples, {nfe} calls", columns, table)
    if not options.nfe:
        results.forget_others()


if __name__ == "__main__":
    main()
