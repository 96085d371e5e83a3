"""Which measurements are pictures."""

from __future__ import annotations

from snips.operators.base import LinearOperator
from snips.operators.subsampled import FourierSampling


def is_picture(operator: LinearOperator) -> bool:
    """Whether a measurement can be looked at: grey or coloured pixels, not frequencies."""
    shape = operator.measurement_shape
    return len(shape) == 3 and shape[0] in (1, 3) and not isinstance(operator, FourierSampling)
