"""Measurements that are no pictures, handed over as plain numbers: sums, projections, frequencies of one's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from command_line import refused, restored, run
from snips import Restoration, as_operator, make_operator, restore

QUICK = {"samples": 1, "nfe": 8}
IMAGE = (1, 8, 8)


@pytest.fixture
def sums():
    """A matrix whose measurements lie far outside [0, 1], and one of them."""
    matrix = 100 * np.random.default_rng(0).standard_normal((24, 64))
    return matrix, matrix @ np.linspace(0, 1, 64)


@pytest.fixture
def kspace():
    """A mask and the complex frequencies that it lets through, as NumPy picks them."""
    mask = np.zeros((8, 8), bool)
    mask[:, [0, 1, 2, 7]] = True
    image = np.random.default_rng(1).random((8, 8))
    return mask, np.fft.fft2(image, norm="ortho")[mask], image


@pytest.mark.parametrize("shape", [(24,), (1, 24)])
@pytest.mark.parametrize("dtype", ["<f8", ">f8"])
def test_an_array_with_its_operator_is_the_measurement(sums, shape, dtype):
    """With or without a batch, in whatever byte order, and in its own scale: 0 is no black and 1 no white here."""
    matrix, y = sums
    result = restore(
        y.reshape(shape).astype(dtype), "gaussian", operator=as_operator(matrix, IMAGE), sigma_0=1.0, **QUICK
    )
    torch.testing.assert_close(result.problem.y, torch.from_numpy(y)[None])


def test_an_array_of_another_length_is_refused(sums):
    matrix, y = sums
    with pytest.raises(ValueError, match="--range|is not a measurement of Dense: that has the shape"):
        restore(y[1:], "gaussian", operator=as_operator(matrix, IMAGE), sigma_0=1.0)


def test_complex_frequencies_become_real_and_imaginary_parts(kspace):
    mask, frequencies, image = kspace
    operator = make_operator("mri", IMAGE, mask=torch.from_numpy(mask))
    y = restore(frequencies, "gaussian", operator=operator, sigma_0=0.01, **QUICK).problem.y
    torch.testing.assert_close(y, operator.double()(torch.from_numpy(image)[None, None]))


def test_integers_are_left_to_photos():
    """Two channels of bytes are no picture that people look at, but still 0 to 255."""
    values = torch.full((2, 8, 8), 255, dtype=torch.uint8)
    result = restore(values, "gaussian", operator=make_operator("denoise", (2, 8, 8)), sigma_0=0.1, **QUICK)
    assert result.problem.y.unique().tolist() == [1]


def test_the_noise_of_numbers_is_estimated(kspace):
    mask, frequencies, _ = kspace
    operator = make_operator("mri", IMAGE, mask=torch.from_numpy(mask))
    with pytest.warns(UserWarning, match="a guess"):
        assert restore(frequencies, "gaussian", operator=operator, **QUICK).settings["noise"]


@pytest.mark.parametrize("form", ["complex", "parts", "npz"])
def test_frequencies_of_a_file(kspace, form, tmp_path):
    mask, frequencies, image = kspace
    np.save(tmp_path / "mask.npy", mask)
    file = tmp_path / ("y.npz" if form == "npz" else "y.npy")
    if form == "npz":
        np.savez(file, frequencies)
    else:
        np.save(file, frequencies if form == "complex" else np.stack([frequencies.real, frequencies.imag], -1)[None])
    options = ("-p", "mri", "--mask", tmp_path / "mask.npy", "--shape", "1,8,8", "-s", "0.01", "--prior", "gaussian")
    restored(tmp_path, file, *options)
    result = Restoration.load(tmp_path / "out")
    torch.testing.assert_close(result.problem.y, result.problem.operator.double()(torch.from_numpy(image)[None, None]))


def test_a_matrix_and_its_numbers_are_not_told_about_black_and_white(sums, tmp_path):
    matrix, y = sums
    np.save(tmp_path / "H.npy", matrix)
    np.save(tmp_path / "y.npy", y)
    options = ("--matrix", tmp_path / "H.npy", "--shape", "1,8,8", "-s", "1", "--prior", "gaussian")
    assert "black" not in restored(tmp_path, tmp_path / "y.npy", *options).output


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ((), "say with --shape C,H,W of which image; a clean image needs --simulate"),
        (("--shape", "1,8,8"), "float64 and shape (24,) is not a measurement of cs4 of images (1, 8, 8)"),
    ],
)
def test_numbers_that_fit_no_image_are_refused_with_what_to_do(sums, more, line, tmp_path):
    np.save(tmp_path / "y.npy", sums[1])
    assert line in refused(run("restore", tmp_path / "y.npy", "-p", "cs4", *more, "--out", tmp_path / "out"))
