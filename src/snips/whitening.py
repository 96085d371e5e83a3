"""Noise of different levels: divided out of y and H, so that one level is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem, check_tensor
from snips.operators.base import LinearOperator
from snips.operators.combine import scale_rows, stack


def whiten(
    operator: LinearOperator, y: Tensor, sigma: Tensor, truth: Tensor | None = None, **options: Any
) -> InverseProblem:
    """The problem y = H x + z with z_i ~ N(0, sigma_i^2) as one with sigma_0 = 1: y / sigma = (H / sigma) x + noise.

    Args:
        operator, y, truth: as in InverseProblem.
        sigma: the known noise level of each measurement; positive, (*measurement_shape) or what broadcasts to it.
        options: of `as_operator`, for where the SVD of H / sigma must be computed; `.operator.how` says whether. With
            other levels it is another one, so it is kept on disk only with cache=True.
    """
    check_tensor("y", y, operator.measurement_shape)
    weights = 1 / _checked_levels(sigma, operator.measurement_shape)
    return InverseProblem(scale_rows(operator, weights, **options), y * weights.to(y), 1.0, truth)


def stack_measurements(
    parts: Sequence[tuple[LinearOperator, Tensor, float]], truth: Tensor | None = None, **options: Any
) -> InverseProblem:
    """Several measurements (operator, y, sigma) of the same images as one problem with sigma_0 = 1."""
    options = {"cache": False, **options}  # as in `whiten`
    if not parts:
        raise ValueError("there are no measurements to stack")
    for operator, y, _ in parts:
        check_tensor("y", y, operator.measurement_shape)
    levels = [_checked_levels(torch.as_tensor(sigma), operator.measurement_shape) for operator, _, sigma in parts]
    scaled = [scale_rows(part[0], 1 / level, **options) for part, level in zip(parts, levels, strict=True)]
    flat = [(part[1] / level.to(part[1])).flatten(1) for part, level in zip(parts, levels, strict=True)]
    return InverseProblem(stack(*scaled, **options), torch.cat(flat, 1), 1.0, truth)


def _checked_levels(sigma: Tensor, shape: tuple[int, ...]) -> Tensor:
    levels = torch.as_tensor(sigma).to(torch.float64).cpu()
    if not (torch.isfinite(levels).all() and (levels > 0).all()):
        raise ValueError("noise levels must be positive and finite: a measurement without noise cannot be weighed")
    try:
        return levels.expand(shape)
    except RuntimeError:
        raise ValueError(f"noise levels of shape {tuple(levels.shape)} do not fit measurements {shape}") from None
