"""The faithfulness section: samples that several experiments share count once, and only like is put to like."""

from __future__ import annotations

import json

import pytest

from snips.experiments import Request, faithful
from snips.experiments.sampled import pooled_faithfulness

FAST = {"prior": {"name": "faces"}, "sigma_0": 0.1, "fast": {"nfe": 100, "samples": 2}}
LANGEVIN = {"levels": 500, "tau": 5}


def found(*p_values: float) -> dict:
    """Of images with two samples each, of which the first has this p-value."""
    return pooled_faithfulness({"std_ratio": [1.0, 1.2], "p_value": [p, 0.5], "rho": [0.05, -0.2]} for p in p_values)


def row(problem="sr2", sampler="fast", images=2, p=(0.5, 0.01), group="", **more) -> dict:
    shares = found(*p[:images])
    return {"group": group, "problem": problem, "sampler": sampler, "sigma_0": 0.1, "images": images} | {
        "faithfulness": shares,
        **more,
    }


def store(folder, experiment, *rows, digest="1", names=("a", "b"), quick=False, seed=0, prior="faces", **more):
    record = {
        "experiment": experiment,
        "command": f"snips experiment {experiment}" + " --quick" * quick,
        "settings": {**FAST, "fast": {**FAST["fast"], "seed": seed}, "langevin": {**LANGEVIN, "seed": seed}},
        "results": {"prior": {"name": prior, "sha256": digest}, "names": {"": list(names)}, "rows": rows, **more},
    }
    (folder / experiment).mkdir(exist_ok=True)
    (folder / experiment / "result.json").write_text(json.dumps(record))


def concluded(folder) -> dict:
    return faithful.prepare(Request(folder)).conclude([]).results


def test_shares_are_means_over_images_with_their_error():
    pooled = faithful.pool([found(0.5, 0.01), found(0.01)])
    assert pooled["samples"] == 6
    assert pooled["normal"]["mean"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert pooled["normal"]["standard_error"] == pytest.approx(1 / 6)
    assert pooled["uncorrelated"] == {"mean": 0.5, "standard_error": 0.0}
    assert pooled["std_ratio_range"] == [1.0, 1.2]


def test_samples_that_two_experiments_share_count_once(tmp_path):
    store(tmp_path, "table1", row(), row("cs4"))
    store(tmp_path, "figures", row(images=1), row("cs16", images=1))
    kept = [(r["experiment"], r["problem"]) for r in concluded(tmp_path)["rows"]]
    assert kept == [("table1", "sr2"), ("table1", "cs4"), ("figures", "cs16")]


def test_other_images_are_other_samples(tmp_path):
    store(tmp_path, "table1", row())
    store(tmp_path, "figures", row(), names=("b", "c"))
    assert len(concluded(tmp_path)["rows"]) == 2


def test_other_seeds_and_precisions_are_other_samples(tmp_path):
    store(tmp_path, "table1", row())
    store(tmp_path, "figures", row(), seed=1)
    store(tmp_path, "strip", row(), prior="faces, bfloat16")
    store(tmp_path, "uncurated", row(), seed=1)
    kept = [(r["experiment"], r["seed"]) for r in concluded(tmp_path)["rows"]]
    assert kept == [("table1", 0), ("figures", 1), ("strip", 0)]


def test_samplers_and_numbers_of_calls_are_pooled_apart(tmp_path):
    store(tmp_path, "table1", row(), row(sampler="langevin"))
    store(
        tmp_path, "calls", row(sampler="fast 25"), row(sampler="fast 100"), row(sampler="langevin", stored_by="table1")
    )
    assert {name: pooled["samples"] for name, pooled in concluded(tmp_path)["pooled"].items()} == {
        "fast 100": 4,
        "langevin 2500": 4,
        "fast 25": 4,
    }


def test_results_of_earlier_weights_are_not_mixed_with_todays(tmp_path):
    store(tmp_path, "table1", row())
    store(tmp_path, "figures", row("cs16"), digest="2")
    with pytest.raises(ValueError, match="`table1` and `figures` were run with different weights of `faces`"):
        concluded(tmp_path)


def test_the_page_shows_chance_and_warns_of_quick_runs(tmp_path):
    store(tmp_path, "table1", row(), truth=[{"problem": "sr2", **found(0.5, 0.5)}])
    text = faithful.describe(concluded(tmp_path))
    assert "| the true images |" in text
    assert "mean nothing" not in text
    store(tmp_path, "figures", row("cs16"), quick=True)
    assert "mean nothing" in faithful.describe(concluded(tmp_path))


def without(record: dict, *path: str) -> dict:
    """A copy of a record that lacks one entry."""
    name, *rest = path
    if not rest:
        return {key: value for key, value in record.items() if key != name}
    return {**record, name: without(record[name], *rest)}


@pytest.mark.parametrize(
    "path",
    [
        ("experiment",),
        ("command",),
        ("settings",),
        ("results",),
        ("results", "rows"),
        ("results", "prior"),
        ("settings", "fast"),
    ],
)
def test_a_record_that_lacks_something_is_named(path, tmp_path):
    store(tmp_path, "table1", row())
    file = tmp_path / "table1" / "result.json"
    file.write_text(json.dumps(without(json.loads(file.read_text()), *path)))
    with pytest.raises(ValueError, match="result.json is not what `snips experiment table1` writes"):
        concluded(tmp_path)


@pytest.mark.parametrize("faithfulness", [{"samples": 3}, [1], {**found(0.5), "shares_of_each_image": 3}])
def test_rows_that_were_changed_are_noticed(faithfulness, tmp_path):
    store(tmp_path, "table1", {**row(), "faithfulness": faithfulness})
    with pytest.raises(ValueError, match="result.json is not what `snips experiment table1` writes"):
        concluded(tmp_path)


@pytest.mark.parametrize("content", ["{}", "[]", "null"])
def test_a_file_of_something_else_is_named(content, tmp_path):
    (tmp_path / "table1").mkdir()
    (tmp_path / "table1" / "result.json").write_text(content)
    with pytest.raises(ValueError, match="result.json is not what `snips experiment table1` writes"):
        concluded(tmp_path)
