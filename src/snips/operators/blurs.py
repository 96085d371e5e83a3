"""Blurs by name: their kernels, and what lies beyond the border of a picture.

A camera sees beyond its frame. "zero" and "circular" borders are for data that were made with them; with an "open" one
the image is larger than the picture by the kernel, less one row and column, and the picture is the part that was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from snips.names import unknown_name
from snips.operators import kernels
from snips.operators.base import LinearOperator, checked_image_shape, numbers_of
from snips.operators.circular import CircularBlur
from snips.operators.foreign import MatrixFree
from snips.operators.linear_map import LinearMap
from snips.operators.separable import Deblurring

BORDERS = ("zero", "circular", "open")
OPEN = BORDERS[2]


def blur(image_shape: tuple[int, ...], kernel: Tensor, border: str) -> LinearOperator:
    """The simplest operator for a kernel: of one axis (K,) for both, (L, M), or one for each channel (C, L, M)."""
    if border not in BORDERS:
        raise ValueError(unknown_name("border", str(border), list(BORDERS)))
    kernel = numbers_of(kernel, "the kernel")
    if border == "circular":
        return CircularBlur(image_shape, kernel[:, None] * kernel if kernel.ndim == 1 else kernel)
    factors = (kernel, kernel) if kernel.ndim == 1 else _factors(kernel)
    if factors is not None:
        return Deblurring(image_shape, *factors, border=border)
    if border == OPEN:
        return open_blur(image_shape, kernel)
    raise ValueError("a border of zeros needs a kernel that is a column times a row: choose circular or open")


def _factors(kernel: Tensor) -> tuple[Tensor, Tensor] | None:
    """A column and a row whose product the kernel is, up to rounding."""
    if kernel.ndim != 2 or kernel.is_complex():
        return None
    U, s, Vh = torch.linalg.svd(kernels.checked_kernel(kernel, ndim=2), full_matrices=False)
    if len(s) > 1 and s[1] > 1e-12 * s[0]:
        return None
    return U[:, 0] * s[0].sqrt(), Vh[0] * s[0].sqrt()


def open_blur(image_shape: tuple[int, ...], kernel: Tensor) -> LinearOperator:
    """y_ij = sum_kl kernel_kl x_(i + K - 1 - k, j + L - 1 - l): all of the convolution that needs nothing from outside.

    By Fourier transforms of the image's size; it has no SVD.
    """
    channels, height, width = checked_image_shape(image_shape)
    weights = kernels.checked_kernel(kernel, ndim=3 if kernel.ndim == 3 else 2)
    rows, columns = weights.shape[-2:]
    kernels.check_inside(rows, height)
    kernels.check_inside(columns, width)
    if weights.ndim == 3 and len(weights) not in (1, channels):
        raise ValueError(f"there are {len(weights)} kernels for {channels} channels: give one, or one for each")
    spectrum = torch.fft.rfft2(weights, s=(height, width))

    def multiplied(x: Tensor, by: Tensor) -> Tensor:
        return torch.fft.irfft2(torch.fft.rfft2(x) * by.to(x.device, x.dtype.to_complex()), s=(height, width))

    def forward(x: Tensor) -> Tensor:
        return multiplied(x, spectrum)[..., rows - 1 :, columns - 1 :]

    def adjoint(y: Tensor) -> Tensor:
        return multiplied(F.pad(y, (columns - 1, 0, rows - 1, 0)), spectrum.conj())

    seen = (channels, height - rows + 1, width - columns + 1)
    operator = MatrixFree(LinearMap((channels, height, width), seen, forward, adjoint), (channels, height, width))
    operator.pixel_values = kernels.keeps_brightness(weights)
    operator.surroundings = kernels.surroundings(rows, columns)
    return operator


def _own(kernel: Tensor) -> Tensor:
    return numbers_of(kernel, "the kernel")


KERNELS: dict[str, Callable[..., Tensor]] = {
    "deblur_uniform": kernels.uniform,
    "deblur_gauss": kernels.gaussian,
    "deblur_motion": kernels.motion,
    "deblur_kernel": _own,
}


def deblur(name: str, usual_border: str) -> Callable[..., LinearOperator]:
    """The builder of a blur by name."""

    def build(image_shape: tuple[int, ...], *, border: str = usual_border, **options: Any) -> LinearOperator:
        return blur(image_shape, KERNELS[name](**options), border)

    return build


def unseen(problem: str, options: dict[str, Any]) -> tuple[int, int]:
    """How many rows and columns the image of a blur by name has more than its picture."""
    if problem not in KERNELS or options.get("border") != OPEN:
        return 0, 0
    try:
        kernel = KERNELS[problem](**{name: value for name, value in options.items() if name != "border"})
    except (TypeError, OverflowError):  # options that the problem cannot take: make_operator says so
        return 0, 0
    return kernel.shape[0 if kernel.ndim == 1 else -2] - 1, kernel.shape[-1] - 1
