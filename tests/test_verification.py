"""Verification: enough calls pass, too few are reported, and the test errs as rarely as it says."""

from __future__ import annotations

import html
import json
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from restoration_cases import groups
from snips import InverseProblem, Restoration, StationaryGaussian, make_operator, restore, verify
from snips.cli import app, restore_run
from snips.running.verification import LEVEL, Verification, compare, finer

SHAPE = (1, 16, 16)


@pytest.fixture(scope="module")
def prior() -> StationaryGaussian:
    return StationaryGaussian.natural(SHAPE)


@pytest.fixture(scope="module")
def problem(prior) -> InverseProblem:
    return InverseProblem.simulate(make_operator("cs4", SHAPE), prior.sample(1, seed=3), 0.1, seed=4)


def test_enough_calls_pass(problem, prior):
    found = verify(restore(problem, prior, nfe=100, samples=8, seed=0), prior).settings["verification"]
    assert (found["option"], found["value"]) == ("nfe", 200)
    assert not found["moved"]
    assert 0.9 < found["std_ratio"] < 1.1
    assert "no change beyond noise" in found["verdict"]
    assert f"off by {found['off_seen']:.2f} posterior std, or a std by {found['wide_seen']:.2f} x" in found["verdict"]


@pytest.mark.parametrize("nfe", [4, 5])
def test_too_few_calls_are_reported(nfe, problem, prior):
    """Without guidance so few calls are far off for random projections, and 40 samples show it."""
    result = restore(problem, prior, nfe=nfe, samples=40, guided=False)
    found = verify(result, prior).settings["verification"]
    assert found["moved"]
    assert "MOVED" in found["verdict"]
    assert "verification" not in result.settings  # what was there stays as it was


def test_the_papers_sampler_gets_twice_the_steps(problem, prior):
    result = restore(problem, prior, sampler="langevin", sigmas=torch.tensor([1.0, 0.1]), tau=2, samples=6)
    assert finer(result)["tau"] == 4
    assert verify(result, prior).settings["verification"]["value"] == 4


def test_equal_laws_are_rarely_reported():
    """1,000 pairs of equal laws: each test errs 10 times on average, and more than 23 times once in 10,000 runs."""
    p_values = torch.tensor([compare(*groups(8, seed=seed))[1:4:2] for seed in range(1000)])
    assert (p_values <= LEVEL).sum(0).max() <= 23
    assert (p_values <= 0.5).double().mean() == pytest.approx(0.5, abs=0.06)


def test_a_shift_and_a_wrong_spread_are_seen():
    shift, mean_p, ratio, std_p, mean_seen, std_seen = compare(*groups(40, shift=2.0))
    assert shift > 5
    assert mean_p <= LEVEL < std_p
    assert ratio == pytest.approx(1, abs=0.2)
    assert shift > mean_seen
    assert max(ratio, 1 / ratio) < std_seen
    _, mean_p, ratio, std_p, mean_seen, std_seen = compare(*groups(40, scale=0.4))
    assert 1 / ratio > std_seen
    assert std_p <= LEVEL < mean_p
    assert ratio == pytest.approx(0.4, abs=0.1)


def test_samples_without_any_spread_pass():
    same = torch.ones(8, 1, 4)
    assert compare(same, same)[1:4:2] == (1.0, 1.0)
    assert str(Verification("nfe", 8, *compare(same, same), 0.0, 1.0)) == (
        "verify: no change: the samples have no spread, also with nfe = 8"
    )
    apart = Verification("nfe", 8, *compare(*groups(40, shift=2.0)), 0.3, 1.2)
    assert apart.mean_p < 0.001
    assert "sampling noise (p < 0.001)" in str(apart)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"samples": 5}, "at least 6 samples"), ({"samples": 6, "sigmas": torch.tensor([1.0, 0.1])}, "restore with nfe")],
)
def test_what_cannot_be_verified(options, message, problem, prior):
    with pytest.raises(ValueError, match=message):
        verify(restore(problem, prior, **options), prior)


@pytest.mark.parametrize("settings", [{}, {"sampler": "fast"}])
def test_samples_that_restore_did_not_draw(settings, problem, prior):
    with pytest.raises(ValueError, match="what restore"):
        verify(Restoration(problem, prior.sample(6)[:, None], settings), prior)


@pytest.fixture
def image(tmp_path):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16), dtype=np.uint8)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def restore_command(image, *arguments):
    command = ["restore", str(image), "-p", "sr2", "--simulate", "--verify", "--out", str(image.parent / "out")]
    return CliRunner().invoke(app, [*command, *arguments])


