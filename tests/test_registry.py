"""load_prior(), and the commands `priors` and `convert`: names, all kinds of files, and files that are none."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

import snips
from ncsnv2_cases import KINDS, published_file, published_list, reference_network
from snips.cli import app
from snips.priors import registry
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.ncsnv2_files import FORMAT, save_ncsnv2
from snips.priors.registry import BUNDLED, load_prior
from snips.priors.unet import UNet, UNetConfig, save_unet

TINY = UNetConfig(widths=(8, 8, 16))


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(result) -> str:
    """Exit code 2 and exactly one line that explains why."""
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def message_for(given) -> str:
    """The one line that load_prior refuses it with."""
    with pytest.raises(ValueError, match="^.+$") as caught:
        load_prior(given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_ready(prior, name: str) -> None:
    assert prior.name == name
    assert not any(module.training for module in prior.modules())
    assert not any(p.requires_grad for p in prior.parameters())


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """An installation whose bundled weights are in an empty folder."""
    monkeypatch.setattr(registry, "WEIGHTS", tmp_path / "weights")
    (tmp_path / "weights").mkdir()
    return tmp_path / "weights"


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


def test_bundled_loads_in_under_a_second(weights):
    save_unet(UNet(), weights / "natural.safetensors")  # the size of the real ones
    started = time.perf_counter()
    load_prior("natural")
    assert time.perf_counter() - started < 1


def test_bundled_but_not_installed(weights):
    message = message_for("faces")
    assert "not part of this installation" in message
    assert str(weights / "faces.safetensors") in message


@pytest.mark.parametrize("prior", [p for p in BUNDLED.values() if p.file.is_file()], ids=lambda p: p.name)
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
        save_file({"a": torch.zeros(2)}, path, {"format": "snips-unet-1", **config})
        assert str(path) in message_for(path)


def test_weights_that_are_no_numbers(tmp_path):
    model = UNet(TINY)
    with torch.no_grad():
        model.level.enter.bias[0] = torch.nan
    save_unet(model, tmp_path / "x.safetensors")
    assert "no finite numbers" in message_for(tmp_path / "x.safetensors")


def test_a_training_checkpoint_points_to_its_weights(tmp_path):
    torch.save({"config": "{}", "model": {}}, tmp_path / "checkpoint.pt")
    assert "weights.safetensors" in message_for(tmp_path / "checkpoint.pt")


def test_priors_command(weights):
    save_unet(UNet(TINY), weights / "faces.safetensors")
    (weights / "faces.md").write_text("card")
    facts = json.loads(run("priors", "--json").stdout)
    assert facts["faces"]["size"] == [64, 64]
    assert facts["faces"]["channels"] == [3]
    assert facts["faces"]["bytes"] == (weights / "faces.safetensors").stat().st_size
    assert facts["faces"]["card"] == str(weights / "faces.md")
    assert facts["natural"]["channels"] == [1, 3]
    assert facts["natural"]["size"] is facts["natural"]["file"] is facts["natural"]["bytes"] is None
    text = run("priors").stdout
    assert all(word in text for word in ("faces", "64 x 64", "natural", "any", "1 or 3", "not installed", "MB"))


@pytest.mark.parametrize("name", list(KINDS))
def test_convert(name, tmp_path):
    source, target = published_file(name, tmp_path / "c.pth"), tmp_path / "c.safetensors"
    result = run("convert", source, "--out", target, "--json")
    assert result.exit_code == 0, result.output
    expected = {"file": str(target), "architecture": name, "ngf": 8, "channels": 3}
    assert json.loads(result.stdout).items() >= expected.items()
    for key, value in load_prior(source).state_dict().items():
        torch.testing.assert_close(load_prior(target).state_dict()[key], value, rtol=0, atol=0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.pth", "c.safetensors"]  # nothing is left behind


def test_convert_writes_beside_the_checkpoint_and_never_overwrites_unasked(tmp_path):
    source = published_file("ncsnv2", tmp_path / "c.pth")
    assert "NCSNv2, ngf 8" in run("convert", source).stdout
    target = tmp_path / "c.safetensors"
    target.write_text("precious")
    assert "--force" in refused(run("convert", source))
    assert target.read_text() == "precious"
    assert run("convert", source, "--force").exit_code == 0
    assert isinstance(load_prior(target), NCSNv2)


def test_convert_keeps_the_old_file_when_the_checkpoint_is_bad(tmp_path):
    (tmp_path / "c.pth").write_bytes(b"")
    (tmp_path / "c.safetensors").write_text("precious")
    assert "cannot be read" in refused(run("convert", tmp_path / "c.pth", "--force"))
    assert (tmp_path / "c.safetensors").read_text() == "precious"


def test_convert_refuses_wrong_paths(checkpoint, tmp_path):
    assert "there is no file" in refused(run("convert", tmp_path / "absent.pth"))
    assert "already" in refused(run("convert", tmp_path / "w.safetensors"))
    assert "must end in .safetensors" in refused(run("convert", checkpoint, "--out", tmp_path / "w.pth"))
    assert "folder is missing" in refused(run("convert", checkpoint, "--out", tmp_path / "no" / "w.safetensors"))


def test_convert_on_a_full_disk_leaves_no_part(tmp_path):
    """A limit on the size of files stands in for the disk."""
    resource = pytest.importorskip("resource")
    torch.save(published_list("ncsnv2"), tmp_path / "c.pth")
    (tmp_path / "c.safetensors").write_text("precious")
    result = subprocess.run(
        [sys.executable, "-m", "snips", "convert", str(tmp_path / "c.pth"), "--force"],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.pth", "c.safetensors"]
    assert (tmp_path / "c.safetensors").read_text() == "precious"
