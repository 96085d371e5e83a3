"""Every operator in many shapes: (name, builder) pairs for parametrised tests."""

from __future__ import annotations

import torch

from snips import operators as ops
from snips.operators import kernels
from snips.operators.masks import cartesian_mask

SHAPES = [(1, 7, 9), (3, 8, 8), (2, 6, 4), (4, 5, 5), (1, 1, 6), (3, 16, 8)]


def random(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _mask(*shape: int) -> torch.Tensor:
    return random(*shape, seed=2) > 0


BUILDERS = {
    "denoising": lambda c, h, w: ops.Denoising((c, h, w)),
    "inpainting_shared": lambda c, h, w: ops.Inpainting((c, h, w), _mask(h, w)),
    "inpainting_by_channel": lambda c, h, w: ops.Inpainting((c, h, w), _mask(c, h, w)),
    "inpainting_nothing_seen": lambda c, h, w: ops.Inpainting((c, h, w), torch.zeros(h, w, dtype=torch.bool)),
    "zero": lambda c, h, w: ops.Zero((c, h, w)),
    "deblurring_uniform": lambda c, h, w: ops.Deblurring((c, h, w), kernels.uniform(5)),
    "deblurring_gaussian": lambda c, h, w: ops.Deblurring((c, h, w), kernels.gaussian(1.5, 7)),
    "deblurring_asymmetric": lambda c, h, w: ops.Deblurring((c, h, w), random(3), random(4)),
    "circular_odd": lambda c, h, w: ops.CircularBlur((c, h, w), random(3, 5)),
    "circular_even": lambda c, h, w: ops.CircularBlur((c, h, w), random(2, 4)),
    "circular_larger_than_image": lambda c, h, w: ops.CircularBlur((c, h, w), random(21, 23)),
    "circular_rank_deficient": lambda c, h, w: ops.CircularBlur((c, h, w), torch.ones(h, w)),
    "circular_by_channel": lambda c, h, w: ops.CircularBlur((c, h, w), random(c, 3, 2)),
    "masked": lambda c, h, w: ops.MaskedTransform((c, h, w), _mask(c, h, w) * random(c, h, w)),
    "motion": lambda c, h, w: ops.CircularBlur((c, h, w), kernels.motion(4, 30)),
    "hadamard_or_dct": lambda c, h, w: ops.CompressiveSensing((c, h, w), max(1, h * w // 4)),
    "dct": lambda c, h, w: ops.CompressiveSensing((c, h, w), max(1, h * w // 4), "dct"),
    "dense_orthogonal": lambda c, h, w: ops.CompressiveSensing((c, h, w), max(1, h * w // 4), "dense"),
    "colorization": lambda c, h, w: ops.Colorization((c, h, w)),
    "fourier_random": lambda c, h, w: ops.FourierSampling((c, h, w), _mask(h, w)),
    "fourier_columns": lambda c, h, w: ops.FourierSampling((c, h, w), cartesian_mask(h, w)),
    "fourier_of_two_real": lambda c, h, w: ops.FourierSampling((c, h, w), _mask(h, w), complex_image=False),
    "dense_wide": lambda c, h, w: ops.Dense(random(c * h * w // 2, c * h * w), (c, h, w)),
    "dense_square": lambda c, h, w: ops.Dense(random(c * h * w, c * h * w), (c, h, w)),
    "dense_tall": lambda c, h, w: ops.Dense(random(c * h * w + 5, c * h * w), (c, h, w)),
    "dense_by_channel": lambda c, h, w: ops.Dense(random(3, h * w), (c, h, w)),
    "dense_rank_2": lambda c, h, w: ops.Dense(random(9, 2) @ random(2, c * h * w), (c, h, w)),
    "dense_zero": lambda c, h, w: ops.Dense(torch.zeros(4, c * h * w), (c, h, w)),
    "dense_repeated": lambda c, h, w: ops.Dense(torch.eye(c * h * w).repeat(2, 1), (c, h, w)),
}
EVEN_ONLY = {
    "block_average": lambda c, h, w: ops.SuperResolution((c, h, w), 2),
    "bicubic": lambda c, h, w: ops.SuperResolution((c, h, w), 2, "bicubic"),
    "bilinear": lambda c, h, w: ops.SuperResolution((c, h, w), 2, "bilinear"),
}

CASES = [(f"{name}-{'x'.join(map(str, shape))}", build, shape) for name, build in BUILDERS.items() for shape in SHAPES]
CASES += [
    (f"{name}-{'x'.join(map(str, shape))}", build, shape)
    for name, build in EVEN_ONLY.items()
    for shape in SHAPES
    if shape[1] % 2 == 0 and shape[2] % 2 == 0
]
