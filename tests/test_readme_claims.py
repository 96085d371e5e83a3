"""The figures of the README are those that are stored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FIVE = ("sr4", "sr2", "deblur_uniform", "cs4", "cs8")


def stored(name: str) -> Any:
    return json.loads((ROOT / name).read_text())


def distance(file: str, sampler: str, calls: int) -> float:
    rows = stored(f"benchmarks/results/{file}.json")["results"]
    mine = [row for row in rows if (row["sampler"], row["calls"], row["sigma_0"]) == (sampler, calls, 0.1)]
    return mean(row["ratio"] for row in mine if row["problem"] in FIVE)


def distances() -> str:
    most, half, few = (distance("exactness_unseen", "fast", calls) for calls in (100, 50, 25))
    paper = distance("exactness_langevin", "langevin", 2500)
    rows = stored("benchmarks/results/exactness_langevin.json")["results"]
    of_each_y = [mean(ratios) for ratios in zip(*(row["ratios"] for row in rows), strict=True)]
    error = stdev(of_each_y) / len(of_each_y) ** 0.5
    return (
        f"samples of 100 calls are {most:.2f} times as far from exact ones as these are from each other, the mean over "
        f"five problems at sigma_0 = 0.1 and three priors that nothing was chosen with (50 calls: {half:.2f}, 25 "
        f"calls: {few:.2f}; the paper's sampler with 2,500 calls, for another prior: {paper:.1f} ± {error:.1f})"
    )


def coverage() -> str:
    rows = stored("benchmarks/results/exactness_calibration.json")["results"]
    shares = [100 * row["pixels"] for row in rows if row["sampler"] == "fast"]
    return f"should hold 90 % of the pixels hold {min(shares):.1f} % to {max(shares):.1f} %"


def coverage_on_faces() -> str:
    rows = stored("experiments/results/calls/result.json")["results"]["rows"]
    mine = [row for row in rows if row["sampler"] == "fast 100"]
    assert sorted(row["problem"] for row in mine) == sorted(FIVE)
    assert {row["covered_images"] for row in mine} == {24}
    shares = [100 * row["inside"]["pixels"]["mean"] for row in mine]
    return f"With the bundled `faces` prior, on 24 real faces, they hold {min(shares):.1f} % to {max(shares):.1f} %"


def faithful() -> str:
    results = stored("experiments/results/table1/result.json")["results"]
    drawn = [row["faithfulness"] for row in results["rows"] if row["sampler"] == "fast" and row["problem"] in FIVE]
    true = [row for row in results["truth"] if row["problem"] in FIVE]
    ours, best = (100 * sum(f["normal"] for f in found) / sum(f["samples"] for f in found) for found in (drawn, true))
    return f"The residuals of {ours:.0f} % of the samples pass the test of normality (of the true images: {best:.0f} %)"


def table_1() -> str:
    rows = stored("experiments/results/table1/result.json")["results"]["rows"]
    judged = [row for row in rows if row["sampler"] == "fast" and row["difference"]]
    found = sorted(row["difference"][name]["mean"] for row in judged for name in ("psnr_sample", "psnr_mean"))
    below = [-value for value in found if value < 0]
    assert (len(found), len(below)) == (10, 8)
    assert {row["images"] for row in judged} == {64}
    return (
        f"PSNR is {min(below):.2f} to {max(below):.2f} dB below the paper's in eight of ten figures and up to "
        f"{found[-1]:.2f} dB above in the other two"
    )


def denoisers() -> str:
    rows = {name: stored(f"experiments/results/denoising_{name}.json")["test"] for name in ("faces", "natural")}
    above = {
        name: [(row["channels"], row["sigma"], row["psnr"] - row["ffdnet"]) for row in found if row["ffdnet"]]
        for name, found in rows.items()
    }
    natural = [value for channels, sigma, value in above["natural"] if channels == 3 and sigma > 0.05]
    least = min(value for *_, value in above["faces"])
    return (
        f"`natural` has {min(natural):.2f} to {max(natural):.2f} dB more than FFDNet on photographs in colour at noise "
        f"of 15/255 to 75/255, and `faces` has at least {least:.2f} dB more on faces"
    )


def cost() -> str:
    costs = stored("experiments/results/cost/result.json")["results"]["costs"]
    seconds = {row["network"]: row["seconds"] for row in costs if (row["sampler"], row["calls"]) == ("fast", 100)}
    return (
        f"8 samples of a 64 x 64 face take {seconds['ours']:.1f} s on two CPU cores (100 calls; "
        f"{seconds['ours, bfloat16']:.1f} s with `--precision bfloat16`)"
    )


CLAIMS = [distances, coverage, coverage_on_faces, faithful, table_1, denoisers, cost]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_the_readme_says_what_is_stored(claim):
    text = re.sub(r"\s+", " ", (ROOT / "README.md").read_text())
    assert claim() in text
