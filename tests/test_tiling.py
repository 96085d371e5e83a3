"""Tiles in the commands: when they are used, what is said and recorded, and what stays the same."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from command_line import QUICK, refused, run
from photo_files import random_pixels
from prior_cases import Local
from snips import InverseProblem, Restoration, make_operator
from snips.priors import StationaryGaussian
from snips.priors.precision import with_precision
from snips.priors.tiled import MARGIN, SIDES
from snips.priors.unet import UNet, UNetConfig, save_unet
from snips.running import costs
from snips.running.tiling import fitting_side, tiles_for


@pytest.fixture
def weights(tmp_path):
    """A small network that does something: its last layer is not zero."""
    torch.manual_seed(0)
    network = UNet(UNetConfig(channels=(1,), widths=(8,), encoder=(1,), decoder=(1,)))
    network.fit_linear(F.avg_pool2d(torch.rand(4, 1, 64, 64), 5, 1, 2))
    torch.nn.init.normal_(network.head["1"].weight, std=0.1)
    save_unet(network, tmp_path / "own.safetensors")
    return tmp_path / "own.safetensors"


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_attention_that_is_cut_is_said(attention, precision, monkeypatch):
    monkeypatch.setattr("snips.priors.precision.bfloat16_works", lambda: True)
    config = UNetConfig(channels=(1,), widths=(8,), encoder=(1,), decoder=(1,), attention=attention)
    prior = with_precision(UNet(config), precision)
    problem = InverseProblem(make_operator("denoise", (1, 16, 200)), torch.zeros(1, 1, 16, 200), 0.1)
    monkeypatch.setattr("snips.running.tiling.deviations", lambda problem, tiled: {0.1: 0.0})
    tiles = tiles_for(problem, prior, 32, None)
    assert ("its attention sees one tile at a time" in str(tiles)) == attention


@pytest.fixture
def photo(tmp_path):
    (tmp_path / "in").mkdir()
    Image.fromarray(random_pixels(200, 40)).save(tmp_path / "in" / "photo.png")
    return tmp_path / "in" / "photo.png"


@pytest.fixture
def little_memory(monkeypatch):
    """Enough for the run, but not for comfort: images of more than 2,000 pixels are large, and half of it is small."""
    monkeypatch.setattr(costs, "EXTRAPOLATE_FROM", 2000)
    monkeypatch.setattr(costs, "pixel_bytes", lambda prior, channels: 2**20)
    monkeypatch.setattr(costs, "available_memory", lambda: 2**31)  # 1,024 pixels at once


def restored(folder, photo, weights, *more):
    result = run("restore", photo, "-s", "0.1", "--prior", weights, "--out", folder, *QUICK, *more)
    assert result.exit_code == 0, result.output
    return result, Restoration.load(folder)


def test_tiles_by_hand_are_told_and_recorded_and_change_nothing_visible(photo, weights, tmp_path):
    told, tiled = restored(tmp_path / "tiled", photo, weights, "--tile", "32")
    silent, whole = restored(tmp_path / "whole", photo, weights)
    assert "tiles of 32 pixels with margins of 64; on a crop, tiles change what it returns by" in told.stderr
    assert "tiles" not in silent.stderr
    assert "tiles" not in whole.settings
    record = tiled.settings["tiles"]
    assert (record["side"], record["margin"]) == (32, MARGIN)
    assert record["deviation"].keys() == {"0.05", "0.3", "2"}
    assert max(record["deviation"].values()) < 1e-5  # the margin is wider than this network sees: rounding at most
    assert "tiles of 32" in tiled.settings["prior"]
    torch.testing.assert_close(tiled.samples, whole.samples, rtol=0, atol=1e-3)


@pytest.mark.usefixtures("little_memory")
def test_little_memory_means_tiles_and_no_refusal(photo, weights, tmp_path):
    told, result = restored(tmp_path / "out", photo, weights)
    assert "one call on the whole image would fill more than half of the free memory, so " in told.stderr
    assert result.settings["tiles"]["side"] == SIDES[-1]


@pytest.mark.usefixtures("little_memory")
def test_what_cannot_be_tiled_is_left_to_the_estimate(photo, tmp_path):
    result = run("restore", photo, "-s", "0.1", "--prior", "gaussian", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "tiles" not in result.stderr


@pytest.mark.usefixtures("little_memory")
def test_a_batch_decides_once(photo, weights, tmp_path, monkeypatch):
    def batch():
        options = ("-p", "denoise", "-s", "0.1", "--prior", weights, "-k", "2", "--nfe", "4")
        result = run("batch", photo.parent, "--out", tmp_path / "out", *options)
        assert result.exit_code == 0, result.output
        files = (tmp_path / "out" / "items").glob("*/result.json")
        return [json.loads(file.read_text())["settings"]["tiles"]["side"] for file in files]

    assert batch() == [SIDES[-1]]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["untiled_pixels"] == 1024
    Image.fromarray(random_pixels(200, 40)).save(photo.parent / "later.png")
    monkeypatch.setattr(costs, "available_memory", lambda: 2**50)
    assert batch() == [SIDES[-1]] * 2
    rows = pyarrow.parquet.read_table(tmp_path / "out" / "scores.parquet").to_pylist()
    assert [row["tile"] for row in rows] == [SIDES[-1]] * 2
    assert all(0 <= row["tile_deviation"] < 1 for row in rows)
    assert "denoised in tiles" in (tmp_path / "out" / "summary.html").read_text()


def test_bad_tiles_are_one_line(photo, weights, tmp_path):
    common = ("-s", "0.1", "--out", tmp_path / "out")
    for command in (("restore", photo), ("batch", photo.parent, "-p", "denoise")):
        line = refused(run(*command, *common, "--prior", weights, "--tile", "50"))
        assert "multiples of 32 pixels, not 50" in line
    assert "not for tiles" in refused(run("restore", photo, *common, "--prior", "gaussian", "--tile", "32"))
    assert not (tmp_path / "out").exists()


def test_when_and_which():
    assert [fitting_side(pixels) for pixels in (10**9, 640**2, 640**2 - 1, 256**2, 10)] == [512, 512, 256, 128, 128]
    problem = InverseProblem(make_operator("denoise", (1, 200, 8)), torch.from_numpy(np.zeros((1, 1, 200, 8))), 0.1)
    network = UNet(UNetConfig(channels=(1,), widths=(8,), encoder=(1,), decoder=(1,)))
    assert tiles_for(problem, network, None, None) is None
    assert tiles_for(problem, network, None, 1600) is None
    assert tiles_for(problem, network, 160, None) is None  # no larger than a tile
    assert tiles_for(problem, StationaryGaussian.natural((1, 200, 8)), None, 100) is None
    found = tiles_for(problem, network, None, 1599)
    assert found is not None
    assert found.prior.side == 128


@pytest.mark.parametrize(("radius", "seen"), [(16, False), (100, True)])
def test_what_tiles_cost_is_measured_on_a_crop(radius, seen):
    """Of a denoiser that sees farther than the margin the deviation is large, though no tile of 512 fits the crop."""
    problem = InverseProblem(make_operator("denoise", (1, 600, 300)), torch.rand(1, 1, 600, 300), 0.1)
    prior = Local(radius)
    found = tiles_for(problem, prior, 512, None)
    assert found is not None
    assert prior.largest == 256
    assert (max(found.deviations.values()) > 1e-3) == seen


def test_the_memory_of_a_call_is_measured():
    network = UNet(UNetConfig(channels=(1,), widths=(64,), encoder=(1,), decoder=(1,)))
    assert 64 < costs.pixel_bytes(network, 1) < 50_000