def test_the_command_says_and_stores_it(image):
    shown = restore_command(image, "--nfe", "10")
    assert shown.exit_code == 0, shown.output
    assert "verify: " in shown.output
    assert "nfe = 20" in shown.output
    stored = json.loads((image.parent / "out" / "result.json").read_text())["settings"]["verification"]
    assert stored["verdict"] in shown.output
    printed = restore_command(image, "--nfe", "10", "--json", "--force")
    assert json.loads(printed.stdout)["settings"]["verification"] == stored


def test_a_second_run_that_fails_keeps_the_first(image, monkeypatch):
    calls = []

    def denoise(self, x, sigma):
        calls.append(sigma)
        return x * (0.5 if len(calls) <= 10 else float("nan"))

    monkeypatch.setattr(StationaryGaussian, "denoise", denoise)
    shown = restore_command(image, "--nfe", "10", "--prior", "gaussian")
    assert shown.exit_code == 2
    assert "error while verifying: the prior returned NaN" in shown.stderr
    assert "verification" not in json.loads((image.parent / "out" / "result.json").read_text())["settings"]


class Killed(BaseException):
    """Nothing is expected to catch it."""


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            "error while verifying: there is not enough memory",
        ),
        (MemoryError(), "error while verifying: MemoryError()"),
        (KeyboardInterrupt(), "stopped while verifying"),
        (ZeroDivisionError("a mistake"), "error while verifying: a mistake"),
        (Killed(), None),
    ],
)
def test_samples_are_saved_before_they_are_verified(failure, told, image, monkeypatch):
    """All files are there when the second run begins, and stay as they are when that ends badly."""
    out, calls, seen, denoise = image.parent / "out", [], {}, StationaryGaussian.denoise

    def fails(self, x, sigma):
        calls.append(sigma)
        if len(calls) <= 10:
            return denoise(self, x, sigma)
        seen.update({file.name: file.read_bytes() for file in out.iterdir()})
        raise failure

    monkeypatch.setattr(StationaryGaussian, "denoise", fails)
    with pytest.raises(Killed) if told is None else nullcontext():
        shown = restore_command(image, "--nfe", "10", "--prior", "gaussian")
        assert shown.exit_code == {KeyboardInterrupt: 130, ZeroDivisionError: 1}.get(type(failure), 2)
        assert f"{told}" in shown.stderr
        assert "the samples are kept, without a verdict" in shown.stderr
    assert {"result.json", "samples.safetensors", "report.html", "sample_00.png"} <= seen.keys()
    assert {file.name: file.read_bytes() for file in out.iterdir()} == seen
    assert len(Restoration.load(out).samples) == 8


def test_the_verdict_is_added_and_nothing_else_touched(image, monkeypatch):
    out, before, find = image.parent / "out", {}, restore_run.verified

    def looked(result, again):
        before.update({file.name: file.stat() for file in out.iterdir()})
        return find(result, again)

    monkeypatch.setattr(restore_run, "verified", looked)
    assert restore_command(image, "--nfe", "10").exit_code == 0
    after = {file.name: file.stat() for file in out.iterdir()}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {"result.json", "report.html"}
    stored = json.loads((out / "result.json").read_text())
    assert stored["settings"]["verification"]["verdict"] in html.unescape((out / "report.html").read_text())
    Restoration.load(out).save(image.parent / "again")
    assert json.loads((image.parent / "again" / "result.json").read_text()) == stored


def test_a_verdict_that_cannot_be_written_is_told(image, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("snips.results.storage.rewrite_pages", full)
    shown = restore_command(image, "--nfe", "10")
    assert shown.exit_code == 2
    assert "the verdict cannot be added" in shown.stderr
    assert "nfe = 20" in shown.stdout
    assert "verification" in Restoration.load(image.parent / "out").settings  # in JSON it is


def test_a_prior_that_fails_keeps_finished_samples(image, monkeypatch):
    calls = []

    def denoise(self, x, sigma):
        calls.append(sigma)
        return x * (0.5 if len(calls) <= 15 else float("nan"))

    monkeypatch.setattr(StationaryGaussian, "denoise", denoise)
    shown = restore_command(image, "--nfe", "10", "--prior", "gaussian", "--chunk", "6", "-k", "8")
    assert shown.exit_code == 2
    assert "6 of 8 samples are kept" in shown.stderr
    assert Restoration.load(image.parent / "out").samples.shape[0] == 6


def test_the_command_refuses_too_few_samples_before_any_work(image):
    refused = restore_command(image, "-k", "3")
    assert refused.exit_code == 2
    assert "at least 6 samples" in refused.stderr
    assert not (image.parent / "out").exists()
