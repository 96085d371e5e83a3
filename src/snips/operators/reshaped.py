"""The same operator with its measurement in another shape."""

from __future__ import annotations

import math

from torch import Tensor

from snips.operators.base import LinearOperator
from snips.operators.same_basis import SameBasis


class Reshaped(SameBasis):
    """y in another shape with as many entries, in the same row-major order."""

    def __init__(self, operator: LinearOperator, measurement_shape: tuple[int, ...]) -> None:
        super().__init__(operator, measurement_shape)
        if math.prod(measurement_shape) != math.prod(operator.measurement_shape):
            raise ValueError(f"a measurement {operator.measurement_shape} cannot be reshaped to {measurement_shape}")
        if measurement_shape == operator.measurement_shape:
            self.measured_channels, self.pixel_values = operator.measured_channels, operator.pixel_values
        if operator.recorded is not None:
            self.recorded = operator.recorded.reshape(measurement_shape)
        self.register_exact("singular_values", operator.exact_singular_values)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x).reshape(len(x), *self.measurement_shape)

    def Ut(self, y: Tensor) -> Tensor:
        return self.operator.Ut(y.reshape(len(y), *self.operator.measurement_shape))

    def U(self, y_bar: Tensor) -> Tensor:
        return self.operator.U(y_bar).reshape(len(y_bar), *self.measurement_shape)
