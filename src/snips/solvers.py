"""Linear systems that are known by their action alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def conjugate_gradients(
    apply: Callable[[Tensor], Tensor], b: Tensor, *, steps: int = 10_000, tolerance: float | None = None
) -> Tensor:
    """Solve apply(x) = b for a positive definite `apply`, each row of b (B, ...) on its own.

    Without a tolerance all `steps` are made and the solution is as good as they get it; with one, the residual must
    come down to that part of b.
    """

    def dot(u: Tensor, v: Tensor) -> Tensor:
        return (u * v).flatten(1).sum(1).reshape(-1, *[1] * (b.ndim - 1))

    tiny = torch.finfo(b.dtype).tiny
    x, residual, direction = torch.zeros_like(b), b, b
    energy = dot(b, b)
    goal = None if tolerance is None else tolerance**2 * energy
    for _ in range(steps):
        if goal is not None and (energy <= goal).all():
            return x
        image = apply(direction)
        step = energy / dot(direction, image).clamp(min=tiny)
        x, residual = x + step * direction, residual - step * image
        previous, energy = energy, dot(residual, residual)
        direction = residual + energy / previous.clamp(min=tiny) * direction
    if goal is not None and (energy > goal).any():
        raise ValueError(f"the linear solve did not converge in {steps} steps: is sigma_0 very small?")
    return x
