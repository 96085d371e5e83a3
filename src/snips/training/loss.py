"""Denoising score matching: which noise levels, how they count, and how well a denoiser does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from snips.metrics.quality import psnr
from snips.priors.base import Prior, per_image
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.unet import UNet


@dataclass(frozen=True)
class NoiseLevels:
    """Noise levels of training: log-uniform between `knots`, each interval with its share of the images."""

    knots: tuple[float, ...] = (0.002, 0.01, 1.0, 40.0)
    shares: tuple[float, ...] = (0.03, 0.85, 0.12)

    def draw(self, count: int, random: torch.Generator) -> Tensor:
        """`count` levels, one from each of `count` equally likely strata: less scatter between batches."""
        strata = torch.arange(count, dtype=torch.float64)
        uniform = (strata + torch.rand(count, generator=random, dtype=torch.float64)) / count
        edges = np.concatenate([[0.0], np.cumsum(self.shares)]) / sum(self.shares)
        return torch.from_numpy(np.exp(np.interp(uniform.numpy(), edges, np.log(self.knots)))).float()


def denoising_loss(model: UNet, clean: Tensor, noise: Tensor, sigma: Tensor) -> Tensor:
    """Mean of |D(x + sigma n) - x|^2 / e(sigma)^2 for x, n (B, C, H, W) and sigma (B,).

    e, the expected error of the linear estimate, takes the place of EDM's c_out: the loss starts at 1 for every noise
    level. With EDM's own weight large noise, where little can be gained, drowns the rest for the first 500 steps.
    """
    denoised, error = model.estimate(clean + per_image(sigma, clean) * noise, sigma)
    return ((denoised - clean) / error).square().mean()


def label_levels(sigmas: Tensor, count: int, random: torch.Generator) -> Tensor:
    """Levels of NCSNv2's own list, each equally likely."""
    return sigmas[torch.randint(len(sigmas), (count,), generator=random)]


def score_matching_loss(model: NCSNv2, clean: Tensor, noise: Tensor, sigma: Tensor) -> Tensor:
    """Half the mean of |sigma score(x + sigma n) + n|^2: NCSNv2's own (Song and Ermon 2020), per pixel."""
    noisy = clean + per_image(sigma, clean) * noise
    return (model.unscaled(noisy) + noise).square().mean() / 2


@torch.no_grad()
def psnr_table(
    prior: Prior, clean: Tensor, sigmas: Iterable[float], seed: int = 0, chunk: int = 16
) -> dict[str, float]:
    """Mean PSNR in dB of denoised images clamped to [0, 1], for each sigma; the seed alone sets the noise."""
    random = torch.Generator().manual_seed(seed)
    noise = torch.randn(clean.shape, generator=random)
    return {f"{s:g}": _mean_psnr(prior, clean, noise, s, chunk) for s in sigmas}


def _mean_psnr(prior: Prior, clean: Tensor, noise: Tensor, sigma: float, chunk: int) -> float:
    pairs = zip(clean.split(chunk), noise.split(chunk), strict=True)
    return float(torch.cat([psnr(prior.denoise(x + sigma * n, sigma), x) for x, n in pairs]).mean())
