"""The experiments' machinery: checkpoints, rows, pages, and what is refused."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from command_line import refused
from command_line import run as commanded
from scripts import load_script
from snips.experiments import (
    EXPERIMENTS,
    Request,
    ablation,
    calls,
    datasets,
    faithful,
    published,
    red_sweep,
    run,
    sampled,
    table1,
)
from snips.experiments.base import Experiment, Measured, Outcome, Part, Study
from snips.images import example_image
from snips.priors import Prior, StationaryGaussian
from snips.report import picture_grid
from snips.report.grid import GAP
from snips.restoration import restore

ROOT = Path(__file__).parent.parent


def invoke(*arguments):
    return commanded("experiment", *arguments)


def silent(*_):
    pass


class Counting:
    """Three parts that count how often they are computed; the part `fails` stops the run."""

    def __init__(self, settings=None, fails: str = "") -> None:
        self.settings, self.fails, self.computed = settings or {"version": 1}, fails, []
        self.experiment = Experiment("counts", self.prepare, lambda results: f"total {results['total']}\n")

    def prepare(self, request: Request) -> Study:
        parts = [Part(key, key, lambda on_step, key=key: self.compute(key)) for key in ("a", "b", "c")]
        return Study(self.settings, parts, self.conclude)

    def compute(self, key: str) -> Measured:
        if key == self.fails:
            raise KeyboardInterrupt
        self.computed.append(key)
        return Measured({"value": ord(key)}, {"x": torch.full((2,), float(ord(key)))})

    def conclude(self, measured: list[Measured]) -> Outcome:
        total = sum(m.facts["value"] for m in measured)
        assert total == sum(int(m.tensors["x"][0]) for m in measured)
        return Outcome({"total": total}, {"picture": Image.new("RGB", (2, 2))})


def test_a_stopped_run_goes_on_after_the_last_finished_part(tmp_path):
    first = Counting(fails="c")
    with pytest.raises(KeyboardInterrupt):
        run("counting", first.experiment, Request(tmp_path), silent)
    assert first.computed == ["a", "b"]
    assert not (tmp_path / "counting" / "result.json").exists()
    second = Counting()
    record = run("counting", second.experiment, Request(tmp_path), silent)
    assert second.computed == ["c"]
    assert record["results"] == {"total": 294}
    stored = tmp_path / "counting"
    assert json.loads((stored / "result.json").read_text()) == record
    assert "total 294" in (stored / "result.md").read_text(encoding="utf-8")
    assert (stored / "picture.png").is_file()


def test_other_settings_are_refused_and_begin_again_when_forced(tmp_path):
    run("counting", Counting().experiment, Request(tmp_path), silent)
    other = Counting({"version": 2})
    with pytest.raises(ValueError, match="version differ.*--force"):
        run("counting", other.experiment, Request(tmp_path), silent)
    assert other.computed == []
    run("counting", other.experiment, Request(tmp_path), silent, force=True)
    assert other.computed == ["a", "b", "c"]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "counting").mkdir()
    (tmp_path / "counting" / "notes.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(ValueError, match="something else"):
            run("counting", Counting().experiment, Request(tmp_path), silent, force)
    assert [f.name for f in (tmp_path / "counting").iterdir()] == ["notes.txt"]


def test_a_damaged_part_is_named(tmp_path):
    run("counting", Counting().experiment, Request(tmp_path), silent)
    (tmp_path / "counting" / "parts" / "b.json").write_text("{")
    with pytest.raises(ValueError, match="b.json is damaged"):
        run("counting", Counting().experiment, Request(tmp_path), silent)


def test_facts_of_samples_are_those_of_the_restoration():
    images = torch.cat([example_image(), example_image().flip(-1)])[..., ::4, ::4]
    problem = sampled.simulated("deblur_uniform", images, 0.1, seed=3)[1]
    prior = StationaryGaussian.natural((3, 16, 16))
    result = restore(problem, prior, samples=4, nfe=8)
    facts = sampled.sample_facts(result)
    samples, mean = result.psnr()
    assert facts["image"] == 1
    assert facts["psnr_samples"] == samples[:, 0].tolist()
    assert facts["psnr_mean"] == mean.item()
    low, high = result.samples.amin(0), result.samples.amax(0)
    inside = ((problem.truth >= low) & (problem.truth <= high)).double().mean().item()
    assert facts["covered"] == pytest.approx(inside)
    assert facts["coverage_level"] == pytest.approx(3 / 5)
    assert facts["p_value"] == result.faithfulness().p_value[:, 0].tolist()


def fact(image: int, psnr: list[float], mean: float, p: list[float]) -> dict:
    known = {"group": "", "problem": "sr2", "sampler": "fast", "sigma_0": 0.1, "covered": 0.8, "coverage_level": 7 / 9}
    residuals = {"std_ratio": [1.0, 1.2], "p_value": p, "rho": [0.05, -0.2], "seconds": 2.0}
    return {**known, **residuals, "image": image, "psnr_samples": psnr, "psnr_mean": mean}


def test_rows_average_over_images_with_their_standard_error():
    facts = [fact(0, [24.0, 26.0], 28.0, [0.5, 0.01]), fact(1, [27.0, 27.0], 29.0, [0.3, 0.2])]
    row = sampled.summary_row(facts)
    assert row["psnr_sample"] == {"mean": 26.0, "standard_error": pytest.approx(statistics.stdev([25, 27]) / 2**0.5)}
    assert row["psnr_mean"]["mean"] == 28.5
    assert row["gap"]["mean"] == 2.5
    assert row["faithfulness"] == {
        "samples": 4,
        "std_ratio": pytest.approx(1.1),
        "std_ratio_range": [1.0, 1.2],
        "normal": 3,
        "uncorrelated": 2,
    }


@pytest.mark.parametrize(("mean", "reached"), [(24.5, False), (24.6, True)])
def test_a_figure_reaches_the_papers_within_its_standard_error(mean, reached):
    """The paper's 25.58 for sr2, with a standard error of 1 dB."""
    facts = [fact(0, [mean - 1] * 8, mean + 1.5, [0.5] * 8), fact(1, [mean + 1] * 8, mean + 3.5, [0.5] * 8)]
    row = table1._beside_paper(sampled.summary_row(facts))
    assert row["reached"]["psnr_sample"] is reached
    assert row["reached"]["gap"] is True
    both = (1 + 2 / 8) ** 0.5  # ours, and that of a mean of 8 images which scatter as ours do: by the root of 2
    assert row["difference"]["psnr_sample"] == pytest.approx({"mean": mean - 25.58, "standard_error": both})


