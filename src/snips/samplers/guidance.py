"""What y tells about unmeasured directions while the annealing noise still hides the measured ones.

Where s sigma > sigma_0 a noisy image knows less of x than y does: it holds y_bar / s with noise of variance sigma^2
instead of (sigma_0 / s)^2. The rest of what y tells is worth one more look at x_bar, of precision

    S^2 = s^2 / sigma_0^2 - 1 / sigma^2      and value      y_e = y_bar / s - (x_bar - y_bar / s) / (S sigma)^2.

If x given the noisy image were N(D, C), that look would move the denoised image D by the least delta in

    delta^T C^-1 delta + |S (y_e - D - delta)|^2.

C is that of a Gaussian model of photographs, so the move is approximate. It fades by itself, S -> 0 as s sigma comes
down to sigma_0, and the levels below, where nothing is hidden, target the exact posterior.

How strong the model's octaves are is fitted to each image. If the prior were N(1/2, a V) along some coordinates, V the
model's variance, then D x / V = a x^2 / (a V + sigma^2) and (x - D) x / sigma^2 = x^2 / (a V + sigma^2) for each of
them, x and D as deviations from 1/2. So a is the ratio of their sums, without a further call of the denoiser.
"""

from __future__ import annotations

import torch
from torch import Tensor

from snips.operators.base import LinearOperator
from snips.operators.transforms import dct, idct
from snips.priors.stationary import NATURAL_COLOURS
from snips.samplers.conditional import Coordinates, Level
from snips.streams import Streams

STEPS = 5  # of conjugate gradients
SHARPEST = 30.0  # S sigma is limited to this: a better known coordinate moves D no further
POWER = 3e-4  # of the cosine coefficients of a photograph's quiet parts, POWER / f^2 with f in cycles per pixel
BRIGHTNESS = 0.05  # the variance of the mean of all pixels
COUNT = 4.0  # the model itself counts as much as this many coefficients of an octave


class Photographs:
    """N(1/2, C): power falls with the square of the frequency in the cosine basis, and colours move together."""

    def __init__(self, operator: LinearOperator) -> None:
        channels, height, width = operator.image_shape
        s = operator.singular_values
        vertical, horizontal = torch.arange(height) / (2 * height), torch.arange(width) / (2 * width)
        f2 = vertical[:, None] ** 2 + horizontal**2
        power = torch.where(f2 > 0, POWER / f2.clamp(min=1e-12), BRIGHTNESS * height * width)
        colours = torch.tensor(NATURAL_COLOURS) if channels == 3 else torch.eye(channels)
        variances, rotation = torch.linalg.eigh(colours.double())
        self.rotation = rotation.to(s)  # (C, C)
        self.variances = (variances[:, None, None] * power).to(s)  # (C, H, W)
        lowest = f2[f2 > 0].min() if f2.numel() > 1 else 1.0
        octaves = torch.where(f2 > 0, 1 + (f2 / lowest).clamp(min=1).log2().div(2).floor(), 0)
        self.octaves = octaves.long().to(s.device)  # (H, W), 0 is the brightness
        self.octave_count = int(octaves.max()) + 1

    def cosines(self, x: Tensor) -> Tensor:
        """x (B, C, H, W) in the basis where C is diagonal."""
        return dct(dct(torch.einsum("cd,bchw->bdhw", self.rotation, x)).mT).mT

    def filter(self, x: Tensor, gain: Tensor) -> Tensor:
        """Multiply x (B, C, H, W) by gain (C, H, W) or (B, C, H, W) in that basis."""
        filtered = idct(idct((gain * self.cosines(x)).mT).mT)
        return torch.einsum("cd,bdhw->bchw", self.rotation, filtered)

    def fitted(self, x: Tensor, denoised: Tensor, sigma: float) -> Tensor:
        """The variances, each octave multiplied by the a that a noisy image and the denoised one tell: (B, C, H, W)."""
        x, denoised = self.cosines(x - 0.5), self.cosines(denoised - 0.5)
        signal = COUNT + self._sums(denoised * x / self.variances).clamp(min=0)
        noise = COUNT + self._sums((x - denoised) * x / sigma**2).clamp(min=0)
        return self.variances * (signal / noise)[..., self.octaves]

    def _sums(self, values: Tensor) -> Tensor:
        """The sum over each octave, (B, C, H, W) -> (B, C, octaves)."""
        sums = values.new_zeros(*values.shape[:2], self.octave_count)
        return sums.index_add(2, self.octaves.flatten(), values.flatten(2))

    def hidden_spread(self, operator: LinearOperator, s: Tensor, sigma_0: float, steps: int = 20) -> float:
        """The largest standard deviation along directions that y tells little of, by power iteration.

        L = the largest eigenvalue of C^1/2 V diag(sigma_0^2 / (sigma_0^2 + s^2 L)) V^T C^1/2.
        """
        root, largest = self.variances.sqrt(), float(self.variances.max())
        x = torch.randn(1, *operator.image_shape, generator=torch.Generator().manual_seed(0)).to(root)
        for _ in range(steps):
            x = x / x.norm().clamp(min=1e-30)
            weight = torch.where(s > 0, sigma_0**2 / (sigma_0**2 + s**2 * largest).clamp(min=1e-300), 1).to(root)
            x = self.filter(operator.V(weight * operator.Vt(self.filter(x, root))), root)
            largest = float(x.norm())
        return largest**0.5


