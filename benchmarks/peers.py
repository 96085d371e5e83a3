"""The samplers of deepinv beside ours: same denoiser, same operator, same number of calls, exact posteriors.

    python benchmarks/peers.py             sweep each method's knobs, then measure its default and its best setting
    python benchmarks/peers.py --nfe 50    for one number of calls only

Needs deepinv 0.5, `pip install '.[deepinv]'`; beside a CPU build of torch:

    pip install --no-deps deepinv==0.5.0 torchvision==0.28.0 torchmetrics lightning-utilities
    pip install matplotlib tqdm einops requests h5py natsort

Priors and distances are those of exact_priors.py. The peers' settings are chosen for each number of calls with the
mixture that the constants of `fast` were chosen with; the final ones were used for neither. What is measured already is
kept in benchmarks/results/peers.json and not repeated, but for `fast` where its steps have changed; delete the file to
begin anew. A whole run leaves only the rows that it needed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch

from exact_priors import FIVE, SIZE, Case, compare, directions, make_case, patch_mixture, steps
from measure import RESULTS, print_table, store
from peer_methods import METHODS, SIGMA_0, Setting, draw
from snips import InverseProblem, make_operator
from snips.metrics import calibration
from snips.priors import GaussianMixture

CALLS, MEASUREMENTS = (25, 50, 100), 4
SAMPLES, MIXTURES = 500, (4, 5, 6)
SWEEP_SAMPLES, SWEEP_MIXTURE, SWEEP_SEED = 250, 0, 100
TIMED_CALLS, TIMED_ROUNDS, TIMED_PROBLEM = 25, 3, "sr4"
TRUTHS, INTERVAL_SAMPLES = 50, 19


class Results:
    """Rows by what they measured; each is stored at once and never measured again."""

    def __init__(self) -> None:
        file = RESULTS / "peers.json"
        stored = json.loads(file.read_text())["results"] if file.is_file() else []
        current = [row for row in stored if row.get("steps") == steps(row["method"])]
        self.rows: dict[str, dict[str, Any]] = {self.key(row): row for row in current}
        self.asked: dict[str, None] = {}  # keys, in the order of the run

    @staticmethod
    def key(row: dict[str, Any]) -> str:
        return json.dumps([row.get(name) for name in ("kind", "mixture", "method", "setting", "nfe", "problem")])

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


class Bench:
    """One mixture with measurements of all problems and their exact samples."""

    def __init__(self, mixture: int, seed: int, samples: int) -> None:
        self.mixture, self.seed, self.samples = mixture, seed, samples
        self.projections = directions(SIZE**2, 0)

    @cached_property
    def prior(self) -> GaussianMixture:
        return patch_mixture(self.mixture)

    @cached_property
    def cases(self) -> dict[str, Case]:
        options = (SIGMA_0, self.seed, self.projections, MEASUREMENTS, self.samples)
        return {name: make_case(self.prior, name, *options) for name in FIVE}

    def distance(self, row: dict[str, Any]) -> dict[str, Any]:
        case = self.cases[row["problem"]]
        drawn, calls = draw(row["method"], row["setting"], row["nfe"], self.prior, case.problem, self.samples)
        found = compare(case, drawn, self.projections) if torch.isfinite(drawn).all() else {"ratio": float("inf")}
        return {**found, "calls": calls}


def coverage(row: dict[str, Any], prior: GaussianMixture) -> dict[str, Any]:
    truth = prior.sample(TRUTHS, seed=3000)
    problem = InverseProblem.simulate(make_operator(row["problem"], prior.image_shape), truth, SIGMA_0, seed=1)
    drawn, calls = draw(row["method"], row["setting"], row["nfe"], prior, problem, INTERVAL_SAMPLES)
    found = calibration.coverage(drawn, truth)
    return {"coverage": found.share, "level": found.level, "calls": calls}


def rows_for(kind: str, mixture: int, method: str, setting: Setting, nfe: int) -> Iterator[dict[str, Any]]:
    for problem in FIVE:
        row = {"kind": kind, "mixture": mixture, "method": method, "setting": setting}
        yield {**row, "nfe": nfe, "problem": problem}


Chosen = dict[str, list[Setting]]


def best_settings(results: Results, bench: Bench, nfe: int) -> Chosen:
    """For each method its default and the setting with the smallest mean distance; one entry where they agree."""
    chosen: Chosen = {"fast": [{}]}
    for method, (_, settings) in METHODS.items():
        scores = []
        for setting in settings:
            rows = rows_for("sweep", SWEEP_MIXTURE, method, setting, nfe)
            far = [results.measure(row, lambda row=row: bench.distance(row))["ratio"] for row in rows]
            scores.append(np.mean(far))
        best = settings[int(np.argmin(scores))]
        chosen[method] = [{}] if best == {} else [{}, best]
    return chosen


def times(results: Results, chosen: list[Chosen], bench: Bench) -> dict[str, float]:
    """Time of a call with all that belongs to it over that of the bare denoiser: all in one go, or none."""
    named = {_name(method, setting): (method, setting) for each in chosen for method, setting in _pairs(each)}
    wanted = [
        {"kind": "time", "method": method, "setting": setting, "nfe": TIMED_CALLS, "problem": TIMED_PROBLEM}
        for method, setting in named.values()
    ]
    found: list[float] = []
    if any(results.key(row) not in results.rows for row in wanted):
        found = _over_bare(wanted, bench.prior)
        for row in wanted:
            results.rows.pop(results.key(row), None)
    stored = [results.measure(row, lambda i=i: {"over_bare": found[i]}) for i, row in enumerate(wanted)]
    return {name: row["over_bare"] for name, row in zip(named, stored, strict=True)}


def _pairs(chosen: Chosen) -> Iterator[tuple[str, Setting]]:
    return ((method, setting) for method, settings in chosen.items() for setting in settings)


def _name(method: str, setting: Setting) -> str:
    return json.dumps([method, setting])


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
    results: Results, chosen: Chosen, benches: dict[int, Bench], nfe: int, over_bare: dict[str, float]
) -> Iterator[list[Any]]:
    """A table row for each method and setting: mean distance, its parts, coverage, time."""
    for method, setting in _pairs(chosen):
        far, held = [], []
        for mixture, bench in benches.items():
            for row in rows_for("distance", mixture, method, setting, nfe):
                far.append(results.measure(row, lambda row=row, bench=bench: bench.distance(row)))
            for row in rows_for("coverage", mixture, method, setting, nfe):
                held.append(results.measure(row, lambda row=row, bench=bench: coverage(row, bench.prior)))
        label = ", ".join(f"{key}={value}" for key, value in setting.items()) or "default"
        each = [f"{_of(far, problem, 'ratio'):.2f}" for problem in FIVE]
        shares = [f"{_of(held, problem, 'coverage'):.2f}" for problem in FIVE]
        cost = f"{over_bare[_name(method, setting)]:.1f}"
        mean = f"{np.mean([row['ratio'] for row in far]):.2f}"
        yield [method, label, far[0]["calls"], mean, *each, " ".join(shares), cost]


def _of(rows: list[dict[str, Any]], problem: str, name: str) -> float:
    return float(np.mean([row[name] for row in rows if row["problem"] == problem]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nfe", type=int, choices=CALLS)
    options = parser.parse_args()
    all_calls, results = (options.nfe,) if options.nfe else CALLS, Results()
    swept = Bench(SWEEP_MIXTURE, SWEEP_SEED, SWEEP_SAMPLES)
    chosen = {nfe: best_settings(results, swept, nfe) for nfe in all_calls}
    benches = {mixture: Bench(mixture, mixture, SAMPLES) for mixture in MIXTURES}
    over_bare = times(results, list(chosen.values()), benches[MIXTURES[0]])
    columns = ["method", "setting", "calls", "five", *FIVE, "coverage of 90 %, each problem", "time / bare"]
    for nfe in all_calls:
        table = list(final(results, chosen[nfe], benches, nfe, over_bare))
        print_table(f"distance / distance of exact sets, {SAMPLES} samples, {nfe} calls", columns, table)
    if not options.nfe:
        results.forget_others()


if __name__ == "__main__":
    main()
