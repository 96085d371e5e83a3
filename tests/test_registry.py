"""load_prior(): names, all kinds of files, and files that are none."""

from __future__ import annotations

import os
import pickle

import pytest
import torch
from safetensors.torch import save_file

import snips
from ncsnv2_cases import published_file, reference_network
from prior_files import TINY, message_for
from snips.priors.ncsnv2_files import FORMAT, save_ncsnv2
from snips.priors.registry import BUNDLED, load_prior
from snips.priors.unet import FORMAT as UNET_FORMAT
from snips.priors.unet import UNet, save_unet


def assert_ready(prior, name: str) -> None:
    assert prior.name == name
    assert not any(module.training for module in prior.modules())
    assert not any(p.requires_grad for p in prior.parameters())


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return published_file("ncsnv2", tmp_path_factory.mktemp("published") / "checkpoint_210000.pth")


def test_bundled_by_name(weights):
    torch.manual_seed(1)
    model = UNet(TINY)
    save_unet(model, weights / "faces.safetensors")
    prior = snips.load_prior("faces")
    assert_ready(prior, "faces")
    torch.testing.assert_close(prior.state_dict()["level.enter.weight"], model.level.enter.weight, rtol=1e-3, atol=1e-3)


def test_bundled_but_not_installed(weights):
    message = message_for("faces")
    assert "not part of this installation" in message
    assert str(weights / "faces.safetensors") in message


@pytest.mark.parametrize("prior", BUNDLED.values(), ids=lambda p: p.name)
def test_bundled_weights_are_as_the_table_says(prior):
    loaded = load_prior(prior.name)
    assert isinstance(loaded, UNet)
    assert (loaded.config.size, loaded.config.channels) == (prior.size, prior.channels)
    assert prior.file.stat().st_size <= 20e6
    assert prior.card.is_file()


@pytest.mark.parametrize(("given", "hint"), [("facs", "did you mean faces?"), ("Natural", "did you mean natural?")])
def test_unknown_name_suggests_the_nearest(given, hint):
    message = message_for(given)
    assert hint in message
    assert all(text in message for text in (*BUNDLED, ".safetensors", ".pth", ".pt"))


def test_a_name_wins_over_a_file_but_a_path_does_not(weights, tmp_path, monkeypatch):
    save_unet(UNet(TINY), weights / "faces.safetensors")
    (tmp_path / "faces").write_text("")
    monkeypatch.chdir(tmp_path)
    assert load_prior("faces").name == "faces"
    assert "ends in" in message_for("./faces".replace("/", os.sep))


def test_file_kinds(checkpoint, tmp_path):
    x = torch.rand(1, 3, 16, 16)
    expected = reference_network("ncsnv2").denoise(x, 0.3)
    save_ncsnv2(reference_network("ncsnv2"), tmp_path / "converted.safetensors")
    (tmp_path / "B.PT").write_bytes(checkpoint.read_bytes())
    for path in (checkpoint, tmp_path / "converted.safetensors", str(tmp_path / "B.PT")):
        prior = load_prior(path)
        assert_ready(prior, os.path.basename(path))
        torch.testing.assert_close(prior.denoise(x, 0.3), expected, rtol=1e-5, atol=1e-6)
    save_unet(UNet(TINY), tmp_path / "trained.safetensors")
    assert isinstance(load_prior(tmp_path / "trained.safetensors"), UNet)


def test_paths_that_are_no_files(tmp_path):
    assert "there is no file" in message_for("absent.pth")
    assert "there is no file" in message_for(tmp_path / "absent")
    assert "is a folder" in message_for(tmp_path)
    assert "unknown prior ''" in message_for("")
    (tmp_path / "a.ckpt").write_bytes(b"")
    assert "ends in .safetensors, .pth, .pt" in message_for(tmp_path / "a.ckpt")


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".safetensors"])
@pytest.mark.parametrize(
    "content", [b"", b"hello world", b"PK\x03\x04 no archive", bytes(range(256)) * 20, b"\x80\x02."]
)
def test_foreign_bytes(suffix, content, tmp_path):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    assert str(path) in message_for(path)


def test_truncated_anywhere(checkpoint, tmp_path):
    save_ncsnv2(reference_network("ncsnv2"), tmp_path / "w.safetensors")
    old = published_file("ncsnv2", tmp_path / "old.pth", old=True)
    for source in (checkpoint, old, tmp_path / "w.safetensors"):
        content = source.read_bytes()
        for part in (1, 9, 100, len(content) // 3, len(content) - 1000, len(content) - 1):
            cut = tmp_path / f"cut{source.suffix}"
            cut.write_bytes(content[:part])
            assert str(cut) in message_for(cut)


class Payload:
    """Runs a command when unpickled the unsafe way."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("how", ["zip", "old", "pickle"])
def test_pickles_with_code_are_refused_and_not_run(how, tmp_path):
    marker, path = tmp_path / "ran", tmp_path / "x.pth"
    entries = [{"module.sigmas": Payload(marker)}]
    if how == "pickle":
        path.write_bytes(pickle.dumps(entries, protocol=2))
    else:
        torch.save(entries, path, _use_new_zipfile_serialization=how == "zip")
    message = message_for(path)
    assert "is refused" in message
    assert "mkdir" in message
    assert "weights_only" not in message  # PyTorch's own advice is to load it all the same
    assert not marker.exists()
    torch.load(path, weights_only=False) if how != "pickle" else pickle.loads(path.read_bytes())
    assert marker.exists()  # so the refusal above did prevent something


def test_other_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    assert "holds no prior of this package" in message_for(path)
    save_file({"a": torch.zeros(2)}, path, {"format": "pt"})
    assert "'pt'" in message_for(path)
    save_file({"a": torch.zeros(2)}, path, {"format": FORMAT})
    assert "another network than NCSNv2" in message_for(path)
    for config in ({}, {"config": "[1, 2]"}, {"config": "{"}):
        save_file({"a": torch.zeros(2)}, path, {"format": UNET_FORMAT, **config})
        assert str(path) in message_for(path)


def test_a_training_checkpoint_points_to_its_weights(tmp_path):
    torch.save({"config": "{}", "model": {}}, tmp_path / "checkpoint.pt")
    assert "weights.safetensors" in message_for(tmp_path / "checkpoint.pt")
