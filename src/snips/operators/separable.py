"""H = A_C (x) A_H (x) A_W: one small matrix for each axis, so three small SVDs instead of one of the whole."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from snips.operators import kernels
from snips.operators.base import LinearOperator, checked_image_shape, numerical_rank_cut

AXES = ("channel", "row", "column")
LUMA = (0.299, 0.587, 0.114)  # of R, G, B: the Y of YCbCr (ITU-R BT.601)


class Separable(LinearOperator):
    """y = A_C x along the channels, A_H along the rows, A_W along the columns; None stands for the identity.

    With A = U S V^T for each factor, V^T = V_C^T (x) V_H^T (x) V_W^T and s is the outer product of the factors'.
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        channel: Tensor | None = None,  # (C', C)
        row: Tensor | None = None,  # (H', H)
        column: Tensor | None = None,  # (W', W)
    ) -> None:
        image_shape = checked_image_shape(image_shape)
        factors = [channel, row, column]
        sizes = [n if a is None else len(a) for n, a in zip(image_shape, factors, strict=True)]
        super().__init__(image_shape, tuple(sizes))
        spectrum = torch.ones(1, 1, 1, dtype=torch.float64)
        for axis, (name, factor) in enumerate(zip(AXES, factors, strict=True)):
            if factor is not None:
                s = self._register_factor(name, factor, image_shape[axis])
                spectrum = spectrum * s.reshape([-1 if axis == i else 1 for i in range(3)])
        entries = math.prod(self.measurement_shape), math.prod(image_shape)
        self.register_exact("singular_values", numerical_rank_cut(spectrum, entries))

    def _register_factor(self, name: str, factor: Tensor, size: int) -> Tensor:
        if factor.ndim != 2 or factor.shape[1] != size:
            raise ValueError(f"the {name} factor has shape {tuple(factor.shape)}, but the image has {size} {name}s")
        U, s, V = aligned_svd(factor)
        for key, value in (("A", factor), ("U", U), ("V", V)):
            self.register_exact(f"{name}_{key}", value)
        return s

    def forward(self, x: Tensor) -> Tensor:
        return self._multiply("A", x)

    def Vt(self, x: Tensor) -> Tensor:
        return self._multiply("V", x, transpose=True)

    def V(self, x_bar: Tensor) -> Tensor:
        return self._multiply("V", x_bar)

    def Ut(self, y: Tensor) -> Tensor:
        return self._multiply("U", y, transpose=True) * (self.singular_values > 0)

    def U(self, y_bar: Tensor) -> Tensor:
        return self._multiply("U", y_bar)

    def _multiply(self, key: str, x: Tensor, transpose: bool = False) -> Tensor:
        """Multiply each axis of x (B, C, H, W) by its factor's matrix `key`, or by the transpose."""
        channel, row, column = (self._factor(name, key, transpose) for name in AXES)
        if column is not None:
            x = torch.nn.functional.linear(x, column)
        if row is not None:
            x = row @ x
        if channel is not None:
            x = torch.einsum("dc,bchw->bdhw", channel, x)
        return x

    def _factor(self, name: str, key: str, transpose: bool) -> Tensor | None:
        matrix = getattr(self, f"{name}_{key}", None)
        return matrix.T if transpose and matrix is not None else matrix


def aligned_svd(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A = U diag(s) V^T with U (m, n), s (n,), V (n, n); columns of U are 0 where s = 0. In float64."""
    matrix = matrix.to(torch.float64)
    m, n = matrix.shape
    if not torch.isfinite(matrix).all():
        raise ValueError("the matrix has entries that are not finite: remove NaN and Inf")
    U, s, Vh = torch.linalg.svd(matrix, full_matrices=m < n)  # V must be complete, U only thin
    s = numerical_rank_cut(s, (m, n))
    s = torch.cat([s, s.new_zeros(n - len(s))])
    U = torch.cat([U, U.new_zeros(m, max(0, n - U.shape[1]))], 1)
    return U * (s > 0), s, Vh.mT.contiguous()


class Denoising(Separable):
    """H = I: the image itself is seen, with noise. Measurement (C, H, W)."""

    pixel_values = True

    def __init__(self, image_shape: tuple[int, ...]) -> None:
        super().__init__(image_shape)


class Deblurring(Separable):
    """A separable blur, zero outside the image. Measurement (C, H, W).

        y_ij = sum_kl rows_k columns_l x_(i - k + K // 2, j - l + L // 2)

    Args:
        rows, columns: the 1-D kernels along the height and along the width; `columns` is `rows` where not given.
        border: "open" measures only what needs nothing from outside, (C, H - K + 1, W - L + 1).
    """

    def __init__(
        self, image_shape: tuple[int, ...], rows: Tensor, columns: Tensor | None = None, border: str = "zero"
    ) -> None:
        _, height, width = checked_image_shape(image_shape)
        columns = rows if columns is None else columns
        super().__init__(
            image_shape,
            row=kernels.convolution_matrix(rows, height, border),
            column=kernels.convolution_matrix(columns, width, border),
        )
        column, row = (kernels.checked_kernel(kernel, ndim=1) for kernel in (rows, columns))
        self.pixel_values = kernels.keeps_brightness(column[:, None] * row)  # of each alone only the product is known
        if border == "open":
            self.surroundings = kernels.surroundings(len(rows), len(columns))


class SuperResolution(Separable):
    """An image made smaller by a whole factor. Measurement (C, H / factor, W / factor).

    Args:
        method: "block" averages blocks of pixels (the paper's), "bilinear" and "bicubic" are anti-aliased.
    """

    pixel_values = True

    def __init__(self, image_shape: tuple[int, ...], factor: int, method: str = "block") -> None:
        _, height, width = checked_image_shape(image_shape)
        super().__init__(
            image_shape,
            row=kernels.resize_matrix(factor, height, method),
            column=kernels.resize_matrix(factor, width, method),
        )


class Colorization(Separable):
    """Only a weighted sum of the channels is seen. Measurement (1, H, W).

    Args:
        weights: one for each channel; ITU-R BT.601 luma for three channels, their mean otherwise.
    """

    def __init__(self, image_shape: tuple[int, ...], weights: tuple[float, ...] | None = None) -> None:
        channels = checked_image_shape(image_shape)[0]
        if weights is None:
            weights = LUMA if channels == 3 else (1 / channels,) * channels
        row = kernels.checked_kernel(torch.as_tensor(weights, dtype=torch.float64), ndim=1)
        super().__init__(image_shape, channel=row[None])
        self.pixel_values = kernels.keeps_brightness(row)
