"""A Gaussian prior that looks the same everywhere: diagonal in the Fourier basis, so any size is cheap."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from snips.buffers import ExactBuffers
from snips.memory import check_memory
from snips.operators.base import numbers_of
from snips.operators.subsampled import mirrored
from snips.priors.analytic import Gaussian, GaussianMixture, MeasuredProblem, check_single
from snips.priors.base import Prior, check_images, per_image
from snips.solvers import conjugate_gradients
from snips.streams import stream_key

DENSE_LIMIT = 2048  # pixels; beyond, an exact posterior is found by linear solves
ROUNDING = 1e-6  # relative, of a covariance that was computed in float32
NATURAL_COLOURS = ((1.00, 0.94, 0.86), (0.94, 1.00, 0.94), (0.86, 0.94, 1.00))


class StationaryGaussian(ExactBuffers, Prior):
    """N(mean, C) with C = K (x) F^* diag(power) F: a power spectrum over space, a covariance K over channels.

    Args:
        mean: a number, one for each channel, or an image (C, H, W).
        power_spectrum: (H, W), the variance of each coefficient of the orthonormal FFT, zero frequency at [0, 0];
            its mean is the variance of a pixel. Must be even, P(k) = P(-k), as a real image's is.
        channels: C.
        channel_covariance: K, (C, C); independent channels by default.
    """

    mean_image: Tensor  # (1, 1, 1), (C, 1, 1) or (C, H, W)
    variances: Tensor  # (C, H, W), in the Fourier basis and the eigenbasis of K
    rotation: Tensor  # (C, C), columns are the eigenvectors of K

    def __init__(
        self,
        mean: float | Tensor,
        power_spectrum: Tensor,
        channels: int,
        channel_covariance: Tensor | None = None,
    ) -> None:
        super().__init__()
        power = numbers_of(power_spectrum, "the power spectrum", torch.float64)
        if power.ndim != 2 or not torch.isfinite(power).all() or (power < 0).any():
            raise ValueError("the power spectrum must be a finite (H, W) array without negative entries")
        if not torch.allclose(power, mirrored(power), rtol=1e-6):
            raise ValueError("the power spectrum of a real image is even: P(k) = P(-k)")
        K = _checked_colours(channel_covariance, channels)
        eigenvalues, rotation = torch.linalg.eigh(K)
        self.image_shape = (channels, *power.shape)
        self.register_exact("mean_image", _checked_mean(mean, self.image_shape))
        self.register_exact("variances", eigenvalues.clamp(min=0)[:, None, None] * power)
        self.register_exact("rotation", rotation)

    @classmethod
    def natural(cls, image_shape: tuple[int, int, int], std: float = 0.25) -> StationaryGaussian:
        """Like photographs: power falls as frequency^-2.4, and colours move together (measured on BSDS500)."""
        channels, height, width = image_shape
        rows, columns = torch.fft.fftfreq(height)[:, None] * height, torch.fft.fftfreq(width) * width
        power = (rows**2 + columns**2).clamp(min=0.16) ** -1.2  # brightness varies most, but stays finite
        power = power / power.mean() * std**2
        colours = torch.tensor(NATURAL_COLOURS) if channels == 3 else None
        return cls(0.5, power, channels, colours)

    @property
    def mean(self) -> Tensor:
        return self.mean_image.expand(self.image_shape)

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """The Wiener filter: each coefficient is multiplied by P / (P + sigma^2)."""
        check_images(x, self.image_shape)
        self.follow(x)
        gain = self.variances / (self.variances + per_image(sigma, x) ** 2)
        return self._filter(x - self.mean_image, gain) + self.mean_image

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """n independent draws, (n, C, H, W)."""
        random = torch.Generator().manual_seed(seed)
        noise = torch.randn(n, *self.image_shape, generator=random, dtype=torch.float64).to(self.variances)
        return self._filter(noise, self.variances.sqrt()) + self.mean_image

    def apply_covariance(self, x: Tensor) -> Tensor:
        """C x for x (B, C, H, W)."""
        return self._filter(x, self.variances)

    def as_gaussian(self) -> Gaussian:
        """The same prior with a dense covariance, for small images."""
        n = math.prod(self.image_shape)
        advice = "use a smaller image; a posterior with sigma_0 > 0 needs no matrix"
        check_memory(8 * 8 * n * n, f"the dense covariance of {n} values", advice)
        exact = copy.deepcopy(self).cpu().double()
        columns = torch.eye(n, dtype=torch.float64).reshape(n, *self.image_shape)
        return Gaussian(exact.mean.flatten(), exact.apply_covariance(columns).reshape(n, n), self.image_shape)

    def posterior(self, problem: MeasuredProblem) -> GaussianMixture | SolvedPosterior:
        """The exact posterior of one measurement: dense up to a few thousand pixels, by linear solves beyond."""
        n = math.prod(self.image_shape)
        if n <= DENSE_LIMIT or problem.sigma_0 == 0:
            return self.as_gaussian().posterior(problem)
        return SolvedPosterior(self, problem)

    def _filter(self, x: Tensor, gain: Tensor) -> Tensor:
        """Multiply by `gain` in the basis where C is diagonal."""
        rotated = torch.einsum("cd,bchw->bdhw", self.rotation, x)
        filtered = torch.fft.ifft2(torch.fft.fft2(rotated) * gain).real
        return torch.einsum("cd,bdhw->bchw", self.rotation, filtered)


def _checked_colours(covariance: Tensor | None, channels: int) -> Tensor:
    """K in float64, (C, C)."""
    if covariance is None and channels >= 1:
        return torch.eye(channels, dtype=torch.float64)
    K = numbers_of(covariance, "the covariance of the channels", torch.float64)
    if tuple(K.shape) != (channels, channels) or not K.numel() or not torch.isfinite(K).all():
        raise ValueError(f"{channels} channels need a finite covariance of shape (channels, channels)")
    scale = K.abs().max()
    if (K - K.T).abs().max() > ROUNDING * scale or torch.linalg.eigvalsh(K).min() < -ROUNDING * scale:
        raise ValueError("the covariance of the channels must be symmetric, without negative eigenvalues")
    return K


def _checked_mean(mean: float | Tensor, image_shape: tuple[int, ...]) -> Tensor:
    """In float64, with three axes that broadcast to the image's."""
    centre = numbers_of(mean, "the mean", torch.float64)
    centre = centre if centre.ndim == 3 else centre.flatten()[:, None, None]
    fits = all(n in (1, whole) for n, whole in zip(centre.shape, image_shape, strict=True))
    if not (fits and torch.isfinite(centre).all()):
        raise ValueError("the mean must be a finite number, one for each channel, or an image (C, H, W)")
    return centre


