"""What can be computed with products alone: solutions of linear systems and the largest singular value."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Apply = Callable[[Tensor], Tensor]


def conjugate_gradients(apply: Apply, b: Tensor, *, steps: int, tolerance: float = 0.0, strict: bool = False) -> Tensor:
    """Solve apply(x) = b for a symmetric positive `apply`, each row of b (B, ...) on its own.

    A row rests once its residual is at most `tolerance` times its b, so that it never depends on its neighbours. After
    `steps` the rows are what they reached; with strict=True that is an error.
    """

    def dot(u: Tensor, v: Tensor) -> Tensor:
        return (u * v).flatten(1).sum(1).reshape(-1, *[1] * (b.ndim - 1))

    tiny = torch.finfo(b.dtype).tiny
    x, residual, direction = torch.zeros_like(b), b, b
    energy = dot(b, b)
    goal = tolerance**2 * energy
    for _ in range(steps):
        moving = energy > goal
        if not moving.any():
            return x
        image = apply(direction)
        step = torch.where(moving, energy / dot(direction, image).clamp(min=tiny), 0)
        x, residual = x + step * direction, residual - step * image
        previous, energy = energy, dot(residual, residual)
        direction = torch.where(moving, residual + energy / previous.clamp(min=tiny) * direction, direction)
    if strict and (energy > goal).any():
        raise ValueError(f"the linear solve did not converge in {steps} steps: is sigma_0 very small?")
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
