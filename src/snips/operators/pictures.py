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
    shape = operator.measurement_shape
    return len(shape) == 3 and shape[0] in (1, 3) and not isinstance(operator, FourierSampling)
