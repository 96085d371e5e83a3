"""Devices by name, and lower precision that changes less than sampling noise does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import snips
from batch_cases import pictures
from snips import InverseProblem, load_image, load_prior, make_operator, restore
from snips.cli import app
from snips.posing.pictures import PhotoProblem
from snips.priors import StationaryGaussian, precision
from snips.priors.precision import with_precision
from snips.restoration import Interrupted
from snips.running.devices import pick_device, restore_on

CPU, EXAMPLE = torch.device("cpu"), Path(snips.__file__).parent / "assets" / "example.png"


@pytest.mark.parametrize(
    ("cuda", "mps", "found"), [(False, False, "cpu"), (True, False, "cuda"), (True, True, "cuda"), (False, True, "mps")]
)
def test_auto_takes_a_graphics_processor_where_there_is_one(cuda, mps, found, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert pick_device("auto").type == found


@pytest.mark.parametrize(("name", "message"), [("cudda", "did you mean cuda"), ("cuda:x", "device"), ("", "device")])
def test_unknown_devices(name, message):
    with pytest.raises(ValueError, match=message):
        pick_device(name)


def test_an_absent_device_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="no device cuda here"):
        pick_device("cuda:0")


@pytest.fixture
def problem():
    return InverseProblem.simulate(make_operator("sr2", (1, 8, 8)), torch.rand(1, 1, 8, 8), 0.1, seed=0)


def test_restore_on_is_restore(problem):
    prior, options = StationaryGaussian.natural((1, 8, 8)), {"nfe": 8, "samples": 2}
    here, there = restore(problem, prior, **options), restore_on(CPU, PhotoProblem(problem), prior, **options)
    assert torch.equal(here.samples, there.samples)
    assert there.problem is problem
    assert there.settings["device"] == "cpu"


def test_what_was_finished_comes_back(problem):
    def stop(info):
        if info.step == 12:
            raise KeyboardInterrupt

    prior = StationaryGaussian.natural((1, 8, 8))
    with pytest.raises(Interrupted) as stopped:
        restore_on(CPU, PhotoProblem(problem), prior, nfe=8, samples=2, chunk=1, on_step=stop)
    assert stopped.value.finished is not None
    assert stopped.value.finished.samples.shape == (1, 1, 1, 8, 8)
    assert stopped.value.finished.problem is problem


def test_precision_is_of_our_networks_alone():
    with pytest.raises(ValueError, match="lower precision"):
        with_precision(StationaryGaussian.natural((1, 8, 8)), "bfloat16")
    with pytest.raises(ValueError, match="unknown precision"):
        with_precision(StationaryGaussian.natural((1, 8, 8)), "float16")


@pytest.fixture
def processor(tmp_path, monkeypatch):
    """Pretends that the processor offers AMX, and that PyTorch's products end as the given program does."""

    def pretend(flags: str, program: str) -> None:
        (tmp_path / "cpuinfo").write_text(f"flags : fpu {flags}\n")
        monkeypatch.setattr(precision, "CPU_INFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(precision, "PROBE", program)
        precision.bfloat16_works.cache_clear()

    yield pretend
    precision.bfloat16_works.cache_clear()


ILLEGAL = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


@pytest.mark.parametrize(
    ("flags", "program", "works"),
    [("amx_tile", ILLEGAL, False), ("amx_tile", "pass", True), ("avx512_bf16", ILLEGAL, True)],
)
def test_a_processor_whose_products_crash_is_found_out(flags, program, works, processor):
    processor(flags, program)
    assert precision.bfloat16_works() is works


def test_products_that_would_crash_are_one_clear_line(processor, tmp_path):
    processor("amx_tile", ILLEGAL)
    options = ["--simulate", "--prior", "faces", "--precision", "bfloat16", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["restore", str(EXAMPLE), "--problem", "sr2", "--sigma", "0.1", *options])
    assert result.exit_code == 2
    assert "crash on this processor" in result.stderr
    assert "ONEDNN_MAX_CPU_ISA" in result.stderr
    assert not (tmp_path / "out").exists()


def test_lower_precision_changes_less_than_sampling_noise():
    """The same seeds: what differs is precision alone. The mean of 8 samples is known to std / sqrt(8)."""
    samples, prior = 8, load_prior("natural")
    x = load_image(EXAMPLE)[..., 16:48, 16:48]
    problem = InverseProblem.simulate(make_operator("sr2", (3, 32, 32)), x, 0.05, seed=0)
    full = restore(problem, prior, nfe=15, samples=samples)
    low = restore(problem, with_precision(prior, "bfloat16"), nfe=15, samples=samples)
    moved_by = (full.mean - low.mean).square().mean().sqrt()
    noise = full.std.square().mean().sqrt() / samples**0.5
    assert 0 < moved_by < 0.5 * noise
    assert abs(float((low.std.square().mean() / full.std.square().mean()).sqrt()) - 1) < 0.1


@pytest.fixture
def threads():
    """Sets torch's number of threads, as another machine would have it; afterwards it is what it was."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def batch(source, out, *more):
    options = ("-p", "sr2", "-s", "0.1", "-k", "2", "--nfe", "4", "--prior", "gaussian")
    result = CliRunner().invoke(app, ["batch", str(source), "--out", str(out), *options, *more])
    settings = [json.loads(file.read_text())["settings"] for file in (out / "items").glob("*/result.json")]
    return result, {one["threads"] for one in settings}


def test_threads_are_torchs_own_where_a_run_begins_and_stay(threads, tmp_path):
    """The run goes on with the same number where torch would choose another."""
    source, out = pictures(tmp_path / "in", 1), tmp_path / "out"
    threads(3)
    assert batch(source, out)[1] == {3}
    (source / "later.png").write_bytes((source / "picture_0.png").read_bytes())
    threads(1)
    assert batch(source, out)[1] == {3}
    assert json.loads((out / "run.json").read_text())["threads"] == 3
    assert torch.get_num_threads() == 3


def test_threads_by_hand(threads, tmp_path):
    source, out = pictures(tmp_path / "in", 1), tmp_path / "out"
    threads(3)
    assert batch(source, out, "--threads", "2")[1] == {2}
    refused, _ = batch(source, out, "--threads", "1")
    assert refused.exit_code == 2
    assert "threads differ" in refused.stderr
