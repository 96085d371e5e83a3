"""Any matrix, by one full SVD."""

from __future__ import annotations

import math

from torch import Tensor

from snips.operators.base import LinearOperator, checked_image_shape, numbers_of
from snips.operators.separable import aligned_svd
from snips.operators.svd_memory import check_svd_memory

STRUCTURED = (
    "where H has structure use Deblurring, CircularBlur, SuperResolution, Inpainting, CompressiveSensing or "
    "FourierSampling, which need no dense SVD"
)


class Dense(LinearOperator):
    """y = matrix @ x for an (M, N) matrix of any shape and rank.

    N = C H W mixes everything and measures (M,); N = H W acts on each channel alone and measures (C, M).

    Args:
        svd: what `aligned_svd(matrix)` returns, where it is known already.
    """

    matrix: Tensor  # (M, N)
    left: Tensor  # (M, N): columns of U, 0 where s = 0
    right: Tensor  # (N, N): V

    how = "computed: full SVD"

    def __init__(
        self, matrix: Tensor, image_shape: tuple[int, ...], svd: tuple[Tensor, Tensor, Tensor] | None = None
    ) -> None:
        channels, height, width = image_shape = checked_image_shape(image_shape)
        matrix = numbers_of(matrix, "the matrix")
        if matrix.ndim != 2 or matrix.is_complex():
            raise ValueError(f"expected a real (M, N) matrix, got {matrix.dtype} of shape {tuple(matrix.shape)}")
        m, n = matrix.shape
        if n not in (math.prod(image_shape), height * width):
            raise ValueError(
                f"the matrix has {n} columns, but an image {image_shape} has {math.prod(image_shape)} entries "
                f"({height * width} in each channel)"
            )
        check_svd_memory(m, n, f"the SVD of a dense {m} x {n} matrix", STRUCTURED)
        per_channel = n != math.prod(image_shape)
        super().__init__(image_shape, (channels, m) if per_channel else (m,))
        self.per_channel = per_channel
        left, s, right = aligned_svd(matrix) if svd is None else svd
        self.register_exact("matrix", matrix)
        self.register_exact("left", left)
        self.register_exact("right", right)
        self.register_exact("singular_values", s.reshape(-1, height, width))

    def forward(self, x: Tensor) -> Tensor:
        return self._flat(x) @ self.matrix.T

    def Vt(self, x: Tensor) -> Tensor:
        return (self._flat(x) @ self.right).reshape(-1, *self.image_shape)

    def V(self, x_bar: Tensor) -> Tensor:
        return (self._flat(x_bar) @ self.right.T).reshape(-1, *self.image_shape)

    def Ut(self, y: Tensor) -> Tensor:
        return (y @ self.left).reshape(-1, *self.image_shape)

    def U(self, y_bar: Tensor) -> Tensor:
        return self._flat(y_bar) @ self.left.T

    def _flat(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, H W) for a matrix per channel, (B, C H W) otherwise."""
        return x.flatten(2) if self.per_channel else x.flatten(1)
