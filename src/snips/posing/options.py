"""A problem's options as people give them, checked against the image before the operator is built."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from torch import Tensor

from snips.operators.base import numbers_of
from snips.operators.blurs import unseen
from snips.operators.kernels import WIDEST, checked_kernel

Shape = tuple[int, ...]


def checked_options(problem: str, image_shape: Shape, options: dict[str, Any]) -> dict[str, Any]:
    """The options with a kernel of sum 1; a blur that is larger than the image is refused."""
    if problem == "deblur_kernel" and options.get("kernel") is not None:
        options = {**options, "kernel": normalised(options["kernel"], "the kernel")}
    rows, columns = _blurred(problem, options)
    height, width = (side - more for side, more in zip(image_shape[1:], unseen(problem, options), strict=True))
    if rows > height or columns > width:
        raise ValueError(
            f"the kernel has {rows:g} x {columns:g} pixels, more than the image of {height} x {width}: crop the "
            "kernel, or take a smaller blur"
        )
    return options


def normalised(kernel: Any, name: str) -> Tensor:
    """Weights that sum to 1 in each channel, so that the blur keeps the brightness."""
    weights = numbers_of(kernel, "the kernel")
    weights = checked_kernel(weights, ndim=3 if weights.ndim == 3 else 2)
    total = weights.sum((-2, -1), keepdim=True)
    if bool((total <= 1e-6 * weights.abs().sum((-2, -1), keepdim=True)).any()):
        raise ValueError(
            f"the weights of {name} sum to {float(total.min()):.3g}: a blur that keeps brightness needs a positive sum"
        )
    return weights / total


def _blurred(problem: str, options: dict[str, Any]) -> tuple[float, float]:
    """Rows and columns that a blur reaches; numbers that make no sense are left to the operator."""
    if problem == "deblur_kernel" and isinstance(kernel := options.get("kernel"), Tensor):
        return kernel.shape[-2], kernel.shape[-1]
    width, length, angle = (options.get(name) for name in ("width", "length", "angle"))
    if problem in ("deblur_uniform", "deblur_gauss") and _is_size(width):
        return width, width
    if problem == "deblur_motion" and _is_size(length):
        turn = math.radians(angle if isinstance(angle, (int, float)) and math.isfinite(angle) else 45)
        rows, columns = (math.floor(1 + (length - 1) * abs(part)) for part in (math.sin(turn), math.cos(turn)))
        return rows, columns
    return 0, 0


def _is_size(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and 1 <= value <= WIDEST
