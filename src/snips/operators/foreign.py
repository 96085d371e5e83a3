"""Operators that are defined by somebody else's functions: with a thin SVD, or with none at all."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from snips.operators.base import LinearOperator, checked_image_shape
from snips.operators.linear_map import LinearMap
from snips.operators.svd import Factors
from snips.solvers import conjugate_gradients, largest_singular_value

NO_SVD = "this operator has no SVD: sample with sampler='matrix_free', or convert it with svd=True"


class Foreign(LinearOperator):
    """y = H x as a LinearMap computes it, for all channels at once or, where it is smaller, for each channel."""

    def __init__(self, H: LinearMap, image_shape: tuple[int, ...]) -> None:
        image_shape = checked_image_shape(image_shape)
        per_channel = acts_per_channel(H, image_shape)
        measured = (image_shape[0], *H.measurement_shape) if per_channel else H.measurement_shape
        super().__init__(image_shape, measured)
        self.H = H

    def forward(self, x: Tensor) -> Tensor:
        return self.H.forward(x.reshape(-1, *self.H.image_shape)).reshape(-1, *self.measurement_shape)

    def adjoint(self, y: Tensor) -> Tensor:
        return self.H.adjoint(y.reshape(-1, *self.H.measurement_shape)).reshape(-1, *self.image_shape)


class ThinSVD(Foreign):
    """H ~ left diag(s) right^T, with V completed by Householder reflections instead of a matrix of N x N entries.

    With all singular values it is exact. With only the largest r, `forward` is still H itself, and U^T H = s V^T holds
    exactly for the kept ones: U^T y is a measurement of x without error, and what lies in the other directions of y is
    not used. The posterior is then the exact one of a measurement that tells less: at most wider, never false.
    """

    left: Tensor  # (M, r)
    reflectors: Tensor  # (N, r): as LAPACK's geqrf leaves them
    tau: Tensor  # (r,)

    def __init__(self, H: LinearMap, factors: Factors, image_shape: tuple[int, ...]) -> None:
        super().__init__(H, image_shape)
        reflectors, tau = torch.geqrf(factors.right)
        signs = reflectors.diagonal().sign()  # the reflections give the columns of `right` up to these
        s = torch.cat([factors.s, factors.s.new_zeros(H.size[1] - len(factors.s))])
        self.register_exact("left", factors.left * signs)
        self.register_exact("reflectors", reflectors)
        self.register_exact("tau", tau)
        self.register_exact("singular_values", s.reshape(-1, *self.image_shape[1:]))
        self.how = describe(factors, min(H.size))

    def Vt(self, x: Tensor) -> Tensor:
        return self._turn(x, transpose=True)

    def V(self, x_bar: Tensor) -> Tensor:
        return self._turn(x_bar, transpose=False)

    def Ut(self, y: Tensor) -> Tensor:
        kept = y.reshape(-1, len(self.left)) @ self.left
        rest = kept.new_zeros(len(kept), self.H.size[1] - kept.shape[1])
        return torch.cat([kept, rest], 1).reshape(-1, *self.image_shape)

    def U(self, y_bar: Tensor) -> Tensor:
        kept = y_bar.reshape(-1, self.H.size[1])[:, : self.left.shape[1]]
        return (kept @ self.left.T).reshape(-1, *self.measurement_shape)

    def _turn(self, x: Tensor, transpose: bool) -> Tensor:
        columns = x.reshape(-1, self.H.size[1]).T.contiguous()
        turned = torch.ormqr(self.reflectors, self.tau, columns, left=True, transpose=transpose)
        return turned.T.reshape(-1, *self.image_shape)


class MatrixFree(Foreign):
    """Only H x and H^T y: for operators whose SVD is out of reach. `restore` samples them by conjugate gradients."""

    has_svd = False
    how = "matrix-free: no SVD"
    norm: Tensor  # (): the largest singular value, a little rounded up

    def __init__(self, H: LinearMap, image_shape: tuple[int, ...]) -> None:
        super().__init__(H, image_shape)
        start = torch.randn(2, *H.image_shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        self.register_exact("norm", torch.tensor(1.01 * largest_singular_value(H.forward, H.adjoint, start)))

    @property
    def singular_values(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise ValueError(NO_SVD)

    def Vt(self, x: Tensor) -> Tensor:
        raise ValueError(NO_SVD)

    def V(self, x_bar: Tensor) -> Tensor:
        raise ValueError(NO_SVD)

    def Ut(self, y: Tensor) -> Tensor:
        raise ValueError(NO_SVD)

    def U(self, y_bar: Tensor) -> Tensor:
        raise ValueError(NO_SVD)

    def pinv(self, y: Tensor) -> Tensor:
        """An image that fits y well, by 50 steps of conjugate gradients for H^T H x = H^T y."""
        return conjugate_gradients(lambda x: self.adjoint(self.forward(x)), self.adjoint(y), steps=50, tolerance=1e-4)

    @property
    def like(self) -> Tensor:
        return self.norm

    def largest(self) -> float:
        return float(self.norm)


def acts_per_channel(H: LinearMap, image_shape: tuple[int, ...]) -> bool:
    """Whether H takes one channel of the image instead of all of it, or a clear error where it takes neither."""
    whole, channel = math.prod(image_shape), math.prod(image_shape[1:])
    if H.size[1] not in (whole, channel):
        raise ValueError(
            f"the operator takes {H.size[1]} values, but an image {tuple(image_shape)} has {whole} ({channel} in each "
            "channel): check image_shape"
        )
    return H.size[1] != whole


def describe(factors: Factors, possible: int) -> str:
    """One line: how much of H the factors hold."""
    kept = len(factors.s)
    if factors.lost == 0:
        return "computed: full SVD"
    share = factors.lost / float(factors.s.max())
    return (
        f"computed: truncated SVD with {kept} of up to {possible} singular values; "
        f"the largest one left out is about {factors.lost:.2g}, {100 * share:.2g} % of the largest"
    )
