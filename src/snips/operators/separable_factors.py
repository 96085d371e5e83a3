"""Which operators act on each axis alone, and with which matrices."""

from __future__ import annotations

import torch
from torch import Tensor

from snips.operators.base import LinearOperator
from snips.operators.masked_transform import MaskedTransform
from snips.operators.reshaped import Reshaped
from snips.operators.separable import AXES, Separable
from snips.operators.subsampled import Inpainting

AxisMatrices = tuple[Tensor, Tensor, Tensor]  # A_C, A_H, A_W in float64


def separable_factors(operator: LinearOperator) -> AxisMatrices | None:
    """A_C, A_H and A_W with H = A_C (x) A_H (x) A_W, or None where H mixes the axes."""
    for kind, factors in KINDS.items():
        if isinstance(operator, kind):
            return factors(operator)
    return None


def _of_separable(operator: Separable) -> AxisMatrices:
    sizes = operator.image_shape
    matrices = [operator._exact.get(f"{axis}_A") for axis in AXES]
    eyes = [torch.eye(n, dtype=torch.float64) if a is None else a for a, n in zip(matrices, sizes, strict=True)]
    return eyes[0], eyes[1], eyes[2]


def _of_inpainting(operator: Inpainting) -> AxisMatrices | None:
    """Rows and columns are chosen where the seen pixels are whole rows crossed with whole columns."""
    mask = operator.exact_singular_values.expand(operator.image_shape)
    parts = _outer_parts(mask)
    if parts is None or (operator.spread_shape != (operator.image_shape[0], mask[0].numel())):
        return None
    channel, row, column = (torch.diag(part)[part > 0] for part in parts)
    return channel, row, column


def _of_mask(operator: MaskedTransform) -> AxisMatrices | None:
    parts = _outer_parts(operator._exact["weights"]) if operator.transform == "identity" else None
    return None if parts is None else (torch.diag(parts[0]), torch.diag(parts[1]), torch.diag(parts[2]))


def _outer_parts(weights: Tensor) -> AxisMatrices | None:
    """Three vectors whose outer product the weights (C, H, W) are, or None."""
    if not weights.any():
        return None
    c, h, w = torch.unravel_index(weights.abs().argmax(), weights.shape)
    top = weights[c, h, w]
    channel, row, column = weights[:, h, w] / top, weights[c, :, w] / top, weights[c, h, :]
    product = channel[:, None, None] * row[:, None] * column
    return (channel, row, column) if torch.allclose(product, weights, rtol=1e-12, atol=0) else None


def _of_reshaped(operator: Reshaped) -> AxisMatrices | None:
    return separable_factors(operator.operator)


KINDS = {Separable: _of_separable, Inpainting: _of_inpainting, MaskedTransform: _of_mask, Reshaped: _of_reshaped}
