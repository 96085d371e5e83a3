"""Operators that share the singular vectors of another one."""

from __future__ import annotations

from torch import Tensor

from snips.operators.base import LinearOperator


class SameBasis(LinearOperator):
    """Another operator's U and V; a subclass registers the singular values, and writes `forward` and what differs."""

    def __init__(self, operator: LinearOperator, measurement_shape: tuple[int, ...]) -> None:
        super().__init__(operator.image_shape, measurement_shape)
        self.operator, self.how = operator, operator.how
        if measurement_shape == operator.measurement_shape:  # a picture shows the same part of the image
            self.surroundings = operator.surroundings

    def Vt(self, x: Tensor) -> Tensor:
        return self.operator.Vt(x)

    def V(self, x_bar: Tensor) -> Tensor:
        return self.operator.V(x_bar)

    def Ut(self, y: Tensor) -> Tensor:
        return self.operator.Ut(y)

    def U(self, y_bar: Tensor) -> Tensor:
        return self.operator.U(y_bar)
