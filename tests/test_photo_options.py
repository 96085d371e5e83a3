"""Options, masks and kernels for photos: what they mean, and what is refused in one line."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import convolve

from command_line import QUICK, refused, restored, run
from photo_files import png, saved_photo
from snips import Restoration
from snips.cli import problem_options


@pytest.fixture
def photo(tmp_path):
    return saved_photo(tmp_path / "photo.png", 12, 20)


def test_a_face_prior_on_a_grey_photo(tmp_path):
    Image.new("L", (64, 64)).save(tmp_path / "grey.png")
    line = refused(run("restore", tmp_path / "grey.png", "--prior", "faces", "-s", "0.1", "--out", tmp_path / "out"))
    assert "3 channels, not 1" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "25"], "did you mean --sigma 0.09804, which is 25/255"),
        (["-s", "loud"], "a number or auto"),
        (["-p", "cs4"], "measures projections, not pixels"),
        (["-p", "mri"], "measures frequencies, not pixels"),
        (["-p", "sr", "--factor", "0"], "whole number of at least 1"),
        (["-p", "sr4", "--factor", "3"], "cannot take factor=3"),
        (["--simulate", "-s", "auto"], "needs to know its noise"),
        (["--range", "1"], "2 numbers"),
        (["--range", "1,1"], "two different numbers"),
        (["-p", "matrix"], "needs the option matrix"),
        (["--chunk", "0", "-s", "0.1"], "chunk must be"),
    ],
)
def test_one_line_for_bad_options(arguments, message, photo, tmp_path):
    assert message in refused(run("restore", photo, "--out", tmp_path / "out", *QUICK, *arguments))
    assert not (tmp_path / "out").exists()


def test_a_sigma_for_0_to_255_is_asked_about_in_a_terminal(monkeypatch):
    monkeypatch.setattr(problem_options.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(problem_options.typer, "confirm", lambda *_, **__: True)
    assert problem_options.ProblemOptions(sigma="25").read_sigma() == 25 / 255
    monkeypatch.setattr(problem_options.typer, "confirm", lambda *_, **__: False)
    with pytest.raises(ValueError, match="0 to 1 here"):
        problem_options.ProblemOptions(sigma="25").read_sigma()


def test_a_sigma_in_other_units_is_not_asked_about(monkeypatch):
    monkeypatch.setattr(problem_options.typer, "confirm", lambda *_, **__: pytest.fail("it asks"))
    monkeypatch.setattr(problem_options.sys.stdin, "isatty", lambda: True, raising=False)
    assert problem_options.ProblemOptions(sigma="25").read_sigma(own_scale=True) == 25


def test_a_kernel_as_a_picture(tmp_path):
    """Grey levels are relative weights: the measurement's model is the blur with the kernel of sum 1."""
    weights = np.array([[0, 50, 0], [100, 255, 0], [0, 25, 0]], np.uint8)
    Image.fromarray(weights).save(tmp_path / "kernel.png")
    truth = np.random.default_rng(0).random((12, 20))
    np.save(tmp_path / "photo.npy", convolve(truth, weights / weights.sum(), mode="wrap"))
    kernel = ("--kernel", tmp_path / "kernel.png", "-o", "border=circular")
    restored(tmp_path, tmp_path / "photo.npy", *kernel, "-s", "0.01")
    problem = Restoration.load(tmp_path / "out").problem
    expected = problem.operator.forward(torch.from_numpy(truth)[None, None].float())
    np.testing.assert_allclose(problem.y, expected, atol=1e-5)


@pytest.mark.parametrize("kernel", [[[-1.0, -1.0]], [[1.0, -4.0]]])
def test_a_kernel_of_a_negative_sum(kernel, photo, tmp_path):
    np.save(tmp_path / "kernel.npy", np.array(kernel))
    line = refused(run("restore", photo, "--kernel", tmp_path / "kernel.npy", "--out", tmp_path / "out"))
    assert "needs a positive sum" in line


@pytest.mark.parametrize("white", [1, 127, 255])
def test_masks_with_any_white(white, photo, tmp_path):
    mask = np.zeros((12, 20), np.uint8)
    mask[:, 5:] = white
    Image.fromarray(mask).save(tmp_path / "mask.png")
    restored(tmp_path, photo, "-s", "0.1", "--mask", tmp_path / "mask.png")
    assert Restoration.load(tmp_path / "out").problem.y.numel() == 3 * 12 * 15


def test_a_mask_that_hides_everything(photo, tmp_path):
    Image.new("L", (20, 12), 0).save(tmp_path / "mask.png")
    line = refused(run("restore", photo, "--mask", tmp_path / "mask.png", "--out", tmp_path / "out"))
    assert "hides every pixel" in line


@pytest.mark.parametrize("kernel", [[[1.0, -2.0, 1.0]], [[0.0]], [[1.0, -1.0]]])
def test_a_kernel_that_sums_to_0(kernel, photo, tmp_path):
    np.save(tmp_path / "kernel.npy", np.array(kernel))
    line = refused(run("restore", photo, "--kernel", tmp_path / "kernel.npy", "--out", tmp_path / "out"))
    assert "sum to 0" in line


def test_the_input_is_never_overwritten(photo, tmp_path):
    before = photo.read_bytes()
    line = refused(run("restore", photo, "-s", "0.1", "--out", tmp_path, "--force"))
    assert "lies in the folder for the results" in line
    assert photo.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-p", "sr", "--factor", "100000"), "asks for more than 64,000,000 pixels"),
        (("-p", "inpaint", "-o", 'mask={"a": 1}'), "the mask must be an array of numbers"),
        (("-p", "inpaint", "-o", "mask=[[1, 2], [3]]"), "the mask must be an array of numbers"),
        (("-p", "sr", "-o", "factor=Infinity", "--simulate"), "the factor must be a whole number"),
        (("-p", "sr", "-o", "factor=1e400", "--simulate"), "the factor must be a whole number"),
    ],
)
def test_options_that_make_no_sense(arguments, message, photo, tmp_path):
    assert message in refused(run("restore", photo, "-s", "0.1", *arguments, "--out", tmp_path / "out"))


def test_a_mask_of_another_size(photo, tmp_path):
    Image.new("L", (20, 11), 255).save(tmp_path / "mask.png")
    line = refused(run("restore", photo, "--mask", tmp_path / "mask.png", "--out", tmp_path / "out"))
    assert "mask has shape (1, 11, 20)" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [(png(30_000, 30_000, 8, 2, b""), "64,000,000 pixels"), (png(64, 64, 8, 2, b"few"), "cannot be read as an image")],
)
def test_bad_files(content, message, tmp_path):
    (tmp_path / "bad.png").write_bytes(content)
    assert message in refused(run("restore", tmp_path / "bad.png", "--out", tmp_path / "out"))
