"""deepinv where it is installed; tests that need it skip with a reason elsewhere."""

from __future__ import annotations

import pytest
import torch

from snips.integrations.torchvision import register_torchvision_operators

register_torchvision_operators()
deepinv = pytest.importorskip("deepinv", reason="deepinv is not installed: see docs/bring_your_own.md")
P = deepinv.physics


def _random(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(1))


# name: (physics, image_shape)
STRUCTURED = {
    "denoising": lambda: (P.Denoising(), (3, 8, 8)),
    "inpainting": lambda: (P.Inpainting((3, 8, 8), mask=(_random(1, 8, 8) > 0.5).float()), (3, 8, 8)),
    "inpainting_by_channel": lambda: (P.Inpainting((3, 8, 8), mask=(_random(3, 8, 8) > 0.5).float()), (3, 8, 8)),
    "demosaicing": lambda: (P.Demosaicing((8, 8)), (3, 8, 8)),
    "blur_fft_even": lambda: (P.BlurFFT((3, 8, 10), filter=_random(1, 1, 3, 4)), (3, 8, 10)),
    "blur_fft_odd": lambda: (P.BlurFFT((2, 7, 9), filter=_random(1, 2, 4, 3)), (2, 7, 9)),
    "decolorize": lambda: (P.Decolorize(), (3, 8, 8)),
    "single_pixel_fast": lambda: (P.SinglePixelCamera(m=20, img_size=(3, 8, 16), fast=True), (3, 8, 16)),
    "single_pixel": lambda: (P.SinglePixelCamera(m=20, img_size=(3, 8, 16), fast=False), (3, 8, 16)),
    "mri": lambda: (P.MRI(mask=(_random(8, 9) > 0.5).float()), (2, 8, 9)),
    "mri_parts": lambda: (P.MRI(mask=(_random(2, 8, 9) > 0.5).float()), (2, 8, 9)),
}
COMPUTED = {
    "blur_zero": lambda: (P.Blur(filter=_random(1, 1, 3, 4), padding="constant"), (1, 8, 8)),
    "downsampling": lambda: (P.Downsampling((3, 8, 8), factor=2, filter="gaussian"), (3, 8, 8)),
    "tomography": lambda: (P.Tomography(angles=10, img_width=16, normalize=True), (1, 16, 16)),
}
