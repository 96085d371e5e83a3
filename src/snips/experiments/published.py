"""The paper's figures: Kawar, Vaksman, Elad: SNIPS: Solving Noisy Inverse Problems Stochastically. NeurIPS 2021."""

from __future__ import annotations

from dataclasses import dataclass

SIGMA_CELEBA, SIGMA_LSUN = 0.1, 0.04
CELEBA_SAMPLES, LSUN_SAMPLES = 8, 6

# Table 1: PSNR in dB of the samples and of their mean, 8 images of CelebA.
TABLE_1: dict[str, tuple[float, float]] = {
    "deblur_uniform": (25.54, 28.01),
    "sr2": (25.58, 28.03),
    "sr4": (21.90, 24.31),
    "cs4": (25.68, 28.06),
    "cs8": (22.34, 24.67),
}

# Section 4.1: over all of its experiments.
SHARE_NORMAL = 0.95  # of the samples have p > 0.05, about
SHARE_UNCORRELATED = 1.0  # have |rho| < 0.1

# Appendix: on one RTX 3080.
SECONDS_CELEBA = 120  # about two minutes for 8 samples at 64 x 64


@dataclass(frozen=True)
class RedRow:
    """The table of the appendix on RED, for one noise level: (SNIPS, its mean, RED)."""

    weight: float  # lambda; the paper does not say in which units of pixels
    iterations: int
    psnr: tuple[float, float, float]
    lpips: tuple[float, float, float]


RED: dict[float, RedRow] = {
    0.006: RedRow(0.12, 100, (32.41, 35.42, 29.03), (0.005, 0.005, 0.043)),
    0.1: RedRow(1000, 100, (25.03, 27.28, 20.10), (0.032, 0.045, 0.077)),
}

# Appendix: uniform steps c sigma^2 that the paper compares with its own.
UNIFORM_STEPS = (1e-3, 1e-5)
