"""How close a picture is to the truth."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

WINDOW, WINDOW_STD = 11, 1.5  # pixels, of the Gaussian window of SSIM
TOO_SMALL = WINDOW // 2  # a side of an image, which is mirrored at its edges by as much
LUMINANCE_FLOOR, CONTRAST_FLOOR = 0.01**2, 0.03**2  # what keeps SSIM's two fractions finite, for values in [0, 1]


def psnr(image: Tensor, truth: Tensor) -> Tensor:
    """Peak signal-to-noise ratio in dB over the last three axes, (..., C, H, W) -> (...); both clamped to [0, 1]."""
    if image.shape[-3:] != truth.shape[-3:] or image.ndim < 3:
        raise ValueError(
            f"PSNR compares images (..., C, H, W) of one size, not {tuple(image.shape)} and {tuple(truth.shape)}"
        )
    error = (image.clamp(0, 1) - truth.clamp(0, 1)).square().mean((-3, -2, -1))
    return -10 * error.log10()


def ssim(a: Tensor, b: Tensor) -> Tensor:
    """Structural similarity (Wang et al. 2004) of (B, C, H, W) in [0, 1] -> (B,); both clamped.

    The mean over channels and all pixels, with a Gaussian window of 11 x 11 and images mirrored at their edges, as
    torchmetrics computes it. (Others leave out the pixels near the edges; on small images their numbers differ.)
    """
    if a.shape != b.shape or a.ndim != 4:
        raise ValueError(f"SSIM compares images (B, C, H, W) of one shape, not {tuple(a.shape)} and {tuple(b.shape)}")
    if min(a.shape[-2:]) <= TOO_SMALL:
        raise ValueError(f"SSIM needs images larger than {TOO_SMALL} x {TOO_SMALL}, not {tuple(a.shape[-2:])}")
    a, b = a.clamp(0, 1), b.clamp(0, 1)
    mean_a, mean_b = _local_mean(a), _local_mean(b)
    variance_a = (_local_mean(a * a) - mean_a**2).clamp(min=0)
    variance_b = (_local_mean(b * b) - mean_b**2).clamp(min=0)
    covariance = _local_mean(a * b) - mean_a * mean_b
    luminance = (2 * mean_a * mean_b + LUMINANCE_FLOOR) / (mean_a**2 + mean_b**2 + LUMINANCE_FLOOR)
    structure = (2 * covariance + CONTRAST_FLOOR) / (variance_a + variance_b + CONTRAST_FLOOR)
    return (luminance * structure).mean((1, 2, 3))


def _local_mean(x: Tensor) -> Tensor:
    """Gaussian means around each pixel of (B, C, H, W)."""
    offsets = torch.arange(WINDOW, dtype=x.dtype, device=x.device) - WINDOW // 2
    weights = torch.exp(-0.5 * (offsets / WINDOW_STD) ** 2)
    weights = weights / weights.sum()
    planes = F.pad(x, [WINDOW // 2] * 4, mode="reflect").flatten(0, 1)[:, None]
    return F.conv2d(F.conv2d(planes, weights[None, None, :, None]), weights[None, None, None, :]).reshape(x.shape)
