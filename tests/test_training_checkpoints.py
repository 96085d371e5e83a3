"""Checkpoints of training: they survive a full disk, and go on only in the run that they are of."""

from dataclasses import replace

import pytest
import torch

from snips.training import train
from snips.training.checkpoint import read_checkpoint, write_checkpoint
from training_cases import small_settings


@pytest.fixture
def settings(tmp_path):
    return small_settings(tmp_path)


def test_failed_write_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    write_checkpoint({"step": 1}, path)
    write_checkpoint({"step": 2}, path)

    def full_disk(state, file):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_checkpoint({"step": 3}, path)
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


def test_checkpoint_of_another_network_is_refused(settings):
    train(replace(settings, steps=1))
    with pytest.raises(ValueError, match="another network"):
        train(replace(settings, network=replace(settings.network, widths=(8, 8, 8))))


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
    write_checkpoint({key: kept[key] for key in kept.keys() - {"optimiser_name", "exponents"}}, path)
