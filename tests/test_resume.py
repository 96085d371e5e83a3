"""`snips restore --resume`: killed, the same command goes on."""

from __future__ import annotations

import json

import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from batch_cases import pictures
from snips.cli import app, restoring
from snips.priors import StationaryGaussian
from snips.results.checkpoints import Checkpoint

CALLS = 12


def restore(folder, out, *more):
    arguments = [
        "restore",
        folder / "in" / "picture_0.png",
        "--out",
        folder / out,
        "-s",
        "0.1",
        "-k",
        "3",
        "--nfe",
        CALLS,
    ]
    typed = [str(part) for part in (*arguments, "--chunk", "2", "--prior", "gaussian", "--json", *more)]
    return CliRunner().invoke(app, typed)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pictures(tmp_path / "in", 2)
    monkeypatch.setattr(restoring, "Checkpoint", lambda path: Checkpoint(path, seconds=0))
    return tmp_path


def test_resume_gives_the_same_bits(folder, monkeypatch):
    assert restore(folder, "calm").exit_code == 0
    denoise, calls = StationaryGaussian.denoise, []

    def counted(prior, x, sigma):
        calls.append(sigma)
        if len(calls) in (5, 17):
            raise MemoryError("killed")
        return denoise(prior, x, sigma)

    monkeypatch.setattr(StationaryGaussian, "denoise", counted)
    assert [restore(folder, "out", "--resume").exit_code for _ in range(3)] == [2, 2, 0]
    assert len(calls) == 2 * CALLS + 2  # two chunks, and the two calls that were stopped
    calm, out = (load_file(folder / name / "samples.safetensors") for name in ("calm", "out"))
    assert calm.keys() == out.keys()
    assert all(calm[name].equal(out[name]) for name in calm)
    assert not (folder / ".out.partial").exists()
    again = restore(folder, "out", "--resume")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["settings"]["fingerprint"]
    assert len(calls) == 2 * CALLS + 2


def test_a_state_is_not_continued_with_something_else(folder, monkeypatch):
    monkeypatch.setattr(Checkpoint, "remove", lambda self: None)
    assert restore(folder, "out", "--resume").exit_code == 0
    assert (folder / ".out.partial").exists()
    (folder / "out").rename(folder / "elsewhere")
    other = restore(folder, "out", "--resume", "--seed", "1")
    assert other.exit_code == 2
    assert "belongs to another" in other.stderr


def test_a_finished_folder_of_other_settings_is_kept(folder):
    assert restore(folder, "out", "--resume").exit_code == 0
    before = (folder / "out" / "samples.safetensors").read_bytes()
    other = restore(folder, "out", "--resume", "--seed", "1")
    assert other.exit_code == 2
    assert "exists already" in other.stderr
    assert (folder / "out" / "samples.safetensors").read_bytes() == before
