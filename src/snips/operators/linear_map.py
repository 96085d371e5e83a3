"""A foreign operator before anything is known of it: two functions, which are tested before they are believed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from snips.memory import check_memory

Apply = Callable[[Tensor], Tensor]
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-8}  # relative, of linearity and of the dot test


@dataclass(frozen=True)
class LinearMap:
    """y = H x for batches, as somebody else computes it.

    Args:
        forward: (B, *image_shape) -> (B, *measurement_shape), in the dtype it is given.
        adjoint: the transpose.
        precision: the dtype in which `forward` really computes; checks allow for its rounding.
        measured_channels: how many leading axes of a measurement are channels, not places.
    """

    image_shape: tuple[int, ...]
    measurement_shape: tuple[int, ...]
    forward: Apply
    adjoint: Apply
    precision: torch.dtype = torch.float64
    measured_channels: int = 1

    @property
    def size(self) -> tuple[int, int]:
        """(M, N): the numbers of measurements and of values in an image."""
        return math.prod(self.measurement_shape), math.prod(self.image_shape)

    def columns(self, x: Tensor) -> Tensor:
        """H x for x (N, k) -> (M, k): the images are columns."""
        return self.forward(x.T.reshape(-1, *self.image_shape)).reshape(x.shape[1], -1).T

    def adjoint_columns(self, y: Tensor) -> Tensor:
        """H^T y for y (M, k) -> (N, k)."""
        return self.adjoint(y.T.reshape(-1, *self.measurement_shape)).reshape(y.shape[1], -1).T

    def matrix(self, block: int = 256, on_block: Callable[[int, int], None] | None = None) -> Tensor:
        """The dense (M, N) matrix in float64, built through the shorter side."""
        m, n = self.size
        check_memory(8 * m * n, f"the dense {m} x {n} matrix")
        short, apply = (n, self.columns) if n <= m else (m, self.adjoint_columns)
        parts = []
        for start in range(0, short, block):
            unit = torch.zeros(short, min(block, short - start), dtype=torch.float64)
            unit[range(start, start + unit.shape[1]), range(unit.shape[1])] = 1
            parts.append(apply(unit))
            if on_block is not None:
                on_block(min(start + block, short), short)
        whole = torch.cat(parts, 1) if parts else torch.zeros(m if n <= m else n, 0, dtype=torch.float64)
        return whole if n <= m else whole.T

    def fingerprint(self) -> str:
        """A hash of what the operator does to fixed random vectors, to the last bit: its content, whatever holds it."""
        random = torch.Generator().manual_seed(20210515)
        m, n = self.size
        x = torch.randn(n, 2, generator=random, dtype=torch.float64)
        y = torch.randn(m, 2, generator=random, dtype=torch.float64)
        digest = hashlib.sha256(repr((self.image_shape, self.measurement_shape, self.precision)).encode())
        for values in (self.columns(x), self.adjoint_columns(y)):
            digest.update(np.ascontiguousarray(values.numpy()).tobytes())
        return digest.hexdigest()


def check_map(H: LinearMap, name: str) -> None:
    """A random probe: shapes, real and finite values, linearity, and the adjoint by the dot test."""
    random = torch.Generator().manual_seed(7)
    x = torch.randn(3, *H.image_shape, generator=random, dtype=torch.float64)
    y = torch.randn(2, *H.measurement_shape, generator=random, dtype=torch.float64)
    x[2] = 2 * x[0] + x[1]
    Hx = _checked(H.forward(x), (3, *H.measurement_shape), f"{name}: H x")
    Hty = _checked(H.adjoint(y), (2, *H.image_shape), f"{name}: H^T y")
    tolerance = TOLERANCE[H.precision]
    _require(_relative(Hx[2] - 2 * Hx[0] - Hx[1], Hx), tolerance, f"{name} is not linear: H(2a + b) = 2 H a + H b")
    dots = (Hx[:2] * y).sum(), (x[:2] * Hty).sum()
    scale = Hx[:2].norm() * y.norm() + x[:2].norm() * Hty.norm()
    error = float((dots[0] - dots[1]).abs() / scale.clamp(min=1e-300))
    _require(error, tolerance, f"the adjoint of {name} is wrong: the dot test <H x, y> = <x, H^T y>")


def _checked(value: Tensor, shape: tuple[int, ...], what: str) -> Tensor:
    if value.is_complex():
        raise ValueError(f"{what} is complex, but real numbers are expected: give real and imaginary parts as channels")
    if tuple(value.shape) != shape:
        raise ValueError(f"{what} has shape {tuple(value.shape)}, but {shape} is expected: check image_shape")
    if not torch.isfinite(value).all():
        raise ValueError(f"{what} has NaN or Inf for a finite argument")
    return value.to(torch.float64)


def _relative(error: Tensor, of: Tensor) -> float:
    return float(error.norm() / of.norm().clamp(min=1e-300))


def _require(error: float, tolerance: float, what: str) -> None:
    if not error <= tolerance:
        raise ValueError(f"{what} fails on random vectors, with a relative error of {error:.1e}")
