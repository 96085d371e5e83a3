"""Blur kernels, and the small matrices that apply them along one axis."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from snips.operators.base import numbers_of
from snips.operators.svd_memory import check_svd_memory

TOO_LONG = "crop the image"
WIDEST = 2048  # pixels; a wider blur is surely a mistake
BRIGHTNESS = 0.02  # a change that nobody sees, though eight bits record it


def uniform(width: int = 5) -> Tensor:
    """A box of `width` equal weights."""
    _check_width(width)
    return torch.full((width,), 1 / width, dtype=torch.float64)


def gaussian(std: float = 10.0, width: int = 5) -> Tensor:
    """A Gaussian of standard deviation `std` pixels, cut to `width` weights that sum to 1."""
    if not (std > 0 and math.isfinite(std)):
        raise ValueError(f"the standard deviation of a Gaussian blur must be positive, but is {std}")
    _check_width(width)
    offsets = torch.arange(width, dtype=torch.float64) - (width - 1) / 2
    weights = torch.exp(-0.5 * (offsets / float(std)) ** 2)  # an int may be too large for torch
    return weights / weights.sum()


def motion(length: float = 9.0, angle: float = 45.0) -> Tensor:
    """A straight camera movement of `length` pixels, `angle` degrees counter-clockwise from the x axis.

    The line is drawn by many points, each shared bilinearly among its four pixels.
    """
    if not (1 <= length <= WIDEST and math.isfinite(angle)):
        raise ValueError(f"a motion blur needs a length from 1 to {WIDEST} and a finite angle, not {length}, {angle}")
    radius = math.ceil((length - 1) / 2)
    size = 2 * radius + 1
    along = torch.linspace(-(length - 1) / 2, (length - 1) / 2, 16 * size + 1, dtype=torch.float64)
    columns = radius + along * math.cos(math.radians(angle))
    rows = radius - along * math.sin(math.radians(angle))
    grid = torch.arange(size, dtype=torch.float64)
    row_weights = (1 - (rows[:, None] - grid).abs()).clamp(min=0)  # (points, size)
    column_weights = (1 - (columns[:, None] - grid).abs()).clamp(min=0)
    kernel = row_weights.T @ column_weights
    return kernel / kernel.sum()


def _check_width(width: int) -> None:
    if not isinstance(width, (int, np.integer)) or not 1 <= width <= WIDEST:
        raise ValueError(f"the width of a blur must be a whole number from 1 to {WIDEST}, but is {width}")


def checked_kernel(kernel: Tensor, ndim: int) -> Tensor:
    """The kernel in float64, or a clear error."""
    kernel = numbers_of(kernel, "the kernel")
    if kernel.is_complex():
        raise ValueError("the kernel has complex weights: give real ones")
    kernel = kernel.to(torch.float64)
    if kernel.ndim != ndim or kernel.numel() == 0:
        raise ValueError(f"expected a {ndim}-D kernel, got one of shape {tuple(kernel.shape)}")
    if not torch.isfinite(kernel).all():
        raise ValueError("the kernel has entries that are not finite: remove NaN and Inf")
    if not kernel.any():
        raise ValueError("the kernel is zero everywhere: nothing would be measured")
    return kernel


def keeps_brightness(kernel: Tensor) -> bool:
    """Whether each kernel, along the last axes, sums to 1: weights are often given with two digits."""
    sums = kernel.double().sum((-2, -1) if kernel.ndim > 1 else -1)
    return bool(((sums - 1).abs() < BRIGHTNESS).all())


def surroundings(rows: int, columns: int) -> tuple[int, int, int, int]:
    """Pixels of the image left, right, above and below the part of a convolution that needs nothing from outside."""
    return columns - 1 - columns // 2, columns // 2, rows - 1 - rows // 2, rows // 2


def check_inside(length: int, size: int) -> None:
    if length > size:
        raise ValueError(
            f"a kernel of {length} pixels does not fit into {size}: take a larger image, or a smaller blur"
        )


def convolution_matrix(kernel: Tensor, size: int, border: str = "zero") -> Tensor:
    """The (size, size) matrix of y_i = sum_j kernel_j x_(i - j + len // 2), zero outside the image.

    With border="open" only the rows that need nothing from outside: (size - len + 1, size).
    """
    kernel = checked_kernel(kernel, ndim=1)
    check_svd_memory(size, size, f"the SVD of a blur along {size} pixels", TOO_LONG)
    matrix = torch.zeros(size, size, dtype=torch.float64)
    for j, weight in enumerate(kernel.tolist()):
        offset = j - len(kernel) // 2  # y_i takes x_(i - offset)
        if abs(offset) < size:
            matrix.diagonal(-offset).fill_(weight)
    if border == "zero":
        return matrix
    check_inside(len(kernel), size)
    before, after, _, _ = surroundings(1, len(kernel))
    return matrix[before : size - after]


def resize_matrix(factor: int, size: int, method: str = "block") -> Tensor:
    """The (size / factor, size) matrix that makes an axis smaller.

    "block" averages blocks of `factor` pixels; "bilinear" and "bicubic" are anti-aliased, as in PIL and PyTorch.
    """
    if method not in ("block", "bilinear", "bicubic"):
        raise ValueError(f"unknown method {method!r}: choose 'block', 'bilinear' or 'bicubic'")
    if not isinstance(factor, (int, float, np.number)) or not 1 <= factor < math.inf or int(factor) != factor:
        raise ValueError(f"the factor must be a whole number of at least 1, but is {factor}")
    factor = int(factor)
    if size % factor:
        nearest = max(size // factor, 1) * factor
        raise ValueError(f"a size of {size} does not divide by the factor {factor}: crop to {nearest}")
    check_svd_memory(size // factor, size, f"the SVD of what makes {size} pixels smaller", TOO_LONG)
    pixels = torch.eye(size, dtype=torch.float64)
    if method == "block":
        return pixels.reshape(size // factor, factor, size).mean(1)
    images = pixels[:, None, None, :]  # image i is 1 at pixel i
    smaller = F.interpolate(images, size=(1, size // factor), mode=method, align_corners=False, antialias=True)
    return smaller[:, 0, 0, :].T.contiguous()
