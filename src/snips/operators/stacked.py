"""Operators made of others that share one basis V."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from snips.operators.base import LinearOperator, reciprocal
from snips.operators.same_basis import SameBasis


class Stacked(LinearOperator):
    """Several measurements of one image, y = (H_1 x, H_2 x, ...), one after the other in a list of (M_1 + M_2 + ...).

    With one V for all parts H^T H = V (s_1^2 + s_2^2 + ...) V^T, so

        s = sqrt(s_1^2 + s_2^2 + ...)      and      U^T y = (s_1 U_1^T y_1 + s_2 U_2^T y_2 + ...) / s.
    """

    def __init__(self, parts: Sequence[LinearOperator]) -> None:
        sizes = [math.prod(part.measurement_shape) for part in parts]
        super().__init__(parts[0].image_shape, (sum(sizes),))
        self.parts, self.sizes = torch.nn.ModuleList(parts), sizes
        spectra = [part.exact_singular_values for part in parts]
        total = torch.stack([s**2 for s in torch.broadcast_tensors(*spectra)]).sum(0).sqrt()
        self.register_exact("singular_values", total)
        for i, s in enumerate(spectra):
            self.register_exact(f"share_{i}", s * reciprocal(total))
        computed = [part.how for part in parts if not part.how.startswith(LinearOperator.how)]
        self.how = "; ".join([f"{LinearOperator.how}: one basis for all parts", *dict.fromkeys(computed)])
        self.recorded = recorded_of_all(parts)

    def forward(self, x: Tensor) -> Tensor:
        return self.join([part(x) for part in self._parts()])

    def Vt(self, x: Tensor) -> Tensor:
        return self._parts()[0].Vt(x)

    def V(self, x_bar: Tensor) -> Tensor:
        return self._parts()[0].V(x_bar)

    def Ut(self, y: Tensor) -> Tensor:
        pairs = zip(self._parts(), self.split(y), strict=True)
        return sum((self._share(i) * part.Ut(values) for i, (part, values) in enumerate(pairs)), torch.zeros(()).to(y))

    def U(self, y_bar: Tensor) -> Tensor:
        return self.join([part.U(self._share(i) * y_bar) for i, part in enumerate(self._parts())])

    def join(self, measurements: Sequence[Tensor]) -> Tensor:
        """The parts' measurements, each (B, *its measurement_shape), as one list."""
        return torch.cat([y.flatten(1) for y in measurements], 1)

    def split(self, y: Tensor) -> list[Tensor]:
        """The inverse of `join`."""
        pieces = y.split(self.sizes, dim=1)
        return [v.reshape(len(y), *p.measurement_shape) for v, p in zip(pieces, self._parts(), strict=True)]

    def _parts(self) -> list[LinearOperator]:
        return list(self.parts)  # pyright: ignore[reportReturnType]

    def _share(self, i: int) -> Tensor:
        return self.get_buffer(f"share_{i}")


class RowScaled(SameBasis):
    """y = weights * H x: the units of each measurement changed, where the basis of H survives that.

    Args:
        weights: (*measurement_shape), positive.
        gains: what they are for each coordinate of the basis; broadcasts against x_bar.
    """

    weights: Tensor

    def __init__(self, operator: LinearOperator, weights: Tensor, gains: Tensor) -> None:
        super().__init__(operator, operator.measurement_shape)
        self.recorded, self.measured_channels = operator.recorded, operator.measured_channels
        self.register_exact("weights", weights)
        self.register_exact("singular_values", operator.exact_singular_values * gains)

    def forward(self, x: Tensor) -> Tensor:
        return self.weights * self.operator(x)


class InBasisOf(SameBasis):
    """y = factor * x in the basis of another operator: a multiple of the identity has every basis."""

    def __init__(self, other: LinearOperator, factor: float) -> None:
        super().__init__(other, other.image_shape)
        self.factor = factor
        self.register_exact("singular_values", torch.full((1, 1, 1), factor))

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x

    def Ut(self, y: Tensor) -> Tensor:
        return self.operator.Vt(y)

    def U(self, y_bar: Tensor) -> Tensor:
        return self.operator.V(y_bar)


def recorded_of_all(parts: Sequence[LinearOperator]) -> Tensor | None:
    """Which entries of the joined list are measured; None = all."""
    if all(part.recorded is None for part in parts):
        return None
    whole = [torch.ones(p.measurement_shape, dtype=torch.bool) if p.recorded is None else p.recorded for p in parts]
    return torch.cat([marks.flatten() for marks in whole])
