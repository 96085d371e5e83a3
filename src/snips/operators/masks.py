"""Masks: which pixels or frequencies are measured."""

from __future__ import annotations

import torch
from torch import Tensor

from snips.operators.base import numbers_of
from snips.streams import checked_seed


def cartesian_mask(height: int, width: int, acceleration: float = 4, centre: float = 0.08, seed: int = 0) -> Tensor:
    """Whole columns of k-space: all in the central part, and random ones up to 1 / acceleration of them.

    (height, width), True = measured, zero frequency at [0, 0].
    """
    if not (acceleration >= 1 and 0 <= centre <= 1):
        raise ValueError(f"need acceleration >= 1 and 0 <= centre <= 1, not {acceleration} and {centre}")
    order = torch.fft.fftfreq(width, dtype=torch.float64).abs().argsort(stable=True)
    central = max(1, round(centre * width))
    wanted = max(central, round(width / acceleration))
    outside = order[central:]
    random = torch.Generator().manual_seed(checked_seed(seed))
    chosen = outside[torch.randperm(len(outside), generator=random)[: wanted - central]]
    columns = torch.zeros(width, dtype=torch.bool)
    columns[order[:central]] = True
    columns[chosen] = True
    return columns.expand(height, width).clone()


def checked_mask(mask: Tensor, image_shape: tuple[int, int, int]) -> Tensor:
    """A boolean mask of shape (1, H, W) or (C, H, W), or a clear error."""
    mask = numbers_of(mask, "the mask")
    mask = mask[None] if mask.ndim == 2 else mask
    allowed = dict.fromkeys(((1, *image_shape[1:]), image_shape))  # the same for grey images
    if tuple(mask.shape) not in allowed:
        raise ValueError(
            f"the mask has shape {tuple(mask.shape)}; an image {image_shape} needs {' or '.join(map(str, allowed))}"
        )
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError("the mask must hold True and False, or 1 and 0 (1 = seen)")
    return mask.to(torch.bool)


def default_inpainting_mask(height: int, width: int) -> Tensor:
    """The lowest 20 of every 64 rows are hidden, as in the authors' code."""
    mask = torch.ones(height, width, dtype=torch.bool)
    mask[height - height * 20 // 64 :] = False
    return mask
