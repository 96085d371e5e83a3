"""The Gaussian prior has no file, but a name: it is listed with the others."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from command_line import refused, run
from photo_files import random_pixels
from snips import load_prior


def test_a_wrong_name_is_told_all_that_there_are(tmp_path):
    Image.fromarray(random_pixels(12, 20)).save(tmp_path / "photo.png")
    line = refused(run("restore", tmp_path / "photo.png", "--prior", "gausian", "--out", tmp_path / "out"))
    assert "(did you mean gaussian?); choose one of: faces, natural, gaussian, or a file" in line


def test_the_list_of_priors():
    assert "gaussian" in run("priors").stdout
    assert "smooth results" in json.loads(run("priors", "--json").stdout)["gaussian"]["summary"]


def test_without_an_image_there_is_no_gaussian():
    with pytest.raises(ValueError, match=r"StationaryGaussian\.natural\(image_shape\)"):
        load_prior("gaussian")