def test_calls_take_quality_from_8_samples_and_intervals_from_19(tmp_path):
    request = Request(tmp_path, quick=True, prior="gaussian", samplers=("fast",))
    record = run("calls", EXPERIMENTS["calls"], request, silent)
    rows = record["results"]["rows"]
    assert [(row["problem"], row["sampler"]) for row in rows] == [(name, "fast 8") for name in published.TABLE_1]
    assert {row["coverage_level"] for row in rows} == {0.9}
    assert {row["faithfulness"]["samples"] for row in rows} == {8}
    assert all(0 <= row["inside"]["contrast"]["mean"] <= 1 for row in rows)
    assert "exact: 90 %" in (tmp_path / "calls" / "result.md").read_text(encoding="utf-8")


def test_calls_show_algorithm_1_from_table1_with_the_same_prior(tmp_path):
    row = {"problem": "sr4", "sampler": "langevin", "psnr_mean": 1.0}
    others = [{**row, "sampler": "fast"}, {**row, "problem": "cs16"}]
    record = {"results": {"prior": {"name": "a"}, "rows": [row, *others]}}
    file = tmp_path / "result.json"
    file.write_text(json.dumps(record))
    assert calls.stored_langevin(file, {"name": "a"}) == [{**row, "coverage": None, "inside": {}}]
    assert calls.stored_langevin(file, {"name": "b"}) == []
    assert calls.stored_langevin(tmp_path / "absent.json", {"name": "a"}) == []


def test_pooling_weighs_by_samples():
    one = {"samples": 10, "std_ratio": 1.0, "std_ratio_range": [0.9, 1.1], "normal": 9, "uncorrelated": 10}
    two = {"samples": 30, "std_ratio": 1.2, "std_ratio_range": [1.1, 1.3], "normal": 27, "uncorrelated": 28}
    pooled = faithful.pool([one, two])
    assert pooled["std_ratio"] == pytest.approx(1.15)
    assert (pooled["samples"], pooled["normal"], pooled["uncorrelated"]) == (40, 36, 38)
    assert pooled["std_ratio_range"] == [0.9, 1.3]


def test_test_images_without_data_are_those_at_hand(tmp_path):
    test = datasets.faces(Request(tmp_path, quick=True), 2)
    torch.testing.assert_close(test.images, torch.cat([example_image(), example_image().flip(-1)]))
    assert test.publishable
    with pytest.raises(ValueError, match="2 images, but 3"):
        datasets.faces(Request(tmp_path, quick=True), 3)
    large = datasets.scenes(Request(tmp_path, quick=True), 2)
    assert large.images.shape == (2, 3, 128, 128)