class SolvedPosterior:
    """The exact posterior of a stationary Gaussian at any size, without a matrix: conjugate gradients in float64.

    With S = H C H^T + sigma_0^2 I the mean is mu + C H^T S^-1 (y - H mu). A draw repeats that for a random image of
    the prior and a random measurement of it, and moves the image by the difference (perturb and solve).
    """

    tolerance = 1e-10  # relative residual of the solves

    def __init__(self, prior: StationaryGaussian, problem: MeasuredProblem) -> None:
        check_single(problem)
        self.problem = problem
        self.prior, self.sigma_0, self.dtype = (
            copy.deepcopy(prior).cpu().double(),
            problem.sigma_0,
            problem.y.dtype,
        )
        self.operator = copy.deepcopy(problem.operator).cpu().double()
        self.y = problem.y.cpu().double()

    @property
    def mean(self) -> Tensor:
        """E[x | y], (C, H, W)."""
        return self._conditioned(self.prior.mean[None].clone(), self.y)[0].to(self.dtype)

    @property
    def covariance(self) -> Tensor:
        """Cov[x | y], (N, N), where that fits into memory; slow."""
        return self._dense().covariance

    def apply_covariance(self, x: Tensor) -> Tensor:
        """Cov[x | y] x for x (B, C, H, W), at any size."""
        moved = self.prior.apply_covariance(x.cpu().double())
        return self._conditioned(moved, torch.zeros_like(self.y).expand(len(x), *self.y.shape[1:])).to(self.dtype)

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x | y) for x (B, C, H, W) -> (B,); as slow as the covariance."""
        return self._dense().log_density(x)

    def _dense(self) -> GaussianMixture:
        n = math.prod(self.prior.image_shape)
        check_memory(8 * 8 * n * n, f"the dense posterior of {n} pixels", "use .mean and .sample()")
        return self.prior.as_gaussian().posterior(self.problem)

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """n independent draws, (n, C, H, W)."""
        x = self.prior.sample(n, seed)
        random = torch.Generator().manual_seed(stream_key(seed, 1, 0))  # apart from the prior's own stream
        noise = torch.randn(n, *self.y.shape[1:], generator=random, dtype=x.dtype)
        return self._conditioned(x, self.y - self.sigma_0 * noise).to(self.dtype)

    def _conditioned(self, x: Tensor, y: Tensor) -> Tensor:
        """x + C H^T S^-1 (y - H x)."""
        missing = y - self.operator(x)
        solution = conjugate_gradients(self._apply_S, missing, steps=10_000, tolerance=self.tolerance, strict=True)
        return x + self.prior.apply_covariance(self.operator.adjoint(solution))

    def _apply_S(self, v: Tensor) -> Tensor:
        return self.operator(self.prior.apply_covariance(self.operator.adjoint(v))) + self.sigma_0**2 * v
