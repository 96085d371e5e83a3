"""What `snips degrade` does to a picture before it measures it, and says."""

from __future__ import annotations

import json

import numpy as np
from PIL import Image

from command_line import run
from photo_files import random_pixels
from snips.posing.measurement_files import load_measurement


def test_degrade_says_what_it_changed(tmp_path):
    Image.fromarray(random_pixels(13, 21, 4), "CMYK").save(tmp_path / "inks.tif")
    arguments = ("degrade", tmp_path / "inks.tif", "-p", "sr2", "--out", tmp_path / "y.npz")
    shown = run(*arguments)
    assert "cropped to 20 x 12 pixels, which the factor 2 divides" in shown.stderr
    assert "CMYK" in shown.stderr
    silent = run(*arguments, "--force", "--json")
    assert json.loads(silent.stdout)["measurement_shape"] == [3, 6, 10]
    assert silent.stderr == ""


def test_grey_in_three_channels_is_measured_once(tmp_path):
    equal = np.repeat(random_pixels(12, 20)[..., None], 3, -1)
    Image.fromarray(equal).save(tmp_path / "grey.png")
    shown = run("degrade", tmp_path / "grey.png", "--out", tmp_path / "y.npz")
    assert "its three channels are equal: taken as grey" in shown.stderr
    assert load_measurement(tmp_path / "y.npz").y.shape == (1, 1, 12, 20)
