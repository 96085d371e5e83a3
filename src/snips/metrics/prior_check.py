"""Does a prior behave like an MMSE denoiser? Measured on images, with the usual mistakes tried out and named.

For the denoiser D(x) = E[clean | x], x = clean + sigma n, hold

    E[D(x) - clean] = 0                                  no bias,
    E[(D(x) - clean) D(x)] = 0                           what it shows is what it knows: the slope of clean on D is 1,
    E|D(x) - clean|^2 = sigma^2 E[tr J]                  J the Jacobian of D; ties D to the sigma it was told,
    J = J^T                                              D is the gradient of a function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from snips.metrics.quality import psnr
from snips.priors.base import Prior, denoised_copy
from snips.priors.denoiser import ForeignDenoiser
from snips.streams import checked_seed

SIGMAS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
LARGEST_BIAS = 0.3  # of the mean, in units of the denoiser's own root mean square error
ERROR_RATIO = (0.5, 2.0)  # |D - clean|^2 over sigma^2 tr J
PAIRS = 4  # of random directions in which the Jacobian is probed
ASYMMETRY = 0.9  # |J - J^T| over |J|: trained networks reach 0.5, a matrix of random entries has 1.4
RESIDUAL_CORRELATION = 0.3  # of neighbours in x - D where sigma is small and x - D should be the noise
BETTER = 1.0  # dB: a change of units that gains this much, on average over sigma, is what is wrong
WORSE = -0.5  # dB: right units make it worse at no noise level
MUCH_NOISE = 100.0  # also tried there, where the mean of the training images is all that is left, in whatever range


@dataclass(frozen=True)
class LevelReport:
    """One noise level. All are averages over images."""

    sigma: float
    psnr: float  # of the denoised image, dB
    psnr_noisy: float
    bias: float  # of the mean brightness, over the root mean square error
    slope: float  # of clean on denoised, both without their means: 1 for an MMSE denoiser
    error_ratio: float  # |D - clean|^2 / (sigma^2 tr J): 1 for an MMSE denoiser
    residual_correlation: float  # of neighbours in x - D
    asymmetry: float  # |J - J^T| / |J|


@dataclass(frozen=True)
class PriorReport:
    """What `check_prior` found; true where nothing is wrong."""

    prior: str
    levels: tuple[LevelReport, ...]
    mistakes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        return not self.mistakes

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        head = f"{self.prior}\n  {'sigma':>6} {'PSNR':>6} {'noisy':>6} {'bias':>6} {'slope':>6} {'error':>6} "
        rows = [
            f"  {v.sigma:6.3g} {v.psnr:6.2f} {v.psnr_noisy:6.2f} {v.bias:6.2f} {v.slope:6.2f} {v.error_ratio:6.2f} "
            f"{v.residual_correlation:8.2f} {v.asymmetry:9.2f}"
            for v in self.levels
        ]
        verdict = [f"  WRONG: {m}" for m in self.mistakes] or ["  ok: behaves like an MMSE denoiser"]
        return "\n".join([head + f"{'residual':>8} {'asymmetry':>9}", *rows, *verdict])


def check_prior(
    prior: Prior, images: Tensor, sigmas: tuple[float, ...] = SIGMAS, seed: int = 0, seek: bool = True
) -> PriorReport:
    """Measure a prior on clean images (B, C, H, W) in [0, 1], and name what is wrong with it.

    Args:
        sigmas: the noise levels to try; leave out those that the prior is not made for.
        seek: also try other units for what the prior is told, to name the mistake.
    """
    if not sigmas or not all(0 < sigma < math.inf for sigma in sigmas):
        raise ValueError(f"the noise levels to try must be positive and finite, not {sigmas}")
    random = torch.Generator().manual_seed(checked_seed(seed))
    noise = torch.randn(images.shape, generator=random).to(images)
    with torch.no_grad():
        levels = tuple(_measure(prior, images, noise, sigma, seed) for sigma in sigmas)
        mistakes = [*_wrong_units(prior, images, noise, sigmas, levels, seed)] if seek else []
        blind = _ignores_sigma(prior, images, noise, sigmas)
    if not mistakes:
        mistakes = _symptoms(levels, blind)
    return PriorReport(prior.name or type(prior).__name__, levels, tuple(mistakes))


def _measure(prior: Prior, clean: Tensor, noise: Tensor, sigma: float, seed: int) -> LevelReport:
    x = clean + sigma * noise
    denoised = denoised_copy(prior, x, sigma)
    if denoised.shape != x.shape or not torch.isfinite(denoised).all():
        raise ValueError(f"the prior changed the shape of the image, or returned NaN or Inf, at sigma = {sigma:g}")
    error = denoised - clean
    rms = float(error.square().mean().sqrt().clamp(min=1e-12))
    trace, asymmetry = _jacobian(prior, x, denoised, sigma, seed)
    centred = denoised - denoised.mean((1, 2, 3), keepdim=True)
    slope = float(
        (centred * (clean - clean.mean((1, 2, 3), keepdim=True))).sum() / centred.square().sum().clamp(min=1e-12)
    )
    return LevelReport(
        sigma,
        float(psnr(denoised, clean).mean()),
        float(psnr(x, clean).mean()),
        float(error.mean()) / rms,
        slope,
        rms**2 / max(sigma**2 * trace, 1e-12),
        neighbour_correlation(x - denoised),
        asymmetry,
    )


def _jacobian(prior: Prior, x: Tensor, denoised: Tensor, sigma: float, seed: int) -> tuple[float, float]:
    """tr J / N and |J - J^T| / |J| (Frobenius), from products of J with random directions by finite differences."""
    random = torch.Generator().manual_seed(seed + 1)
    step = 0.02 * sigma
    traces, differences, scales = [], [], []
    for _ in range(PAIRS):
        u, v = (torch.randn(x.shape, generator=random).to(x) for _ in range(2))
        Ju, Jv = ((denoised_copy(prior, x + step * w, sigma) - denoised) / step for w in (u, v))
        traces.append(float(((u * Ju).mean() + (v * Jv).mean()) / 2))
        differences.append(((u * Jv).flatten(1).sum(1) - (v * Ju).flatten(1).sum(1)).square().mean())
        scales.append((Ju.flatten(1).square().sum(1) + Jv.flatten(1).square().sum(1)).mean() / 2)
    asymmetry = (torch.stack(differences).mean() / torch.stack(scales).mean().clamp(min=1e-20)).sqrt()
    return sum(traces) / PAIRS, float(asymmetry)


def neighbour_correlation(residual: Tensor) -> float:
    """Of horizontal and vertical neighbours, without the mean of each image."""
    r = residual - residual.mean((2, 3), keepdim=True)
    power = r.square().mean().clamp(min=1e-20)
    return float(((r[..., 1:] * r[..., :-1]).mean() + (r[..., 1:, :] * r[..., :-1, :]).mean()) / (2 * power))


def _ignores_sigma(prior: Prior, clean: Tensor, noise: Tensor, sigmas: tuple[float, ...]) -> bool:
    """Whether twice the sigma changes nothing."""
    sigma = sigmas[len(sigmas) // 2]
    x = clean + sigma * noise
    once, twice = (denoised_copy(prior, x, level) for level in (sigma, 2 * sigma))
    return bool((once - twice).norm() <= 1e-5 * once.norm())


# Other units in which the prior may want to be told: what to say, and the arguments of ForeignDenoiser.
UNITS = {
    "sigma is wanted from 0 to 255": {"sigma_scale": 255.0},
    "images are wanted from -1 to 1": {"value_range": (-1.0, 1.0)},
    "images are wanted from 0 to 255": {"value_range": (0.0, 255.0)},
    "images are wanted from 0 to 255 with sigma from 0 to 1": {"value_range": (0.0, 255.0), "sigma_scale": 1 / 255},
    "sigma is wanted from 0 to 1, but is told from 0 to 255": {"sigma_scale": 1 / 255},
    "the variance is wanted for sigma": {"kind": "variance"},
}


def _wrong_units(
    prior: Prior, clean: Tensor, noise: Tensor, sigmas: tuple[float, ...], levels: tuple[LevelReport, ...], seed: int
) -> list[str]:
    """The change of units that makes it denoise clearly better and like an MMSE denoiser, if there is one."""
    tried = (*sigmas, MUCH_NOISE)
    before = [*(level.psnr for level in levels), _score(prior, clean, noise, MUCH_NOISE)]
    best, most = "", BETTER
    for what, arguments in UNITS.items():
        changed = _changed(prior, **arguments)
        try:
            gains = [_score(changed, clean, noise, s) - score for s, score in zip(tried, before, strict=True)]
        except (ValueError, RuntimeError, IndexError):  # a noise level that it refuses
            continue
        gain = sum(gains) / len(gains)
        # a wrong range shows most where the noise is strong: a third of that gain counts as much as the average
        enough = min(gains) > WORSE and max(gain, gains[-1] / 3) > most
        if enough and _fits_sigma(changed, clean, noise, sigmas, seed):
            best = f"{what}: it denoises {gain:.1f} dB better then; use as_prior({_spelled(arguments)})"
            most = max(gain, gains[-1] / 3)
    return [best] if best else []


def _score(prior: Prior, clean: Tensor, noise: Tensor, sigma: float) -> float:
    return float(psnr(prior.denoise(clean + sigma * noise, sigma), clean).mean())


def _fits_sigma(prior: Prior, clean: Tensor, noise: Tensor, sigmas: tuple[float, ...], seed: int) -> bool:
    """Whether the error is the one of an MMSE denoiser, at three of four noise levels."""
    ratios = [_measure(prior, clean, noise, sigma, seed).error_ratio for sigma in sigmas]
    return sum(ERROR_RATIO[0] < ratio < ERROR_RATIO[1] for ratio in ratios) >= 0.75 * len(ratios)


def _changed(prior: Prior, kind: str = "denoiser", **arguments) -> Prior:
    if kind == "variance":
        return ForeignDenoiser(lambda x, sigma: prior.denoise(x, sigma**2))
    return ForeignDenoiser(prior.denoise, **arguments)


def _spelled(arguments: dict) -> str:
    if "kind" in arguments:
        return "lambda x, sigma: denoiser(x, sigma**2)"
    values = (f"{key}={value if isinstance(value, tuple) else f'{value:.6g}'}" for key, value in arguments.items())
    return ", ".join(["denoiser", *values])


def _symptoms(levels: tuple[LevelReport, ...], blind: bool) -> list[str]:
    """What does not fit an MMSE denoiser, where no change of units explains it."""
    found = []
    if blind:
        found.append(
            "blind: it ignores sigma; as_prior(denoiser, kind='blind', sigma_range=...) for the levels it knows"
        )
    tests = {
        "it does not reduce the noise": lambda v: v.psnr < v.psnr_noisy + 0.01,
        "its mean is biased": lambda v: abs(v.bias) > LARGEST_BIAS,
        "its error does not fit sigma^2 tr J, as if told another sigma": lambda v: (
            not (ERROR_RATIO[0] < v.error_ratio < ERROR_RATIO[1])
        ),
        "its Jacobian is not symmetric, so there is no density behind it": lambda v: v.asymmetry > ASYMMETRY,
        "what it removes is not white noise but structure": lambda v: (
            v.sigma <= 0.1 and abs(v.residual_correlation) > RESIDUAL_CORRELATION
        ),
    }
    for what, is_wrong in tests.items():
        at = [f"{v.sigma:g}" for v in levels if is_wrong(v)]
        if at:
            found.append(f"{what} (at sigma = {', '.join(at)})")
    return found