def test_celeba_is_read_from_its_test_split(tmp_path):
    folder = tmp_path / "celeba" / "img_align_celeba"
    folder.mkdir(parents=True)
    for name, level in (("1.jpg", 10), ("2.jpg", 200), ("3.jpg", 100)):
        Image.new("RGB", (178, 218), (level,) * 3).save(folder / name)
    (tmp_path / "celeba" / "list_eval_partition.txt").write_text("1.jpg 0\n2.jpg 2\n3.jpg 2\n")
    test = datasets.faces(Request(tmp_path, data=tmp_path), 2)
    assert [round(float(image.mean() * 255)) for image in test.images] == [200, 100]
    assert not test.publishable
    with pytest.raises(ValueError, match="has 2 test images, but 3"):
        datasets.faces(Request(tmp_path, data=tmp_path), 3)


def test_table1_from_the_command_line(tmp_path):
    """A Gaussian prior makes it fast; faithfulness then pools what was stored."""
    options = ["--quick", "--prior", "gaussian", "--images", 1, "--sampler", "fast", "--out", tmp_path]
    result = invoke("table1", *options)
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "table1" / "result.json").read_text())
    assert [row["problem"] for row in record["results"]["rows"]] == [*published.TABLE_1, "cs16"]
    assert record["command"] == "snips experiment table1 --quick --images 1 --prior gaussian --sampler fast"
    assert "25.54" in (tmp_path / "table1" / "result.md").read_text(encoding="utf-8")
    pooled = invoke("faithfulness", "--out", tmp_path, "--json")
    assert json.loads(pooled.stdout)["results"]["all"]["samples"] == 6 * sampled.QUICK_SAMPLES


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
        (["cost", "--quick", "--nfe", "20"], "cost does not take --nfe"),
        (["strip", "--quick", "--prior", "gaussian", "--precision", "foo"], "unknown precision 'foo'"),
        (["strip", "--quick", "--prior", "gaussian", "--precision", "bfloat16"], "leave out --precision"),
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
    ("scores", "largest", "stopped", "verdict"),
    [
        (25.0, 1.0, None, "converges"),
        (20.5, 1.0, None, "stalls"),
        (25.0, 50.0, None, "diverges"),
        (25, 1, 9, "diverges"),
    ],
)
def test_step_sizes_are_judged(scores, largest, stopped, verdict):
    facts = [{"psnr": scores, "largest": largest, "stopped": stopped}]
    assert ablation._row("any", facts, blurred=20.0)["verdict"] == verdict


def test_the_best_of_a_sweep_counts_only_for_the_same_prior_and_iterations(tmp_path):
    best = {"sigma_0": 0.1, "iterations": 100, "weight": 7.0, "denoiser_sigma": 0.02}
    stored = tmp_path / "result.json"
    stored.write_text(json.dumps({"results": {"prior": {"name": "a"}, "best": [best]}}))
    assert red_sweep.stored_best(stored, 0.1, 100, {"name": "a"}) == red_sweep.RedSetting(7.0, 0.02)
    assert red_sweep.stored_best(stored, 0.1, 5, {"name": "a"}) is None
    assert red_sweep.stored_best(stored, 0.1, 100, {"name": "b"}) is None
    assert red_sweep.stored_best(tmp_path / "absent.json", 0.1, 100, {"name": "a"}) is None


def test_columns_of_pictures_share_the_largest_size():
    grid = picture_grid([("small", torch.zeros(2, 1, 8, 8)), ("large", torch.ones(2, 3, 16, 24))], scale=2)
    pixels = np.asarray(grid)
    assert grid.size == (2 * 48 + 3 * GAP, 16 + 2 * (32 + GAP))
    assert (pixels[20, 20] == 0).all()
    assert (pixels[20, 80] == 255).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["weights"], "choose one of: lpips"), (["lpips", "--archive", "nowhere"], "there is no file nowhere")],
)
def test_fetching_refuses_with_one_line(arguments, message):
    assert message in refused(commanded("fetch", *arguments))


def test_experiments_are_listed():
    result = invoke("--json")
    assert json.loads(result.stdout) == {name: entry.summary for name, entry in EXPERIMENTS.items()}


def test_the_docs_page_is_what_the_stored_results_give():
    module = load_script(ROOT / "experiments" / "results_page.py")
    assert module.PAGE.read_text(encoding="utf-8") == module.page(module.RESULTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "faithfulness"])
def test_every_experiment_runs_quickly_without_data(name, tmp_path):
    prior = ["--prior", "gaussian"] if name == "lsun" else []
    result = invoke(name, "--quick", "--out", tmp_path, *prior)
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / name / "result.json").read_text())
    assert record["results"]
    for picture in record["pictures"]:
        with Image.open(tmp_path / name / f"{picture}.png") as image:
            assert min(image.size) > 64
    again = invoke(name, "--quick", "--out", tmp_path, *prior, "--json")
    assert json.loads(again.stdout)["results"] == record["results"]
