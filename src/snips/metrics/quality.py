"""How close a picture is to the truth."""

from __future__ import annotations

from torch import Tensor


def psnr(image: Tensor, truth: Tensor) -> Tensor:
    """Peak signal-to-noise ratio in dB over the last three axes, (..., C, H, W) -> (...); both clamped to [0, 1]."""
    error = (image.clamp(0, 1) - truth.clamp(0, 1)).square().mean((-3, -2, -1))
    return -10 * error.log10()
