"""What can be computed with products alone: solutions of linear systems, largest singular values and ratios."""

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


def largest_ratio(top: Apply, bottom: Apply, nearly_inverse: Apply, start: Tensor, steps: int) -> float:
    """The largest u^T top(u) / u^T bottom(u), both symmetric; a lower bound that comes close from below.

    Each step takes the best combination of u, its preconditioned gradient and the last move (LOBPCG, Knyazev 2001).
    """
    u, move, ratio = (start, top(start), bottom(start)), None, 0.0
    for _ in range(steps):
        gradient = nearly_inverse(u[1] - ratio * u[2])
        basis = [u, (gradient, top(gradient), bottom(gradient)), *([] if move is None else [move])]
        ratio, weights = _best_combination(basis)
        move = _combined(weights[1:], basis[1:])
        u = _combined(weights, basis)
    return ratio


Imaged = tuple[Tensor, Tensor, Tensor]  # u, top(u), bottom(u)


def _best_combination(basis: list[Imaged]) -> tuple[float, list[float]]:
    """The largest ratio in the span of some vectors, and their weights in the vector that has it."""
    size = [float((u * below).sum().clamp(min=torch.finfo(u.dtype).tiny)) ** -0.5 for u, _, below in basis]
    products = [[(a[0] * b[i]).sum() * m * n for b, n in zip(basis, size, strict=True)]
                for a, m in zip(basis, size, strict=True) for i in (1, 2)]  # fmt: skip
    above, below = (torch.tensor(products[i::2], dtype=torch.float64) for i in (0, 1))
    values, vectors = torch.linalg.eigh((below + below.T) / 2)
    kept = values > 1e-5 * values[-1]  # vectors that are nearly dependent add nothing but rounding
    white = vectors[:, kept] / values[kept].sqrt()
    ratios, turned = torch.linalg.eigh(white.T @ ((above + above.T) / 2) @ white)
    weights = (white @ turned[:, -1]).tolist()
    return float(ratios[-1]), [w * n for w, n in zip(weights, size, strict=True)]


def _combined(weights: list[float], basis: list[Imaged]) -> Imaged:
    u, above, below = (sum(w * vector[i] for w, vector in zip(weights, basis, strict=True)) for i in (0, 1, 2))
    return u, above, below  # pyright: ignore[reportReturnType]
