"""pylops: linear operators that SciPy knows how to use."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from snips.integrations.matrices import check_real, precision_of, product_map
from snips.operators.linear_map import LinearMap


def is_pylops(obj: Any) -> bool:
    """Asked without importing pylops, which costs a second."""
    return any(base.__module__.partition(".")[0] == "pylops" for base in type(obj).__mro__)


def pylops_map(obj: Any, image_shape: tuple[int, int, int]) -> LinearMap:
    """A pylops operator whose model is the image in row-major order; y keeps its shape `dimsd` where there is one."""
    check_real(obj, "the pylops operator")
    _check_axes(tuple(getattr(obj, "dims", ()) or ()), image_shape)
    measured = tuple(int(n) for n in getattr(obj, "dimsd", ()) or ())
    measured = measured if math.prod(measured) == obj.shape[0] else (obj.shape[0],)
    found = product_map(obj.matmat, obj.rmatmat, obj.shape, precision_of(obj.dtype), measured)
    return replace(found, measured_channels=0) if len(measured) == 2 else found


def _check_axes(dims: tuple[int, ...], image_shape: tuple[int, int, int]) -> None:
    """Axes in another order have the same number of pixels, and would give wrong pictures without a word."""
    wanted = (image_shape, image_shape[1:])
    if len(dims) > 1 and _long_axes(dims) not in map(_long_axes, wanted):
        raise ValueError(
            f"the pylops operator takes arrays of {dims}, but the image is {image_shape}, channels first: give it "
            f"dims={image_shape}, or dims={image_shape[1:]} for each channel alone"
        )


def _long_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(n) for n in shape if n != 1)
