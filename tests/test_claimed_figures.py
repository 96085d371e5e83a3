"""What the project claims of the fast sampler holds for the stored figures; other tests compare texts with them."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from snips.samplers.multistep import STEPS_VERSION

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FIVE = ("sr4", "sr2", "deblur_uniform", "cs4", "cs8")


def stored(name: str) -> list[dict[str, Any]]:
    return json.loads((RESULTS / f"{name}.json").read_text())["results"]


MEASURED = ("calibration", "calibration_4", "stationary")


@pytest.mark.parametrize("name", [f"exactness_{name}" for name in MEASURED])
def test_figures_are_of_the_present_steps(name):
    assert json.loads((RESULTS / f"{name}.json").read_text())["steps"] == STEPS_VERSION


@pytest.mark.parametrize("name", ["exactness", "exactness_unseen", "peers"])
def test_each_row_is_of_the_present_steps(name):
    rows = [row for row in stored(name) if "fast" in (row.get("sampler"), row.get("method"))]
    assert len(rows) > 20
    assert {row["steps"] for row in rows} == {STEPS_VERSION}


def distance(problem: str, calls: int, sigma_0: float, measured: str) -> float:
    """The mean over all priors that were measured; 1 is that of exact samples."""
    wanted = ("fast", problem, calls, sigma_0)
    rows = [
        row for row in stored(measured) if tuple(row[k] for k in ("sampler", "problem", "calls", "sigma_0")) == wanted
    ]
    assert len(rows) >= 3
    return mean(row["ratio"] for row in rows)


@pytest.mark.parametrize("measured", ["exactness", "exactness_unseen"])
@pytest.mark.parametrize(("calls", "most"), [(100, 1.1), (50, 1.3), (25, 2.0)])
def test_samples_are_close_to_exact_ones(calls, most, measured):
    assert mean(distance(problem, calls, 0.1, measured) for problem in FIVE) <= most


@pytest.mark.parametrize("measured", ["exactness", "exactness_unseen"])
@pytest.mark.parametrize("problem", ["cs4", "cs8"])
def test_random_projections_with_less_noise_stay_close(problem, measured):
    assert distance(problem, 100, 0.04, measured) <= 2


def test_standard_deviations_are_right_in_every_band():
    rows = stored("exactness_stationary")
    assert len(rows) >= 5
    assert all(len(row["ratios"]) == 6 for row in rows)
    assert [
        (row["problem"], row["ratios"]) for row in rows if max(abs(ratio - 1) for ratio in row["ratios"]) > 0.05
    ] == []


@pytest.mark.parametrize("measured", ["exactness_calibration", "exactness_calibration_4"])
def test_intervals_hold_what_they_should(measured):
    """Of pixels and of every summary."""
    rows = {row["problem"]: row for row in stored(measured) if row["sampler"] == "fast"}
    shares = {(problem, "pixels"): rows[problem]["pixels"] for problem in FIVE}
    shares |= {(p, name): found["inside"] for p in FIVE for name, found in rows[p]["summaries"].items()}
    assert len(shares) == 4 * len(FIVE)
    assert {what: share for what, share in shares.items() if not 0.88 <= share <= 0.92} == {}


def test_limits_say_what_intervals_on_faces_hold():
    record = json.loads((ROOT / "experiments" / "results" / "calls" / "result.json").read_text())
    held = [row["inside"] for row in record["results"]["rows"] if row["sampler"] == "fast 100"]
    pixels, contrast, roughness = (
        f"{100 * mean(inside[name]['mean'] for inside in held):.1f} %" for name in ("pixels", "contrast", "roughness")
    )
    page = " ".join((ROOT / "docs" / "limits.md").read_text(encoding="utf-8").split())
    claim = f"hold {pixels} of the pixels, but {contrast} of the contrasts and {roughness} of the roughnesses"
    assert f"On 24 faces, 90 % intervals of 100 calls {claim}" in page
