"""What can be computed with products alone: solutions of linear systems and the largest singular value."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Apply = Callable[[Tensor], Tensor]


def conjugate_gradients(apply: Apply, b: Tensor, steps: int, tolerance: float = 0.0) -> Tensor:
    """An approximate solution of apply(x) = b, apply symmetric and positive, for each row of b (B, ...) on its own.

    Stops after `steps`, or when every row's residual is below tolerance times its b.
    """

    def dot(u: Tensor, v: Tensor) -> Tensor:
        return (u * v).flatten(1).sum(1).clamp(min=torch.finfo(b.dtype).tiny).reshape(-1, *[1] * (b.ndim - 1))

    x, residual, direction = torch.zeros_like(b), b, b
    energy = enough = dot(residual, residual)
    enough = tolerance**2 * enough
    for _ in range(steps):
        if (energy < enough).all():
            break
        image = apply(direction)
        step = energy / dot(direction, image)
        x, residual = x + step * direction, residual - step * image
        previous, energy = energy, dot(residual, residual)
        direction = residual + energy / previous * direction
    return x


def largest_singular_value(forward: Apply, adjoint: Apply, start: Tensor, steps: int = 30) -> float:
    """By power iteration from random images `start` (k, ...); a lower bound that comes close from below."""
    x, largest = start, 0.0
    for _ in range(steps):
        norms = x.flatten(1).norm(dim=1).clamp(min=1e-300).reshape(-1, *[1] * (x.ndim - 1))
        y = forward(x / norms)
        largest = float(y.flatten(1).norm(dim=1).max())
        x = adjoint(y)
    return largest
