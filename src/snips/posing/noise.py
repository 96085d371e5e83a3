"""How noisy is a measurement? Estimates of sigma_0 where nobody knows it, and whether to believe them.

Three routes, the first that is open:

- *wavelet*: where y is a picture, the finest diagonal wavelet coefficients are mostly noise; their median absolute
  value tells sigma (Donoho and Johnstone 1994, as in scikit-image).
- *redundant*: where y has more entries than H has independent rows, what lies outside the range of H is noise alone. Of
  a picture it is a guess: cameras blur beyond the edges too, which the operators of this package do not.
- *residual*: elsewhere, the level at which samples of a Gaussian model of photographs leave residuals of that level
  (expectation maximisation). It rests on the model, so it is always a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.operators import Inpainting, LinearOperator
from snips.operators.pictures import is_picture
from snips.priors.stationary import SolvedPosterior, StationaryGaussian

FEWEST = 50  # noise values that an estimate needs
COEFFICIENTS = 200  # of wavelets, as their median is less efficient
ROUNDS = 8  # of expectation maximisation
NOTHING = 1e-12  # rounding errors of the wavelets themselves
CLIPPED = 0.1  # of the values at black or white: from here on the noise that was cut off there is missed
AGREEMENT = (0.8, 1.25)  # sigma from the second finest wavelets over sigma from the finest, if both see noise alone


@dataclass(frozen=True)
class NoiseEstimate:
    """sigma_0, how it was found, and why it may be wrong: empty where it can be trusted to some twenty per cent."""

    sigma_0: float
    method: str
    doubt: str = ""

    def __str__(self) -> str:
        belief = f"a guess: {self.doubt}" if self.doubt else "to about twenty per cent"
        return f"sigma_0 = {self.sigma_0:.4g}, estimated from {self.method} ({belief})"


def estimate_noise(operator: LinearOperator, y: Tensor, *, step: float = 0.0, lossy: bool = False) -> NoiseEstimate:
    """Estimate sigma_0 of a measurement y (B, *measurement_shape).

    Args:
        step: between neighbouring values of y where it was rounded, 1 / 255 for 8 bits: a floor for the estimate.
        lossy: y went through JPEG or lossy WebP, which removes fine noise.
    """
    found = _wavelet(operator, y) or _redundant(operator, y) or _residual(operator, y)
    rounding = step / 12**0.5  # the standard deviation of rounding errors
    doubts = [found.doubt] if found.doubt else []
    if found.sigma_0 < rounding:
        doubts.append("the noise is below the rounding of the file")
    if lossy:
        doubts.append("its compression (JPEG or WebP) changes the noise")
    return NoiseEstimate(max(found.sigma_0, rounding), found.method, ", and ".join(doubts))


def _redundant(operator: LinearOperator, y: Tensor) -> NoiseEstimate | None:
    """|y - U U^T y|^2 over what white noise of level 1 leaves there: no model of the image is needed."""
    if not operator.has_svd:
        return None
    random = torch.Generator().manual_seed(0)
    probe = torch.randn(4, *y.shape[1:], generator=random, dtype=torch.float64).to(y)
    outside, noise = (_measured(v - operator.U(operator.Ut(v)), operator) for v in (y, probe))
    freedom = float(noise.square().sum()) / len(probe)
    if freedom < FEWEST:
        return None
    sigma_0 = float((outside.square().sum() / (freedom * len(y))).sqrt())
    doubt = (
        "it rests on the picture being blurred by exactly this operator, edges included" if is_picture(operator) else ""
    )
    return NoiseEstimate(sigma_0, "the part of y that no image explains", doubt)


def _measured(y: Tensor, operator: LinearOperator) -> Tensor:
    """The entries of y that were measured; the others hold no noise."""
    return y if operator.recorded is None else y[:, operator.recorded]


def _wavelet(operator: LinearOperator, y: Tensor) -> NoiseEstimate | None:
    if (found := _as_pictures(operator, y)) is None:
        return None
    pictures, pixels = found
    fine, coarse = (_median_level(pictures, level, pixels) for level in (1, 2))
    if fine is None:
        return None
    doubts = [_disagreement(fine, coarse)]
    if (cut := float(((y == 0) | (y == 1)).double().mean())) > CLIPPED and fine >= NOTHING:
        doubts.append(f"{cut:.0%} of the values are black or white, where noise is cut off")
    return NoiseEstimate(fine, "the finest wavelets of the picture", ", and ".join(filter(None, doubts)))


def _as_pictures(operator: LinearOperator, y: Tensor) -> tuple[Tensor, int] | None:
    """y as pictures, and how many pixels of a channel were seen; None where it is none, or has too many holes.

    Hidden pixels are 0, and so are the coefficients inside a hole.
    """
    if isinstance(operator, Inpainting):
        pictures, seen = operator.pinv(y), operator.singular_values.expand(operator.image_shape)
    elif not is_picture(operator):
        return None
    elif operator.recorded is None:
        return y, y.shape[-2] * y.shape[-1]
    else:
        seen = operator.recorded.to(y)
        pictures = y * seen
    if min(_intact_share(mask) for mask in seen) < 0.5:
        return None
    return pictures, min(int(mask.sum()) for mask in seen)


def _disagreement(fine: float, coarse: float | None) -> str:
    """Why the levels of two wavelet scales do not speak of noise alone; empty where they may."""
    if fine < NOTHING:
        return "the picture is too even to tell anything of noise"
    if coarse is None:
        return "the picture is small"
    if not AGREEMENT[0] <= coarse / fine <= AGREEMENT[1]:
        return f"coarser detail gives {coarse:.2g}, so the picture's own texture or smoothed noise is part of it"
    return ""


def _median_level(pictures: Tensor, level: int, pixels: int) -> float | None:
    """The mean over images and channels of scikit-image's estimate, on the diagonal band of a wavelet level.

    None where the pixels that are seen are too few.
    """
    from skimage.restoration import estimate_sigma  # takes a second to import

    if pixels < COEFFICIENTS * 4**level:
        return None
    planes = pictures.detach().cpu().double().flatten(0, 1).numpy()
    for _ in range(level - 1):
        planes = _approximation(planes)
    # an even picture has no coefficients but zeros, which the estimator leaves out
    return float(np.mean([estimate_sigma(plane) if np.ptp(plane) > 0 else 0.0 for plane in planes]))


def _approximation(planes: np.ndarray) -> np.ndarray:
    """Every second pixel of the smoothed picture (an orthonormal wavelet step, so white noise keeps its level)."""
    import pywt

    return np.stack([pywt.dwt2(plane, "db2")[0] for plane in planes])


def _intact_share(mask: Tensor) -> float:
    """Of the 4x4 windows that see anything, the share that sees everything: wavelets there are not cut by a hole."""
    seen = torch.nn.functional.avg_pool2d(mask[None, None].float(), 4, stride=1)
    touched = (seen > 0).sum()
    return float((seen > 1 - 1e-6).sum() / touched) if touched else 0.0


def _residual(operator: LinearOperator, y: Tensor) -> NoiseEstimate:
    """sigma_0^2 <- the mean of |y - H x|^2 / M over posterior samples x at the present sigma_0."""
    prior = StationaryGaussian.natural(operator.image_shape)
    y = y[:1]
    sigma_0 = float(_measured(y, operator).square().mean().sqrt()) / 4
    for step in range(ROUNDS):
        posterior = SolvedPosterior(prior, InverseProblem(operator, y, max(sigma_0, 1e-4)))
        posterior.tolerance = 1e-2  # the noise itself is known to a tenth
        residual = _measured(y - operator(posterior.sample(1, seed=step)), operator)
        sigma_0 = float(residual.square().mean().sqrt())
    return NoiseEstimate(sigma_0, "residuals under a Gaussian model of photographs", "it rests on that model")
