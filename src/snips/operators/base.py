"""The contract of a linear operator with an aligned singular value decomposition."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips.buffers import ExactBuffers
from snips.memory import check_memory


@dataclass(frozen=True)
class Recipe:
    """How `make_operator` built an operator: enough to build it again, without a pickle."""

    name: str
    image_shape: tuple[int, int, int]
    options: dict[str, Any] = field(default_factory=dict)


class LinearOperator(ExactBuffers):
    """H with H = U diag(s) V^T, where x_bar = V^T x, y_bar = U^T y and s share one shape.

    Nothing is sorted or flattened: directions that are not measured simply hold singular value 0. U is thin when
    there are more measurements than pixels. A subclass sets the two shapes, registers `singular_values` with
    `register_exact`, and writes five methods; `forward` must not use the SVD, so that one can test the other.
    """

    image_shape: tuple[int, int, int]  # (C, H, W)
    measurement_shape: tuple[int, ...]  # without the batch
    singular_values: Tensor  # real, >= 0, broadcasts against x_bar.shape[1:]
    recipe: Recipe | None = None  # set by make_operator
    how: str = "exact structure"  # where U, s and V come from, for people
    has_svd: bool = True  # False: only `forward` and `adjoint` exist (MatrixFree)
    measured_channels: int = 1  # leading axes of y that are no places, so without neighbours: (C, H, W), (C, M)
    recorded: Tensor | None = None  # (*measurement_shape), bool: entries of y that were measured; None = all
    pixel_values: bool = False  # y has the scale of the image, 0 black and 1 white; else it has units of its own
    surroundings: tuple[int, int, int, int] = (0, 0, 0, 0)  # pixels of the image left, right, above, below a picture y

    def __init__(self, image_shape: tuple[int, ...], measurement_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.image_shape = checked_image_shape(image_shape)
        self.measurement_shape = tuple(int(n) for n in measurement_shape)

    def __init_subclass__(cls, **options: Any) -> None:
        """Every operator takes the precision and the device of what it is given, without loss."""
        super().__init_subclass__(**options)
        for name in ("forward", "Vt", "V", "Ut", "U"):
            if name in cls.__dict__:
                setattr(cls, name, _following(cls.__dict__[name]))

    def forward(self, x: Tensor) -> Tensor:
        """H x: (B, C, H, W) -> (B, *measurement_shape)."""
        raise NotImplementedError

    def Vt(self, x: Tensor) -> Tensor:
        """V^T x: (B, C, H, W) -> x_bar, real, or complex for Fourier bases."""
        raise NotImplementedError

    def V(self, x_bar: Tensor) -> Tensor:
        """The inverse of `Vt`: x_bar -> the real image (B, C, H, W)."""
        raise NotImplementedError

    def Ut(self, y: Tensor) -> Tensor:
        """U^T y: (B, *measurement_shape) -> y_bar in the shape of x_bar, 0 where s = 0."""
        raise NotImplementedError

    def U(self, y_bar: Tensor) -> Tensor:
        """Back from y_bar to (B, *measurement_shape)."""
        raise NotImplementedError

    def adjoint(self, y: Tensor) -> Tensor:
        """H^T y = V (s U^T y)."""
        y_bar = self.Ut(y)  # first: the singular values follow its precision
        return self.V(self.singular_values * y_bar)

    def pinv(self, y: Tensor) -> Tensor:
        """The image of least norm among those that fit y best: V (U^T y / s), 0 where s = 0."""
        return self.V(self.Ut(y) * reciprocal(self.singular_values))

    def as_matrix(self) -> Tensor:
        """H as a dense (M, N) matrix, rows and columns in row-major order of the two shapes."""
        n, m = math.prod(self.image_shape), math.prod(self.measurement_shape)
        like = self.like
        check_memory((n + m) * n * like.element_size(), f"the {m} x {n} matrix of {type(self).__name__}")
        columns = torch.eye(n, dtype=like.dtype, device=like.device).reshape(n, *self.image_shape)
        return self.forward(columns).reshape(n, m).T

    @property
    def exact_singular_values(self) -> Tensor:
        """In float64, on the CPU, without rounding where they were computed so."""
        return self._exact.get("singular_values", self.singular_values.detach().cpu().double())

    @property
    def like(self) -> Tensor:
        """A tensor of the operator's precision and device."""
        return self.singular_values

    def largest(self) -> float:
        """The largest singular value; 0 where nothing is measured."""
        return float(self.singular_values.max()) if self.singular_values.numel() else 0.0

    def extra_repr(self) -> str:
        return f"image_shape={self.image_shape}, measurement_shape={self.measurement_shape}"


def _following(method: Callable[[LinearOperator, Tensor], Tensor]) -> Callable[[LinearOperator, Tensor], Tensor]:
    @wraps(method)
    def follow_then_call(self: LinearOperator, x: Tensor) -> Tensor:
        self.follow(x)
        return method(self, x)

    return follow_then_call


def numbers_of(value: Any, what: str, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor, array or nested list as a tensor, or a clear error."""
    try:
        return torch.as_tensor(value, dtype=dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{what} must be an array of numbers, not {str(value)[:60]!r}") from error


def reciprocal(s: Tensor) -> Tensor:
    """1 / s, and 0 where s = 0."""
    return torch.where(s > 0, 1 / torch.where(s > 0, s, 1), 0)


def numerical_rank_cut(s: Tensor, shape: tuple[int, int]) -> Tensor:
    """Singular values that are rounding errors become exactly 0: s <= eps max(M, N) s_max."""
    largest = s.max() if s.numel() else s.new_zeros(())
    return torch.where(s > torch.finfo(s.dtype).eps * max(shape) * largest, s, 0)


def checked_image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    if len(shape) != 3 or not all(isinstance(n, (int, np.integer)) and n >= 1 for n in shape):
        raise ValueError(f"image_shape must be (channels, height, width), all at least 1, but is {tuple(shape)}")
    return int(shape[0]), int(shape[1]), int(shape[2])
