"""Every operator against a small matrix H that is written here by hand, entry by entry, from its definition."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import torch
import torch.nn.functional as F

from snips import operators as ops
from snips.operators import kernels
from snips.problems import make_operator


def matrix_of(operator) -> np.ndarray:
    return operator.double().as_matrix().numpy()


def by_channel(block: np.ndarray, channels: int) -> np.ndarray:
    return np.kron(np.eye(channels), block)


@pytest.mark.parametrize("channels", [1, 3])
def test_denoising(channels):
    np.testing.assert_array_equal(matrix_of(ops.Denoising((channels, 2, 3))), np.eye(6 * channels))


@pytest.mark.parametrize("channels", [1, 3])
def test_inpainting_lists_seen_pixels_row_by_row(channels):
    mask = torch.tensor([[True, False, True], [False, False, True]])
    block = np.zeros((3, 6))
    block[0, 0] = block[1, 2] = block[2, 5] = 1
    np.testing.assert_array_equal(matrix_of(ops.Inpainting((channels, 2, 3), mask)), by_channel(block, channels))


def test_inpainting_with_other_masks_in_other_channels():
    mask = torch.tensor([[[True, False]], [[False, True]]])
    H = ops.Inpainting((2, 1, 2), mask)
    assert H.measurement_shape == (2,)
    np.testing.assert_array_equal(matrix_of(H), [[1, 0, 0, 0], [0, 0, 0, 1]])


def test_default_inpainting_hides_the_lowest_rows():
    H = make_operator("inpaint", (1, 64, 2))
    x = torch.arange(64.0).repeat_interleave(2).reshape(1, 1, 64, 2)
    assert H(x).max() == 43
    assert H.measurement_shape == (1, 88)


@pytest.mark.parametrize("channels", [1, 3])
def test_deblurring_with_asymmetric_kernels(channels):
    rows, columns = [1.0, 2.0, 4.0], [3.0, 5.0, 7.0, 11.0]
    height, width = 3, 5
    block = np.zeros((15, 15))
    for i in range(height):
        for j in range(width):
            for k in range(3):
                for m in range(4):
                    source_row, source_column = i - k + 1, j - m + 2
                    if 0 <= source_row < height and 0 <= source_column < width:
                        block[i * width + j, source_row * width + source_column] += rows[k] * columns[m]
    H = ops.Deblurring((channels, height, width), torch.tensor(rows), torch.tensor(columns))
    np.testing.assert_allclose(matrix_of(H), by_channel(block, channels))


def test_a_point_becomes_the_kernel():
    """A convolution, not a correlation: a single bright pixel shows the kernel as it is."""
    kernel = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    x = torch.zeros(1, 1, 5, 5)
    x[0, 0, 2, 2] = 1
    torch.testing.assert_close(ops.CircularBlur((1, 5, 5), kernel)(x)[0, 0, 1:4, 1:4], kernel)
    rows, columns = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0, 7.0, 11.0])
    torch.testing.assert_close(
        ops.Deblurring((1, 5, 5), rows, columns)(x)[0, 0, 1:4, 1:4], rows[:, None] * columns[None, :]
    )


def test_uniform_blur_is_a_plain_average():
    H = make_operator("deblur_uniform", (1, 7, 7))
    x = torch.rand(1, 1, 7, 7)
    expected = F.conv2d(x, torch.full((1, 1, 5, 5), 1 / 25), padding=2)
    torch.testing.assert_close(H(x), expected)


def test_gaussian_blur_is_the_authors():
    weights = np.exp(-0.5 * (np.arange(-2, 3) / 10) ** 2)
    np.testing.assert_allclose(kernels.gaussian(10, 5).numpy(), weights / weights.sum())


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(3, 3), (2, 4), (5, 3)])
def test_circular_blur(channels, size):
    kernel = np.arange(1.0, 1 + size[0] * size[1]).reshape(size)
    height, width = 4, 5
    block = np.zeros((20, 20))
    for i in range(height):
        for j in range(width):
            for k in range(size[0]):
                for m in range(size[1]):
                    source_row = (i - k + size[0] // 2) % height
                    source_column = (j - m + size[1] // 2) % width
                    block[i * width + j, source_row * width + source_column] += kernel[k, m]
    H = ops.CircularBlur((channels, height, width), torch.tensor(kernel))
    np.testing.assert_allclose(matrix_of(H), by_channel(block, channels), atol=1e-12)


def test_motion_kernel_lies_along_its_angle():
    flat, rising = kernels.motion(5, 0), kernels.motion(5, 45)
    assert flat.sum() == pytest.approx(1)
    assert flat[2].sum() == pytest.approx(1)  # all of it in the middle row
    assert rising[0, -1] > 10 * rising[0, 0]  # counter-clockwise: right goes with up
    assert rising[1, 3] > rising[1, 1]


@pytest.mark.parametrize("channels", [1, 3])
def test_block_averages(channels):
    block = np.zeros((4, 24))
    for i in range(2):
        for j in range(2):
            for k in range(2):
                for m in range(3):
                    block[i * 2 + j, (2 * i + k) * 6 + 3 * j + m] = 1 / 6
    H = ops.Separable((channels, 4, 6), row=kernels.resize_matrix(2, 4), column=kernels.resize_matrix(3, 6))
    np.testing.assert_allclose(matrix_of(H), by_channel(block, channels))
    x = torch.rand(2, channels, 12, 8)
    torch.testing.assert_close(ops.SuperResolution((channels, 12, 8), 4)(x), F.avg_pool2d(x, 4))


def test_bicubic_is_that_of_pillow():
    from PIL import Image

    x = torch.rand(8, 12)
    H = ops.SuperResolution((1, 8, 12), 4, "bicubic")
    expected = np.asarray(Image.fromarray(x.numpy()).resize((3, 2), Image.Resampling.BICUBIC))
    # PyTorch takes a = -0.5 with anti-aliasing, as Pillow does
    np.testing.assert_allclose(H(x[None, None])[0, 0].numpy(), expected, atol=2e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_hadamard_projections(channels):
    H = ops.CompressiveSensing((channels, 4, 4), 5, "hadamard", seed=3)
    transform = scipy.linalg.hadamard(16) / 4
    block = (transform * H.signs.double().numpy())[H.rows.numpy()]
    np.testing.assert_allclose(matrix_of(H), by_channel(block, channels), atol=1e-14)
    np.testing.assert_allclose(block @ block.T, np.eye(5), atol=1e-14)


@pytest.mark.parametrize("channels", [1, 3])
def test_dct_projections(channels):
    H = ops.CompressiveSensing((channels, 3, 5), 4, "dct", seed=3)
    transform = scipy.fft.dct(np.eye(15), norm="ortho", axis=0)
    block = (transform * H.signs.double().numpy())[H.rows.numpy()]
    np.testing.assert_allclose(matrix_of(H), by_channel(block, channels), atol=1e-14)


def test_projections_depend_on_the_seed():
    first, again, other = (make_operator("cs4", (1, 8, 8), seed=seed) for seed in (0, 0, 1))
    x = torch.rand(1, 1, 8, 8)
    torch.testing.assert_close(first(x), again(x), rtol=0, atol=0)
    assert not torch.allclose(first(x), other(x))


def test_colorization():
    H = ops.Colorization((3, 1, 2))
    expected = [[0.299, 0, 0.587, 0, 0.114, 0], [0, 0.299, 0, 0.587, 0, 0.114]]
    np.testing.assert_allclose(matrix_of(H), expected)
    assert ops.Colorization((4, 1, 1))(torch.ones(1, 4, 1, 1)).item() == pytest.approx(1)


def fourier_block(mask: np.ndarray) -> np.ndarray:
    """Rows: real then imaginary part of each measured frequency; columns: real pixels."""
    height, width = mask.shape
    rows = []
    for k in range(height):
        for m in range(width):
            if mask[k, m]:
                waves = [
                    cmath.exp(-2j * math.pi * (k * i / height + m * j / width)) / math.sqrt(height * width)
                    for i in range(height)
                    for j in range(width)
                ]
                rows += [[wave.real for wave in waves], [wave.imag for wave in waves]]
    return np.array(rows)


MASK = np.array([[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 1, 0, 0, 1]], dtype=bool)  # some mirrors seen, some not


@pytest.mark.parametrize("channels", [1, 3])
def test_fourier_sampling_of_real_images(channels):
    H = ops.FourierSampling((channels, 3, 5), torch.from_numpy(MASK))
    np.testing.assert_allclose(matrix_of(H), by_channel(fourier_block(MASK), channels), atol=1e-14)
    values = sorted({round(float(s), 6) for s in H.singular_values.flatten()})
    assert values == [0, pytest.approx(math.sqrt(0.5), abs=1e-6), 1]


def test_fourier_sampling_of_complex_images():
    H = ops.FourierSampling((2, 3, 5), torch.from_numpy(MASK))
    real = fourier_block(MASK)
    turned = np.empty_like(real)  # i times the image: the real part becomes minus the imaginary one
    turned[0::2], turned[1::2] = -real[1::2], real[0::2]
    np.testing.assert_allclose(matrix_of(H), np.hstack([real, turned]), atol=1e-14)


def test_default_mri_mask():
    H = make_operator("mri", (1, 64, 64))
    columns = H(torch.rand(1, 1, 64, 64)).shape[2] // 64
    assert columns == 16  # acceleration 4
    central = list(range(-2, 3))  # 8 % of 64 columns around the zero frequency
    assert (H.singular_values[0, :, central] == 1).all()
    full = make_operator("mri", (1, 8, 8), mask=torch.ones(8, 8))
    assert (full.singular_values == 1).all()


@pytest.mark.parametrize("shape", [(2, 12), (12, 12), (15, 12)])
def test_dense_over_all_channels(shape):
    matrix = torch.randn(*shape, dtype=torch.float64)
    H = ops.Dense(matrix, (3, 2, 2))
    assert H.measurement_shape == (shape[0],)
    np.testing.assert_allclose(matrix_of(H), matrix.numpy())


def test_dense_per_channel():
    matrix = torch.randn(3, 4, dtype=torch.float64)
    H = ops.Dense(matrix, (2, 2, 2))
    assert H.measurement_shape == (2, 3)
    np.testing.assert_allclose(matrix_of(H), by_channel(matrix.numpy(), 2))


def test_zero():
    assert ops.Zero((1, 2, 2))(torch.rand(3, 1, 2, 2)).shape == (3, 0)
    assert ops.Zero((1, 2, 2)).singular_values.max() == 0
