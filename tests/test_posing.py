"""A picture as a measurement: what it leaves open is asked for, and what surely is not meant is said or refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import snips
from command_line import QUICK, refused, restored, run
from photo_files import random_pixels, saved_photo
from snips import Restoration
from snips.posing.options import checked_options
from snips.web.limits import Limits
from snips.web.task import Task, build_problem

EQUAL = "its three channels are equal: taken as grey"


@pytest.fixture
def grey(tmp_path):
    """A grey picture with three channels."""
    Image.fromarray(random_pixels(12, 20)).convert("RGB").save(tmp_path / "grey.png")
    return tmp_path / "grey.png"


@pytest.fixture
def photo(tmp_path):
    return saved_photo(tmp_path / "photo.png", 12, 20)


def told_and_loaded(tmp_path, *arguments):
    """What `snips restore` says, and the result it leaves."""
    return restored(tmp_path, *arguments), Restoration.load(tmp_path / "out")


def test_which_pixels_were_seen_is_asked_for(photo, tmp_path):
    assert "give --mask" in refused(run("restore", photo, "-p", "inpaint", "--out", tmp_path / "out", *QUICK))
    with pytest.raises(ValueError, match="mask="):
        snips.restore(random_pixels(12, 20), operator="inpaint", sigma_0=0.1, prior="gaussian")
    restored(tmp_path, photo, "-p", "inpaint", "-s", "0.1", "--simulate")


@pytest.mark.parametrize("more", [[], ["--simulate"], ["-p", "sr2"]])
def test_three_equal_channels_are_restored_as_one(more, grey, tmp_path):
    shown, result = told_and_loaded(tmp_path, grey, "-s", "0.1", *more)
    assert EQUAL in shown.stderr
    assert result.samples.shape[2] == 1


def test_three_equal_channels_stay_where_the_prior_or_the_problem_is_in_colour(grey, tmp_path):
    arguments = ("--prior", "faces", "-s", "0.1", "--nfe", "4", "-k", "1", "--out", tmp_path / "faces")
    assert run("restore", grey, *arguments).exit_code == 0
    assert Restoration.load(tmp_path / "faces").samples.shape[2] == 3
    assert told_and_loaded(tmp_path, grey, "-p", "colorize", "-s", "0.1")[1].samples.shape[2] == 3


def test_three_equal_channels_from_python_and_from_the_page(grey):
    with Image.open(grey) as picture:
        for value in (picture, np.asarray(picture)):
            result = snips.restore(value, "gaussian", sigma_0=0.1, samples=1, nfe=4)
            assert result.samples.shape[2] == 1
            assert result.settings["notes"] == [EQUAL]
    task = Task(grey, False, "denoise", 0.1, samples=1, calls=10)
    assert build_problem(task, Limits()).problem.operator.image_shape == (1, 12, 20)


def test_one_different_pixel_is_a_colour(grey):
    with Image.open(grey) as picture:
        values = np.array(picture)
    values[3, 4, 1] ^= 1
    assert snips.restore(values, "gaussian", sigma_0=0.1, samples=1, nfe=4).samples.shape[2] == 3


@pytest.mark.parametrize("kernel", ["[[1,-1],[1,-1]]", "[[1,-4],[1,1]]"])
def test_a_kernel_in_an_option_needs_a_positive_sum(kernel, photo, tmp_path):
    arguments = ("-p", "deblur_kernel", "-o", f"kernel={kernel}", "-s", "0.1", "--out", tmp_path / "out")
    assert "needs a positive sum" in refused(run("restore", photo, *arguments))


def test_a_kernel_in_an_option_is_scaled_as_one_in_a_file(photo, tmp_path):
    options = ("-o", "kernel=[[1,2],[3,4]]", "-o", "border=circular")
    _, result = told_and_loaded(tmp_path, photo, "-p", "deblur_kernel", *options, "-s", "0.1")
    expected = torch.tensor([[[0.1, 0.2], [0.3, 0.4]]])
    torch.testing.assert_close(result.problem.operator.kernel, expected)


@pytest.mark.parametrize(
    ("options", "size"),
    [
        (["-p", "deblur_uniform", "-o", "width=15"], "15 x 15"),
        (["-p", "deblur_gauss", "-o", "width=13"], "13 x 13"),
        (["-p", "deblur_motion", "-o", "length=14", "-o", "angle=90"], "14 x 1"),
        (["-p", "deblur_kernel", "--kernel", "kernel.npy"], "3 x 21"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--simulate"]])
def test_a_blur_larger_than_the_image(more, options, size, photo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("kernel.npy", np.ones((3, 21)))
    line = refused(run("restore", photo, *options, *more, "-s", "0.1", "--out", tmp_path / "out"))
    assert f"the kernel has {size} pixels, more than the image of 12 x 20" in line


def test_a_long_movement_along_the_long_side_fits():
    assert checked_options("deblur_motion", (1, 12, 20), {"length": 19, "angle": 0})["length"] == 19


def test_the_noise_of_a_matrix_has_its_own_scale(tmp_path):
    H = np.random.default_rng(0).random((30, 48)) * 255
    np.save(tmp_path / "H.npy", H)
    np.save(tmp_path / "y.npy", H @ np.random.default_rng(1).random(48))
    arguments = (tmp_path / "y.npy", "--matrix", tmp_path / "H.npy", "--shape", "1,6,8", "-s", "5")
    assert told_and_loaded(tmp_path, *arguments)[1].problem.sigma_0 == 5


def test_what_is_surely_not_meant(grey, tmp_path):
    Image.new("L", (20, 12), 255).save(tmp_path / "mask.png")
    shown, _ = told_and_loaded(tmp_path, grey, "--mask", tmp_path / "mask.png", "-s", "0.1")
    assert "the mask hides no pixel" in shown.stderr
    Image.fromarray(random_pixels(12, 20)).save(tmp_path / "one.png")
    other = ("--out", tmp_path / "other")
    line = refused(run("restore", tmp_path / "one.png", "-p", "colorize", "--simulate", "-s", "0.1", *other))
    assert "no colour to find" in line
    assert "factor is given twice" in refused(run("restore", grey, "-o", "factor=2", "--factor", "3", *other))


def test_degrade_says_that_it_leaves_out_transparency(tmp_path):
    Image.fromarray(random_pixels(12, 20, 4)).save(tmp_path / "photo.png")
    result = run("degrade", tmp_path / "photo.png", "--out", tmp_path / "y.npz")
    assert "transparency" in result.stderr
