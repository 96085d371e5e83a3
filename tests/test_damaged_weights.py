"""Files of weights that are damaged, or lie about themselves."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from prior_files import TINY, message_for
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.ncsnv2_files import save_ncsnv2
from snips.priors.registry import BUNDLED, load_prior
from snips.priors.unet import UNet, save_unet


def save_tiny_unet(path) -> None:
    torch.manual_seed(0)
    model = UNet(TINY)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)  # the last layer starts at zero, where a hole would be none
    save_unet(model, path)


def save_tiny_ncsnv2(path) -> None:
    torch.manual_seed(0)
    save_ncsnv2(NCSNv2(ngf=4), path)


def test_weights_that_are_no_numbers(tmp_path):
    model = UNet(TINY)
    save_unet(model, path := tmp_path / "x.safetensors")
    with safe_open(path, "pt") as file:
        told = {name: value for name, value in file.metadata().items() if name != "sha256"}
    broken = load_file(path) | {"level.enter.bias": torch.full_like(model.level.enter.bias, torch.nan)}
    save_file(broken, path, told)
    assert "no finite numbers" in message_for(path)


def test_weights_that_are_no_numbers_are_not_written(tmp_path):
    model = UNet(TINY)
    save_unet(model, path := tmp_path / "x.safetensors")
    before = path.read_bytes()
    with torch.no_grad():
        model.level.enter.bias[0] = 1e6  # too large for half precision
    with pytest.raises(FloatingPointError, match="not written"):
        save_unet(model, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("save_one", [save_tiny_unet, save_tiny_ncsnv2])
def test_a_hole_in_the_weights_is_noticed(save_one, tmp_path):
    """A block of zeros, as a disk may leave it: sizes and names still fit."""
    save_one(path := tmp_path / "x.safetensors")
    content = bytearray(path.read_bytes())
    content[-400:] = bytes(400)
    path.write_bytes(content)
    assert "is damaged" in message_for(path)


def test_a_hole_in_a_published_checkpoint_is_noticed(tmp_path):
    save_tiny_ncsnv2(tmp_path / "x.safetensors")
    state = {f"module.{name}": value for name, value in load_file(tmp_path / "x.safetensors").items()}
    torch.save([state], path := tmp_path / "x.pth")
    assert isinstance(load_prior(path), NCSNv2)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(content)
    assert "damaged" in message_for(path)


@pytest.mark.parametrize(
    "change",
    [
        {"encoder": [100_000_000, 1, 1]},
        {"encoder": [60_000, 1, 1]},
        {"widths": []},
        {"widths": [8, 8.5, 16]},
        {"size": [20_000, 20_000]},
        {"size": ["a", "b"]},
        {"widths": [6000, 6000, 6000]},
        {"expansion": 5000},
        {"sigma_data": 0},
        {"sigma_max": "x"},
        {"sigma_min": 5, "sigma_max": 1},
        {"block": "unknown"},
        {"patch": 0},
    ],
)
def test_a_config_that_makes_no_sense(change, tmp_path):
    """Also one that asks for a network without end is refused before it is built."""
    save_unet(UNet(TINY), path := tmp_path / "x.safetensors")
    with safe_open(path, "pt") as file:
        told = {name: value for name, value in file.metadata().items() if name != "sha256"}
    save_file(load_file(path), path, {**told, "config": json.dumps({**json.loads(told["config"]), **change})})
    assert "config" in message_for(path)


def test_a_changed_config_is_noticed(tmp_path):
    """Another number in it would be another prior, whose weights still fit."""
    save_unet(UNet(TINY), path := tmp_path / "x.safetensors")
    content = path.read_bytes()
    changed = content.replace(b'sigma_max\\": 40.0', b'sigma_max\\": 90.0')
    assert changed != content
    path.write_bytes(changed)
    assert "is damaged" in message_for(path)


@pytest.mark.parametrize("prior", BUNDLED.values(), ids=lambda prior: prior.name)
def test_bundled_files_tell_their_digest(prior):
    with safe_open(prior.file, "pt") as file:
        assert "sha256" in file.metadata()
