"""Which measurements are pictures, and which part of an image they show."""

from __future__ import annotations

from torch import Tensor

from snips.operators.base import LinearOperator
from snips.operators.subsampled import FourierSampling


def framed(images: Tensor, operator: LinearOperator) -> Tensor:
    """Images (..., H, W) without what lies around the picture that was measured."""
    left, right, above, below = operator.surroundings
    return images[..., above : images.shape[-2] - below, left : images.shape[-1] - right]


def is_picture(operator: LinearOperator) -> bool:
    """Whether a measurement is a picture in grey or colour: the operator says that its numbers are pixels."""
    return operator.pixel_values and in_rows_and_columns(operator)


def in_rows_and_columns(operator: LinearOperator) -> bool:
    """Whether a measurement can be drawn, whatever its numbers mean."""
    return _has_rows_and_columns(operator) and operator.measurement_shape[0] in (1, 3)


def _has_rows_and_columns(operator: LinearOperator) -> bool:
    """Whether a measurement is (channels, rows, columns), of however many channels."""
    return len(operator.measurement_shape) == 3 and not isinstance(operator, FourierSampling)


def surroundings_of_both(outer: LinearOperator, inner: LinearOperator) -> tuple[int, int, int, int]:
    """What lies around the picture that outer(inner(x)) measures, in pixels of x; 0 where y has none."""
    if not (_has_rows_and_columns(inner) and _has_rows_and_columns(outer)):
        return 0, 0, 0, 0
    left, right, above, below = inner.surroundings
    _, height, width = inner.image_shape
    rows = (height - above - below) // inner.measurement_shape[1]  # of x, for each row that the outer one sees
    columns = (width - left - right) // inner.measurement_shape[2]
    further = outer.surroundings
    return (
        left + columns * further[0],
        right + columns * further[1],
        above + rows * further[2],
        below + rows * further[3],
    )
