"""The best linear denoiser of a collection of images: a Wiener filter in the cosine basis.

A network that predicts what this filter misses need not learn what large noise leaves: as sigma grows the
estimate tends to the linear one, then to the mean, whatever the network does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from snips.operators.transforms import dct2, idct2
from snips.priors.base import per_image

# Orthonormal luminance and two colour differences: nearly the principal axes of colours in photographs.
_COLOUR = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]]).double()
LEAST = 1e-6  # a variance that no image falls short of: bytes are rounded by more
LOW = 8  # side of the block of low frequencies whose covariance is kept in full


def _frequency(height: int, width: int) -> Tensor:
    """|f| of each cosine coefficient in cycles per pixel, (H, W)."""
    vertical = torch.arange(height, dtype=torch.float64) / (2 * height)
    horizontal = torch.arange(width, dtype=torch.float64) / (2 * width)
    return torch.hypot(vertical[:, None], horizontal[None])


class Wiener(nn.Module):
    """mean + T^-1 P / (P + sigma^2) T (x - mean), with T a rotation of colours and a 2-D DCT.

    For any size P is a power law in frequency, P_c(f) = a_c f^-b_c, and the variance of the mean brightness at
    f = 0. For one `size`, if given, the mean image and the variance of each coefficient are those of the data
    and the 8 x 8 lowest frequencies of all channels have their full covariance: aligned faces are far from
    stationary.
    """

    mean: Tensor
    law: Tensor
    mean_image: Tensor
    power: Tensor
    low_values: Tensor
    low_vectors: Tensor

    def __init__(self, channels: int, size: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.channels, self.size = channels, size
        # Until fitted: typical photographs (amplitude, exponent, variance of the mean).
        self.register_buffer("mean", torch.full((channels,), 0.5))
        self.register_buffer("law", torch.tensor([[0.002, 2.0, 0.02]]).repeat(channels, 1))
        if size is not None:
            self._register_fixed(channels, size)

    def _register_fixed(self, channels: int, size: tuple[int, int]) -> None:
        n = channels * LOW * LOW
        self.register_buffer("mean_image", torch.full((channels, *size), 0.5))
        self.register_buffer("power", self._law_power(*size).float())
        self.register_buffer("low_values", self.power[:, :LOW, :LOW].flatten().clone())
        self.register_buffer("low_vectors", torch.eye(n))

    def forward(self, x: Tensor, sigma: float | Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For x (B, C, H, W): the linear estimate, x made white, and the estimate's expected rms (B or 1, 1, 1, 1).

        White, that is with equal power in all directions, is what a network likes to see.
        """
        variance = per_image(sigma, x) ** 2
        fixed = self.size == tuple(x.shape[-2:])
        mean = self.mean_image if fixed else self.mean[:, None, None]
        power = self.power if fixed else self._law_power(*x.shape[-2:]).to(x)
        coefficients = self._transform(x - mean)
        total = power + variance
        white, estimate = coefficients * total.rsqrt(), coefficients * (power / total)
        error = power * variance / total
        if fixed:
            low = self._low(coefficients[..., :LOW, :LOW], variance.flatten(1))
            for whole, part in zip((white, estimate, error), low, strict=True):
                whole[..., :LOW, :LOW] = part
        return mean + self._inverse(estimate), self._inverse(white), error.mean((1, 2, 3), keepdim=True).sqrt()

    def _low(self, coefficients: Tensor, variance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same for the low frequencies, with their full covariance; of the errors only the sum is meant."""
        shape, total = coefficients.shape, self.low_values + variance
        turned = coefficients.flatten(1) @ self.low_vectors
        white, estimate = ((turned * g) @ self.low_vectors.T for g in (total.rsqrt(), self.low_values / total))
        error = self.low_values * variance / total
        return white.view(shape), estimate.view(shape), error.view(-1, *shape[1:])

    def _law_power(self, height: int, width: int) -> Tensor:
        amplitude, exponent, mean_variance = self.law.cpu().double()[..., None, None].unbind(1)
        frequency = _frequency(height, width)
        power = amplitude * frequency.clamp(min=1e-9) ** -exponent
        power[:, 0, 0] = mean_variance[:, 0, 0] * height * width
        return power

    def _transform(self, x: Tensor) -> Tensor:
        return dct2(self._turn(x, inverse=False))

    def _inverse(self, coefficients: Tensor) -> Tensor:
        return self._turn(idct2(coefficients), inverse=True)

    def _turn(self, x: Tensor, inverse: bool) -> Tensor:
        """Colours to luminance and differences, or back; other than three channels stay as they are."""
        if self.channels != 3:
            return x
        turn = nn.functional.normalize(_COLOUR).to(x)
        return torch.einsum("ij,bjhw->bihw", turn.T if inverse else turn, x)

    @torch.no_grad()
    def fit(self, images: Tensor) -> None:
        """Measure mean and spectrum on images (N, C, H, W); those of `size` also give the covariance."""
        self.mean.copy_(images.mean((0, 2, 3)))
        self.law.copy_(self._fit_law(self._transform(images - self.mean[:, None, None]).double().square().mean(0)))
        if self.size == tuple(images.shape[-2:]):
            self._fit_fixed(images)

    def _fit_fixed(self, images: Tensor) -> None:
        self.mean_image.copy_(images.mean(0))
        coefficients = self._transform(images - self.mean_image)
        self.power.copy_(coefficients.square().mean(0))
        low = coefficients[..., :LOW, :LOW].flatten(1).double()
        values, vectors = torch.linalg.eigh(low.T @ low / len(low))
        self.low_values.copy_(values.clamp(min=LEAST))
        self.low_vectors.copy_(vectors)

    def _fit_law(self, power: Tensor) -> Tensor:
        """Amplitude, exponent and variance of the mean from the power (C, H, W): a line in log-log."""
        frequency = _frequency(*power.shape[-2:]).flatten()[1:].to(power)
        design = torch.stack([torch.ones_like(frequency), -frequency.log()], 1)
        # High frequencies are many: weights 1/f^2 give each octave the same say.
        weight = 1 / frequency[:, None]
        line = torch.linalg.lstsq(design * weight, power.flatten(1)[:, 1:].clamp(min=LEAST).log().T * weight).solution
        pixels = power.shape[-2] * power.shape[-1]
        return torch.stack([line[0].exp(), line[1], (power[:, 0, 0] / pixels).clamp(min=LEAST)], 1)
