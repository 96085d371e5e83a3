"""Checkpoints of training: they survive a full disk, and go on only in the run that they are of."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from snips.training import train, with_network_of
from snips.training.checkpoint import read_checkpoint, write_checkpoint
from training_cases import small_settings


@pytest.fixture
def settings(tmp_path):
    return small_settings(tmp_path)


@pytest.fixture
def little_space():
    """The kernel refuses files of more than 10,000 bytes in this process, as it does all on a full disk."""
    resource = pytest.importorskip("resource", reason="limits of a process are POSIX")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_failed_write_keeps_the_last_checkpoint(tmp_path, little_space):
    path = tmp_path / "checkpoint.pt"
    write_checkpoint({"step": 1}, path)
    write_checkpoint({"step": 2}, path)
    with pytest.raises(OSError, match="File too large"):
        write_checkpoint({"step": 3, "weights": torch.zeros(10_000)}, path)
    assert read_checkpoint(path) == {"step": 2}
    assert read_checkpoint(path.with_suffix(".previous")) == {"step": 1}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.previous", "checkpoint.pt"]


def test_corrupt_checkpoint_names_the_previous_one(settings, tmp_path):
    train(replace(settings, steps=1))
    train(replace(settings, steps=2))
    path = tmp_path / "run" / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"checkpoint\.previous"):
        train(settings)


def with_changed_bytes(path):
    """In the midst of the weights, where nothing but a checksum can tell."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(255 - byte for byte in content[middle : middle + 64])
    path.write_bytes(content)


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello, this is text"),
    "a list": lambda path: torch.save([{"module.a": torch.zeros(2)}], path),
    "a tensor": lambda path: torch.save(torch.zeros(2), path),
    "changed bytes": with_changed_bytes,
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Path("code that would run"))),
    "no config": lambda path: write_checkpoint({"step": 3}, path),
    "no optimiser": lambda path: write_checkpoint(
        {key: value for key, value in read_checkpoint(path).items() if key != "optimiser"}, path
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_is_no_checkpoint_is_one_clear_line(settings, tmp_path, kind):
    train(replace(settings, steps=1))
    path = tmp_path / "run" / "checkpoint.pt"
    DAMAGES[kind](path)
    with pytest.raises(ValueError, match="not a readable checkpoint|another network|no checkpoint of a run") as caught:
        train(settings)
    message = str(caught.value)
    assert "\n" not in message
    assert "weights_only" not in message  # PyTorch recommends to load what it refuses without it
    assert "--out" in message or "checkpoint.previous" in message


@pytest.mark.parametrize("lost", [["checkpoint.pt"], ["checkpoint.pt", "checkpoint.previous"]])
def test_a_lost_checkpoint_does_not_cost_the_weights(settings, tmp_path, lost):
    train(replace(settings, steps=1))
    train(replace(settings, steps=2))
    weights = (tmp_path / "run" / "weights.safetensors").read_bytes()
    for name in lost:
        (tmp_path / "run" / name).unlink()
    told = "move .*checkpoint.previous in its place" if len(lost) == 1 else "--init .*weights.safetensors"
    with pytest.raises(ValueError, match=told):
        train(settings)
    assert (tmp_path / "run" / "weights.safetensors").read_bytes() == weights


def test_a_file_system_without_links_keeps_a_copy(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    for step in (1, 2):
        write_checkpoint({"step": step}, tmp_path / "checkpoint.pt")
    assert read_checkpoint(tmp_path / "checkpoint.pt") == {"step": 2}
    assert read_checkpoint(tmp_path / "checkpoint.previous") == {"step": 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_all_steps(number, settings, tmp_path):
    """Ctrl-C, or the end of a job: not in the midst of a step, but after it, with a checkpoint of all of them."""
    whole = train(replace(settings, out=str(tmp_path / "whole")))

    def interrupt(state, loss):
        if state.step == 3:
            os.kill(os.getpid(), number)

    before = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}[number]
    signal.signal(number, before)  # a shell's background process would ignore Ctrl-C
    with pytest.raises(KeyboardInterrupt):
        train(settings, interrupt)
    assert signal.getsignal(number) is before
    assert read_checkpoint(tmp_path / "run" / "checkpoint.pt")["step"] == 3
    resumed = train(settings)
    assert all(map(torch.equal, whole.model.parameters(), resumed.model.parameters()))


def test_what_killed_processes_left_is_removed(settings, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (run / f".checkpoint-{gone.pid}.pt").write_bytes(b"half")
    (run / f".checkpoint-{os.getppid()}.pt").write_bytes(b"somebody's who still writes")
    train(replace(settings, steps=1))
    assert [file.name for file in run.glob(".*")] == [f".checkpoint-{os.getppid()}.pt"]


def test_a_run_needs_the_weights_it_began_with_no_longer(settings, tmp_path):
    train(replace(settings, steps=1))
    first = tmp_path / "first.safetensors"
    (tmp_path / "run" / "weights.safetensors").rename(first)
    begun = replace(settings, out=str(tmp_path / "second"), init=str(first))
    train(replace(with_network_of(begun, str(first)), steps=1))
    first.unlink()
    assert train(replace(with_network_of(begun, str(first)), steps=2)).step == 2


def test_checkpoint_of_another_network_is_refused(settings):
    train(replace(settings, steps=1))
    with pytest.raises(ValueError, match="another network"):
        train(replace(settings, network=replace(settings.network, widths=(8, 8, 8))))


@pytest.mark.parametrize(("name", "value"), [("crop", 12), ("batch", 3), ("seed", 7), ("mix", (3,))])
def test_other_crops_or_noise_are_another_run(settings, name, value):
    """It would not end as if it had never stopped."""
    train(replace(settings, steps=1))
    with pytest.raises(ValueError, match=rf"{name} .*go on with those.*--init .*weights\.safetensors"):
        train(replace(settings, **{name: value}))


def test_other_images_are_another_run(settings, tmp_path):
    """Also in a folder of the same name; the same ones elsewhere, another learning rate and another end are not."""
    train(replace(settings, steps=1))
    moved = tmp_path / "elsewhere" / "pictures"
    shutil.copytree(tmp_path / "photos", moved)
    assert train(replace(settings, folders=(str(moved),), lr=1e-5, steps=2, cooldown=1)).step == 2
    shutil.copy(tmp_path / "photos" / "3.png", tmp_path / "photos" / "03.png")
    with pytest.raises(ValueError, match="other images"):
        train(settings)


def test_weights_that_are_not_there_are_not_offered(settings, tmp_path):
    train(replace(settings, steps=1))
    (tmp_path / "run" / "weights.safetensors").unlink()
    with pytest.raises(ValueError, match="batch 2, not 3") as told:
        train(replace(settings, batch=3))
    assert "--init" not in str(told.value)


CHANGED = {  # what may not change on the way, and how a checkpoint of an earlier version tells of it
    "optimiser": ("muon", "trained with adam, not muon", "trained with another optimiser, not muon"),
    "averages": ((5.0,), r"the exponents \[16.97, 6.94\], not \[5.0\]", r"the exponents 2 unknown ones, not \[5.0\]"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_checkpoint_of_other_settings_is_refused(settings, tmp_path, name):
    value, told, told_of_earlier = CHANGED[name]
    train(replace(settings, steps=1))
    with pytest.raises(ValueError, match=told):
        train(replace(settings, **{name: value}))
    forget_names(tmp_path / "run" / "checkpoint.pt")
    with pytest.raises(ValueError, match=told_of_earlier):
        train(replace(settings, **{name: value}))


@pytest.mark.parametrize("optimiser", ["adam", "muon"])
def test_checkpoint_of_an_earlier_version_goes_on(settings, tmp_path, optimiser):
    train(replace(settings, optimiser=optimiser, steps=1))
    forget_names(tmp_path / "run" / "checkpoint.pt")
    assert train(replace(settings, optimiser=optimiser, steps=2)).step == 2


def forget_names(path):
    kept = read_checkpoint(path)
    write_checkpoint(
        {key: kept[key] for key in kept.keys() - {"optimiser_name", "exponents", "data", "inherited"}}, path
    )
