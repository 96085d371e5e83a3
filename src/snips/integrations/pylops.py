"""pylops: linear operators that SciPy knows how to use."""

from __future__ import annotations

import math
from typing import Any

from snips.integrations.matrices import check_real, precision_of, product_map
from snips.operators.linear_map import LinearMap


def is_pylops(obj: Any) -> bool:
    """Asked without importing pylops, which costs a second."""
    return any(base.__module__.partition(".")[0] == "pylops" for base in type(obj).__mro__)


def pylops_map(obj: Any, image_shape: tuple[int, int, int]) -> LinearMap:
    """A pylops operator whose model is the image in row-major order; y keeps its shape `dimsd` where there is one."""
    check_real(obj, "the pylops operator")
    measured = tuple(int(n) for n in getattr(obj, "dimsd", ()) or ())
    measured = measured if math.prod(measured) == obj.shape[0] else (obj.shape[0],)
    return product_map(obj.matmat, obj.rmatmat, obj.shape, precision_of(obj.dtype), measured)
