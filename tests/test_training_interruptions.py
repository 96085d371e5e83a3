"""Training that is killed, runs out of space or memory, or meets bad files: one clear line, and nothing is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from snips.cli import app
from snips.training import TrainSettings, train, with_network
from snips.training.checkpoint import read_checkpoint
from snips.training.data import Crops
from snips.training.image_files import load_images
from snips.training.loop import start, train_step
from training_cases import small_settings

GO_ON = """
from dataclasses import replace
from pathlib import Path
from snips.training import train
from training_cases import small_settings
train(replace(small_settings(Path({folder!r})), minutes=0, steps=60))
"""


@pytest.fixture
def settings(tmp_path):
    return small_settings(tmp_path)


def test_killed_again_and_again_it_ends_as_if_it_never_was(settings, tmp_path):
    """SIGKILL at any moment, also while a checkpoint is written: at least three times before the end."""
    whole = train(replace(settings, steps=60, out=str(tmp_path / "whole")))
    script, checkpoint = GO_ON.format(folder=str(tmp_path)), tmp_path / "run" / "checkpoint.pt"
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
    kills = 0
    while kills < 3:
        edition = _edition(checkpoint)
        process = subprocess.Popen(command, env=environment)
        while process.poll() is None and _edition(checkpoint) == edition:
            time.sleep(0.005)
        time.sleep(0.02 * kills)
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        assert read_checkpoint(checkpoint)["step"] < 60, "it was too fast to be killed"
    subprocess.run(command, env=environment, check=True)
    reached = read_checkpoint(checkpoint)
    assert reached["step"] == 60
    assert all(torch.equal(reached["model"][name], value) for name, value in whole.model.state_dict().items())


def _edition(path):
    return path.stat().st_mtime_ns if path.exists() else None


def test_a_full_disk_is_named_with_the_run(settings, tmp_path, monkeypatch):
    train(replace(settings, steps=1))

    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", refuse)
        with pytest.raises(OSError, match="run.*No space left.*make space.*the same command goes on"):
            train(settings)
    assert train(settings).step == settings.steps


def test_a_full_disk_at_the_log_is_said_once(settings, tmp_path):
    train(replace(settings, steps=1))
    log = tmp_path / "run" / "log.jsonl"
    log.unlink()
    log.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as told:
        train(settings)
    assert str(told.value).count("cannot be written") == 1


def test_a_folder_that_may_not_be_written_is_not_full(settings, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OSError, match="Permission denied.*see whether it may be written") as told:
        train(settings)
    assert "space" not in str(told.value)
    assert "goes on" not in str(told.value)  # there is no checkpoint yet


def test_weights_that_run_away_do_not_replace_good_ones(settings, tmp_path):
    train(replace(settings, steps=1))
    checkpoint = tmp_path / "run" / "checkpoint.pt"
    before = checkpoint.read_bytes()
    with pytest.raises(FloatingPointError, match="goes on from it with a smaller --lr"):
        train(replace(settings, steps=2, lr=1e7))
    assert checkpoint.read_bytes() == before
    assert train(settings).step == settings.steps


def test_a_row_of_the_log_that_was_cut_off_costs_no_other(settings, tmp_path):
    train(replace(settings, steps=1))
    log = tmp_path / "run" / "log.jsonl"
    log.write_bytes(log.read_bytes() + b'{"event": "checkp')
    train(settings)
    lines = log.read_text().splitlines()
    whole = [json.loads(line) for line in lines if line != '{"event": "checkp']
    assert [row["event"] for row in whole] == ["start", "checkpoint", "start", "checkpoint"]
    assert whole[2]["settings"]["batch"] == settings.batch


def test_a_picture_with_a_broken_chunk_is_named(settings, tmp_path):
    """Decoders raise almost anything: this one a SyntaxError."""
    picture = tmp_path / "photos" / "3.png"
    content = picture.read_bytes()
    middle = content.index(b"IDAT")
    picture.write_bytes(content[:middle] + b"\x00\x01\x02\x03" + content[middle + 4 :])
    with pytest.raises(ValueError, match=r"cannot read the image .*3\.png"):
        train(settings)


def test_a_folder_that_may_not_be_read_is_named(settings, tmp_path, monkeypatch):
    for name in ("secret", ".Trashes"):
        (tmp_path / "photos" / name).mkdir()
    usual = os.scandir

    def guarded(path):
        if Path(path).name in ("secret", ".Trashes"):
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(ValueError, match=r"cannot read the folder .*secret"):
        train(settings)
    (tmp_path / "photos" / "secret").rmdir()
    assert train(settings).step == settings.steps  # what is hidden is not entered


def test_a_batch_in_pieces_is_the_same_batch(settings):
    images, _ = load_images(settings.folders, settings.prepare, settings.cache)
    crops = Crops(images, settings.crop)
    batches = [replace(settings, batch=6, chunk=chunk) for chunk in (None, 4)]
    states = [start(batch, crops) for batch in batches]
    found = [train_step(state, batch, crops) for state, batch in zip(states, batches, strict=True)]
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    for one, other in zip(*(s.model.parameters() for s in states), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["ncsnv2", "ncsnv2deeper"])
def test_the_papers_batch_goes_through_its_network_in_pieces(name, tmp_path):
    chosen = with_network(TrainSettings((), str(tmp_path), ""), name)
    assert chosen.batch == 128
    assert chosen.chunk is not None
    assert chosen.chunk <= 8


def test_too_little_memory_is_one_line(settings, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")

    monkeypatch.setattr(torch.nn.functional, "pixel_unshuffle", refuse)
    told = CliRunner().invoke(app, ["train", "--data", settings.folders[0], "--crop", "16", "--out", settings.out])
    assert told.exit_code == 2
    assert "not enough memory" in told.output
    assert "--chunk in `root train --help`" in told.output.replace("\n", " ")


def test_hours_of_others_are_told_apart(settings, tmp_path):
    train(replace(settings, steps=1))
    given = tmp_path / "run" / "weights.safetensors"
    with safe_open(given, "pt") as file:
        told = {**file.metadata(), "note": json.dumps({"hours": 5.0})}
    save_file(load_file(given), given, told)
    state = train(replace(settings, steps=1, init=str(given), out=str(tmp_path / "second")))
    assert state.inherited == 5 * 3600
    assert 0 < state.seconds - state.inherited < 3600
    assert train(replace(settings, steps=2, out=str(tmp_path / "second"))).inherited == 5 * 3600


def changed(weights, **told):
    with safe_open(weights, "pt") as file:
        metadata = {**file.metadata(), **told}
    save_file(load_file(weights), weights, metadata)


BAD_STARTS = {
    "a folder": lambda weights: (weights.unlink(), weights.mkdir()),
    "a note that is none": lambda weights: changed(weights, note="{"),
    "no levels": lambda weights: changed(weights, config='{"widths": []}'),
    "hours that are none": lambda weights: changed(weights, note='{"hours": null}'),
    "endless hours": lambda weights: changed(weights, note='{"hours": Infinity}'),
    "a word for a number": lambda weights: changed(weights, config='{"sigma_max": "x"}'),
}


@pytest.mark.parametrize("kind", BAD_STARTS)
def test_bad_weights_to_start_from_are_one_line(settings, tmp_path, kind):
    train(replace(settings, steps=1))
    BAD_STARTS[kind](given := tmp_path / "run" / "weights.safetensors")
    words = ["train", "--data", settings.folders[0], "--crop", "16", "--batch", "2", "--steps", "1"]
    told = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "second"), "--init", str(given)])
    assert told.exit_code == 2, told.output
    assert "weights.safetensors" in told.output.replace("\n", "")
    assert "Traceback" not in told.output


def test_weights_that_are_gone_and_a_run_of_another_kind(settings, tmp_path):
    network = with_network(settings, "ncsnv2").network
    train(replace(settings, network=replace(network, ngf=4), steps=1))
    words = ["train", "--data", settings.folders[0], "--crop", "16", "--steps", "1", "--init", "gone.safetensors"]
    told = CliRunner().invoke(app, [*words, "--out", settings.out])
    assert told.exit_code == 2
    assert "another network" in told.output
