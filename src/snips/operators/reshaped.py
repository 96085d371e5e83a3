"""The same operator with its measurement in another shape."""

from __future__ import annotations

import math

from torch import Tensor

from snips.operators.base import LinearOperator


class Reshaped(LinearOperator):
    """y in another shape with as many entries, in the same row-major order."""

    def __init__(self, operator: LinearOperator, measurement_shape: tuple[int, ...]) -> None:
        super().__init__(operator.image_shape, measurement_shape)
        if math.prod(measurement_shape) != math.prod(operator.measurement_shape):
            raise ValueError(f"a measurement {operator.measurement_shape} cannot be reshaped to {measurement_shape}")
        self.operator, self.how = operator, operator.how
        if operator.recorded is not None:
            self.recorded = operator.recorded.reshape(measurement_shape)
        self.register_exact("singular_values", operator.exact_singular_values)

    def forward(self, x: Tensor) -> Tensor:
        return self.operator(x).reshape(len(x), *self.measurement_shape)

    def Vt(self, x: Tensor) -> Tensor:
        return self.operator.Vt(x)

    def V(self, x_bar: Tensor) -> Tensor:
        return self.operator.V(x_bar)

    def Ut(self, y: Tensor) -> Tensor:
        return self.operator.Ut(y.reshape(len(y), *self.operator.measurement_shape))

    def U(self, y_bar: Tensor) -> Tensor:
        return self.operator.U(y_bar).reshape(len(y_bar), *self.measurement_shape)
