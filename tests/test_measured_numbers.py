"""Measurements that are no pictures, handed over as plain numbers: sums, projections, frequencies of one's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from command_line import refused, restored, run
from snips import Restoration, as_operator, make_operator, restore
from snips.operators import CircularBlur, MaskedTransform, Reshaped, Separable

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
        (("--shape", "1,8,8", "--range", "0,9"), "is not a measurement of cs4 of images (1, 8, 8)"),
        (("--shape", "1,8,8"), "float64 and shape (24,) is not a measurement of cs4 of images (1, 8, 8)"),
    ],
)
def test_numbers_that_fit_no_image_are_refused_with_what_to_do(sums, more, line, tmp_path):
    np.save(tmp_path / "y.npy", sums[1])
    assert line in refused(run("restore", tmp_path / "y.npy", "-p", "cs4", *more, "--out", tmp_path / "out"))


def test_numbers_of_a_file_have_no_black_and_white(tmp_path):
    np.save(tmp_path / "y.npy", np.zeros((1, 16)))
    options = ("-p", "cs4", "--shape", "1,8,8", "--range", "0,255", "--out", tmp_path / "out")
    assert "what cs4 measures has units of its own" in refused(run("restore", tmp_path / "y.npy", *options))


def block_sums():
    """2 x 2 pixels are added up, not averaged: y has three axes, as a picture, but runs from 0 to 4."""
    pairs = torch.eye(8, dtype=torch.float64).reshape(4, 2, 8).sum(1)
    return Separable(IMAGE, row=pairs, column=pairs)


LIKE_PICTURES = {
    "hadamard": lambda: MaskedTransform(IMAGE, torch.ones(IMAGE), "hadamard"),
    "sums": block_sums,
    "gain": lambda: CircularBlur(IMAGE, 12 * torch.ones(2, 2)),
    "matrix": lambda: Reshaped(as_operator(9 * np.eye(64), IMAGE), IMAGE),
}


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("name", LIKE_PICTURES)
def test_what_only_looks_like_a_picture_keeps_its_units(name, batch, kind):
    operator = LIKE_PICTURES[name]()
    y = operator(torch.linspace(0, 1, 64).reshape(1, *IMAGE)).to(kind)
    for given in (y, y.numpy()):
        result = restore(given if batch else given[0], "gaussian", operator=operator, sigma_0=1.0, **QUICK)
        assert torch.equal(result.problem.y.double(), y.double())


@pytest.mark.parametrize("name", LIKE_PICTURES)
def test_numbers_have_no_black_and_white(name):
    """y would be divided by the range, but not H: a restoration that is wrong without a word."""
    operator = LIKE_PICTURES[name]()
    y = operator(torch.rand(1, *IMAGE))
    with pytest.raises(ValueError, match="units of its own, no black and white: leave out --range") as caught:
        restore(y, "gaussian", operator=operator, sigma_0=1.0, value_range=(0, 4))
    assert "\n" not in str(caught.value)
    operator.pixel_values = True  # whoever knows better says so
    result = restore(y, "gaussian", operator=operator, sigma_0=1.0, value_range=(0, 4), **QUICK)
    torch.testing.assert_close(result.problem.y, y / 4)


def test_numbers_of_a_wrong_shape_are_not_told_to_have_a_range():
    with pytest.raises(ValueError, match=r"\(1, 3, 4\) is not a measurement of Separable: that has the shape"):
        restore(99 * torch.rand(1, 3, 4), "gaussian", operator=block_sums(), sigma_0=1.0)


@pytest.mark.parametrize("name", ["denoise", "deblur_uniform", "deblur_motion", "sr2", "colorize", "inpaint"])
def test_pixels_still_have_a_range(name):
    operator = make_operator(name, (3, 8, 8))
    picture = 255 * torch.rand(3, 8, 8) if name == "inpaint" else 255 * operator(torch.rand(1, 3, 8, 8))
    with pytest.raises(ValueError, match="say which are black and white"):
        restore(picture, "gaussian", operator=operator, sigma_0=0.1)
    problem = restore(picture, "gaussian", operator=operator, sigma_0=0.1, value_range=(0, 255), **QUICK).problem
    assert problem.y.max() <= 1 + 1e-6


def test_bytes_are_a_picture_also_of_an_operator_that_says_nothing():
    y = torch.full((1, 4, 4), 255, dtype=torch.uint8)
    assert restore(y, "gaussian", operator=block_sums(), sigma_0=0.1, **QUICK).problem.y.unique().tolist() == [1]


def test_an_array_in_the_shape_of_a_measured_picture_has_its_channels_first():
    """As (H, W, C) it would be another picture of the same size."""
    y = np.random.default_rng(0).random((3, 8, 3))
    operator = make_operator("denoise", (3, 8, 3))
    assert torch.equal(restore(y, "gaussian", operator=operator, sigma_0=0.1, **QUICK).problem.y[0], torch.tensor(y))


def test_a_picture_in_numbers_is_refused_where_it_is_masked():
    y = np.ma.array(np.zeros((1, 8, 8)), mask=np.eye(8)[None] > 0)
    with pytest.raises(ValueError, match="a masked array is not read as it is"):
        restore(y, "gaussian", operator=make_operator("denoise", IMAGE), sigma_0=1.0)


def test_hidden_values_are_not_read_as_numbers(sums):
    matrix, y = sums
    with pytest.raises(ValueError, match="a masked array is not read as it is"):
        restore(np.ma.array(y, mask=y > 0), "gaussian", operator=as_operator(matrix, IMAGE), sigma_0=1.0)


def test_a_list_is_an_array(sums):
    matrix, y = sums
    result = restore(y.tolist(), "gaussian", operator=as_operator(matrix, IMAGE), sigma_0=1.0, **QUICK)
    assert result.problem.y.flatten().tolist() == y.tolist()
