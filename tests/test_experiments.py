"""Experiments as they are asked for: the command, what comes out, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from command_line import refused
from command_line import run as commanded
from scripts import load_script
from snips.experiments import EXPERIMENTS, Request, ablation, calls, published, run, sampled
from snips.images import example_image
from snips.priors import Prior

ROOT = Path(__file__).parent.parent


def invoke(*arguments):
    return commanded("experiment", *arguments)


def silent(*_):
    pass


def test_calls_take_quality_from_8_samples_and_intervals_from_19(tmp_path):
    request = Request(tmp_path, quick=True, prior="gaussian", samplers=("fast",))
    record = run("calls", EXPERIMENTS["calls"], request, silent)
    rows = record["results"]["rows"]
    assert [(row["problem"], row["sampler"]) for row in rows] == [(name, "fast 8") for name in published.TABLE_1]
    assert {row["covered_images"] for row in rows} == {1}
    assert {row["faithfulness"]["samples"] for row in rows} == {8}
    assert all(0 <= row["inside"]["contrast"]["mean"] <= 1 for row in rows)
    assert "exact: 90 %" in (tmp_path / "calls" / "result.md").read_text(encoding="utf-8")


def test_intervals_are_of_the_first_images(tmp_path, monkeypatch):
    monkeypatch.setattr(calls, "COVERED_IMAGES", 1)
    request = Request(tmp_path, quick=True, prior="gaussian", samplers=("fast",), images=2)
    for row in run("calls", EXPERIMENTS["calls"], request, silent)["results"]["rows"]:
        assert (row["images"], row["covered_images"]) == (2, 1)
        assert row["faithfulness"]["samples"] == 16
        assert row["inside"]["pixels"]["standard_error"] is None  # of one image


def test_samplers_of_calls_share_a_folder(tmp_path):
    """One after the other, on fewer images: both are in the table, and each run is in the command."""

    def ran(sampler, images):
        request = Request(tmp_path, quick=True, prior="gaussian", samplers=(sampler,), images=images)
        return run("calls", EXPERIMENTS["calls"], request, silent)

    fast, both = ran("fast", 2), ran("langevin", 1)
    rows = both["results"]["rows"]
    assert [row for row in rows if row["sampler"] == "fast 8"] == fast["results"]["rows"]
    slow = [row for row in rows if row["sampler"] == "langevin 12"]
    assert [(row["problem"], row["images"], row["less"]["images"]) for row in slow] == [
        (name, 1, 1) for name in published.TABLE_1
    ]
    assert both["results"]["names"] == fast["results"]["names"]
    assert both["command"] == f"{fast['command']} && snips experiment calls --quick --images 1 --prior gaussian " + (
        "--sampler langevin"
    )
    assert ran("fast", 2)["results"]["rows"] == rows


def test_table1_from_the_command_line(tmp_path):
    """A Gaussian prior makes it fast; faithfulness then pools what was stored."""
    options = ["--quick", "--prior", "gaussian", "--images", 1, "--sampler", "fast", "--out", tmp_path]
    result = invoke("table1", *options)
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "table1" / "result.json").read_text())
    assert [row["problem"] for row in record["results"]["rows"]] == [*published.TABLE_1, "cs16"]
    assert record["command"] == "snips experiment table1 --quick --images 1 --prior gaussian --sampler fast"
    assert "25.54" in (tmp_path / "table1" / "result.md").read_text(encoding="utf-8")
    assert "Its figures mean nothing" in result.stdout
    pooled = invoke("faithfulness", "--out", tmp_path, "--json")
    found = json.loads(pooled.stdout)["results"]
    assert found["pooled"]["fast 8"]["samples"] == 6 * sampled.QUICK_SAMPLES
    assert found["truth"]["samples"] == 6
    assert "these were quick runs" in (tmp_path / "faithfulness" / "result.md").read_text(encoding="utf-8")


def test_figures_of_bundled_pictures_may_be_shown(tmp_path):
    options = ["--bundled", "--prior", "gaussian", "--nfe", 8, "--out", tmp_path / "results" / "bundled"]
    result = invoke("strip", *options)
    assert result.exit_code == 0, result.output
    file = tmp_path / "results" / "bundled" / "strip" / "result.json"
    record = json.loads(file.read_text())
    assert record["results"]["publishable"]
    assert record["command"] == "snips experiment strip --bundled --prior gaussian --nfe 8"
    module = load_script(ROOT / "experiments" / "results_page.py")
    assert "(images/results/strip_strip.png)" in module.gallery("strip", file)
    assert module.gallery("strip", tmp_path / "absent.json") == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tabel1"], "did you mean table1"),
        (["table1"], "--data"),
        (["table1", "--data", "nowhere"], "list_eval_partition.txt is missing"),
        (["table1", "--quick", "--images", "0"], "at least 1"),
        (["table1", "--quick", "--sampler", "slow"], "unknown sampler"),
        (["strip", "--quick", "--nfe", "0"], "at least nfe=4"),
        (["calls", "--quick", "--nfe", "20"], "calls does not take --nfe: leave it out; these do: table1"),
        (["cost", "--quick", "--images", "7"], "cost does not take --images"),
        (["cost", "--quick", "--precision", "bfloat16"], "cost does not take --precision"),
        (
            ["strip", "--quick", "--sampler", "langevin"],
            "strip does not take --sampler: leave it out; these do: table1",
        ),
        (["faithfulness", "--prior", "faces"], "faithfulness does not take --prior"),
        (["strip", "--quick", "--prior", "gaussian", "--precision", "foo"], "unknown precision 'foo'"),
        (["strip", "--quick", "--prior", "gaussian", "--precision", "bfloat16"], "leave out --precision"),
        (["strip", "--quick", "--bundled"], "--bundled stands in place of"),
        (["faithfulness"], "table1"),
        (["lsun", "--quick", "--prior", "nothing"], "unknown prior"),
    ],
)
def test_bad_requests_end_with_one_line(arguments, message, tmp_path):
    assert message in refused(invoke(*arguments, "--out", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


class Fails(Prior):
    """A denoiser that gives up at its fourth call."""

    calls = 0

    def denoise(self, x, sigma):
        self.calls += 1
        return x * (float("nan") if self.calls == 4 else 0.5)


def test_a_run_that_breaks_down_keeps_its_last_state():
    problem = sampled.simulated("denoise", example_image(), 0.1, seed=0)
    options = {"sigmas": torch.tensor([1.0, 0.1]), "tau": 3, "step": "uniform", "c": 0.001}
    x, stopped = ablation.last_state(problem, Fails(), options, 0, silent)
    assert stopped == 3
    assert x.shape == (1, 3, 64, 64)
    assert x.isfinite().all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["weights"], "choose one of: lpips"), (["lpips", "--archive", "nowhere"], "there is no file nowhere")],
)
def test_fetching_refuses_with_one_line(arguments, message):
    assert message in refused(commanded("fetch", *arguments))


def test_experiments_are_listed():
    result = invoke("--json")
    assert json.loads(result.stdout) == {name: entry.summary for name, entry in EXPERIMENTS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "faithfulness"])
def test_every_experiment_runs_quickly_without_data(name, tmp_path):
    result = invoke(name, "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / name / "result.json").read_text())
    assert record["results"]
    for picture in record["pictures"]:
        with Image.open(tmp_path / name / f"{picture}.png") as image:
            assert min(image.size) > 64
    again = invoke(name, "--quick", "--out", tmp_path, "--json")
    assert json.loads(again.stdout)["results"] == record["results"]
