"""The commands `priors`, `convert` and `train`, as a user types them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from command_line import refused, restored, run
from ncsnv2_cases import KINDS, published_file
from snips import Restoration
from snips.cli import app
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.registry import load_prior
from snips.priors.unet import UNet, UNetConfig, save_unet


def test_priors_command(weights):
    save_unet(UNet(UNetConfig(widths=(8, 8, 16))), weights / "faces.safetensors")
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
    before, after = load_prior(source).state_dict(), load_prior(target).state_dict()
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert target.stat().st_mode == source.stat().st_mode  # others may read it, where they may read new files
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


def test_convert_refuses_wrong_paths(tmp_path):
    checkpoint = published_file("ncsnv2", tmp_path / "c.pth")
    assert "there is no file" in refused(run("convert", tmp_path / "absent.pth"))
    assert "already" in refused(run("convert", tmp_path / "w.safetensors"))
    assert "must end in .safetensors" in refused(run("convert", checkpoint, "--out", tmp_path / "w.pth"))
    assert "folder is missing" in refused(run("convert", checkpoint, "--out", tmp_path / "no" / "w.safetensors"))


def test_convert_on_a_full_disk_leaves_no_part(tmp_path):
    """A limit on the size of files stands in for the disk."""
    resource = pytest.importorskip("resource")
    source, target = published_file("ncsnv2", tmp_path / "c.pth"), tmp_path / "c.safetensors"
    target.write_text("precious")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        result = run("convert", source, "--force")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"{target} cannot be written" in refused(result)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.pth", "c.safetensors"]
    assert target.read_text() == "precious"


def test_train_then_use_the_weights(tmp_path):
    """A few steps on noise: the run leaves weights that `restore` takes, and the same command goes on."""
    random = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for i in range(4):
        pixels = random.integers(0, 255, (20, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i}.png")
    command = [
        "train",
        "--data",
        str(tmp_path / "photos"),
        "--out",
        str(tmp_path / "run"),
        "--crop",
        "16",
        "--batch",
        "2",
    ]
    for steps in ("1", "3"):
        result = CliRunner().invoke(app, [*command, "--steps", steps, "--json"])
        assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["step"] == 3
    weights = json.loads(result.stdout)["weights"]
    arguments = ["--prior", weights, "--out", str(tmp_path / "restored"), "--nfe", "10", "--samples", "2"]
    result = CliRunner().invoke(app, ["restore", str(tmp_path / "photos" / "0.png"), *arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["settings"]["prior"] == "weights.safetensors"


def test_grey_images_teach_a_bundled_prior_to_restore_grey_ones(weights, tmp_path):
    """Begun with weights for both, by their name; what comes out takes what it was trained on."""
    network = UNet(UNetConfig(channels=(1, 3), widths=(8, 8), encoder=(1, 1), decoder=(1, 1)))
    save_unet(network, weights / "natural.safetensors")
    (tmp_path / "scans").mkdir()
    for i in range(3):
        Image.effect_noise((20, 24), 60).save(tmp_path / "scans" / f"{i}.png")
    command = ["train", "--data", tmp_path / "scans", "--out", tmp_path / "run", "--init", "natural"]
    result = run(*command, "--crop", 16, "--batch", 2, "--steps", 1)
    assert result.exit_code == 0, result.output
    restored(tmp_path, tmp_path / "scans" / "0.png", "-s", "0.1", "--prior", tmp_path / "run" / "weights.safetensors")
    assert Restoration.load(tmp_path / "out").samples.shape[2] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere"], "nowhere is no folder"),
        (["--data", "nowhere", "--channels", "2"], "--channels takes 1, 3 or 1,3, not 2"),
        (["--data", "nowhere", "--preset", "fases"], "did you mean faces"),
        (["--data", "nowhere", "--preset", "faces"], "img_align_celeba is no folder"),
        (
            ["--data", "nowhere", "--preset", "faces", "--crop", "32"],
            "images of 64 x 64 pixels: leave out --crop",
        ),
        (["--data", "nowhere", "--init", "natrual"], "did you mean natural?"),
        (["--data", "nowhere", "--device", "gpu"], "unknown device 'gpu'"),
        (["--data", "nowhere", "--batch", "0"], "batch must be a whole number of at least 1, but is 0"),
        (["--data", "nowhere", "--batch", "-2"], "batch must be a whole number of at least 1, but is -2"),
        (["--data", "nowhere", "--crop", "0"], "crop must be"),
        (["--data", "nowhere", "--crop", "-3"], "crop must be"),
        (["--data", "nowhere", "--steps", "-1"], "steps must be"),
        (["--data", "nowhere", "--cooldown", "-1", "--steps", "9"], "cooldown must be at least 0"),
        (["--data", "nowhere", "--cooldown", "5"], "--cooldown needs to know the end"),
        (["--data", "nowhere", "--minutes", "nan"], "minutes must be at least 0"),
        (["--data", "nowhere", "--seed", "-1"], "seed must be at least 0"),
        (["--data", "nowhere", "--seed", "99999999999999999999999"], "seed must be below 2^63"),
        (["--data", "nowhere", "--lr", "0"], "lr must be above 0"),
        (["--data", "nowhere", "--threads", "0"], "--threads"),
    ],
)
def test_train_refuses_bad_input(arguments, message, tmp_path):
    result = CliRunner().invoke(app, ["train", "--out", str(tmp_path / "run"), *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