class Guide:
    """What a noisy image and y together tell of x, under the model; everything in the SVD basis."""

    def __init__(self, coordinates: Coordinates, model: Photographs, towards_y: bool = True) -> None:
        self.coordinates, self.model, self.towards_y = coordinates, model, towards_y

    def mean(self, level: Level, denoised_bar: Tensor, x_bar: Tensor, variances: Tensor | None = None) -> Tensor:
        """The denoised image, moved to what y tells of the hidden coordinates; `variances` as fitted, or given."""
        sharpness = self._sharpness(level)
        if not sharpness.any():
            return denoised_bar
        root = self._root(level, self._fitted(level, denoised_bar, x_bar) if variances is None else variances)
        return self._conditioned(root, sharpness, denoised_bar, self._look(level, sharpness, x_bar))

    def draw(self, level: Level, denoised_bar: Tensor, x_bar: Tensor, streams: Streams) -> Tensor:
        """One x of N(D, C) given the look: a draw of N(D, C) that is moved to the look with other noise."""
        H, sharpness = self.coordinates.operator, self._sharpness(level)
        root = self._root(level, self._fitted(level, denoised_bar, x_bar))
        noise = streams.normal(root)
        drawn_bar = denoised_bar + H.Vt(self.model.filter(noise, root))
        if not sharpness.any():
            return drawn_bar
        look = self._look(level, sharpness, x_bar)
        look = look + (sharpness > 0) * self.coordinates.white(streams.normal(noise))
        return self._conditioned(root, sharpness, drawn_bar, look)

    def _fitted(self, level: Level, denoised_bar: Tensor, x_bar: Tensor) -> Tensor:
        H = self.coordinates.operator
        return self.model.fitted(H.V(x_bar), H.V(denoised_bar), level.sigma)

    def _root(self, level: Level, variances: Tensor) -> Tensor:
        """C^1/2, where C^-1 = (the model's covariance)^-1 + sigma^-2."""
        return (variances * level.sigma**2 / (variances + level.sigma**2)).sqrt()

    def _look(self, level: Level, sharpness: Tensor, x_bar: Tensor) -> Tensor:
        """S y_e; where coordinates are hidden, y_bar / s is level.pull."""
        offset = (x_bar - level.pull) / (torch.where(sharpness > 0, sharpness, 1) * level.sigma**2)
        return torch.where(sharpness > 0, sharpness * level.pull - offset, 0)

    def _conditioned(self, root: Tensor, sharpness: Tensor, centre_bar: Tensor, look: Tensor) -> Tensor:
        """centre + delta with delta = C^1/2 u and (I + C^1/2 V S^2 V^T C^1/2) u = C^1/2 V S (look - S centre)."""
        H = self.coordinates.operator

        def apply(u: Tensor) -> Tensor:  # on images, which are real also where V is not
            return u + self.model.filter(H.V(sharpness**2 * H.Vt(self.model.filter(u, root))), root)

        wanted = self.model.filter(H.V(sharpness * (look - sharpness * centre_bar)), root)
        return centre_bar + H.Vt(self.model.filter(conjugate_gradients(apply, wanted, STEPS), root))

    def _sharpness(self, level: Level) -> Tensor:
        """S >= 0, broadcasts against x_bar; 0 where nothing is hidden."""
        s, sigma, sigma_0 = self.coordinates.s, level.sigma, self.coordinates.sigma_0
        r2 = (s * sigma / sigma_0) ** 2 if sigma_0 > 0 else torch.where(s > 0, float("inf"), 0.0)
        relative = (r2 - 1).clamp(max=SHARPEST**2 if self.towards_y else 0)  # (S sigma)^2
        return (torch.where(relative > 1e-4, relative, 0).sqrt() / sigma).to(level.q.dtype)


def conjugate_gradients(apply, b: Tensor, steps: int) -> Tensor:
    """An approximate solution of apply(x) = b for each row of b (B, ...) on its own."""

    def dot(u: Tensor, v: Tensor) -> Tensor:
        return (u * v).flatten(1).sum(1).clamp(min=torch.finfo(b.dtype).tiny).reshape(-1, *[1] * (b.ndim - 1))

    x, residual, direction = torch.zeros_like(b), b, b
    energy = dot(residual, residual)
    for _ in range(steps):
        image = apply(direction)
        step = energy / dot(direction, image)
        x, residual = x + step * direction, residual - step * image
        previous, energy = energy, dot(residual, residual)
        direction = residual + energy / previous * direction
    return x
