"""What y tells about unmeasured directions while the annealing noise still hides the measured ones.

Where s sigma > sigma_0 a noisy image knows less of x than y does: it holds y_bar / s with noise of variance sigma^2
instead of (sigma_0 / s)^2. The rest of what y tells is worth one more look at x_bar, of precision

    S^2 = s^2 / sigma_0^2 - 1 / sigma^2      and value      y_e = y_bar / s - (x_bar - y_bar / s) / (S sigma)^2.

If x given the noisy image were N(D, C), that look would move the denoised image D by the least delta in

    delta^T C^-1 delta + |S (y_e - D - delta)|^2.

C is that of a Gaussian model of photographs, so the move is approximate. It fades by itself, S -> 0 as s sigma comes
down to sigma_0, and the levels below, where nothing is hidden, target the exact posterior.
"""

from __future__ import annotations

import torch
from torch import Tensor

from snips.operators.base import LinearOperator
from snips.operators.transforms import dct2, idct2
from snips.priors.stationary import NATURAL_COLOURS
from snips.samplers.conditional import Coordinates, Level
from snips.solvers import conjugate_gradients
from snips.streams import Streams

STEPS = 3  # of conjugate gradients; more change nothing
SHARPEST = 30.0  # S sigma is limited to this: a better known coordinate moves D no further
POWER = 3e-4  # of the cosine coefficients of a photograph's quiet parts, POWER / f^2 with f in cycles per pixel
BRIGHTNESS = 0.05  # the variance of the mean of all pixels


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

    def cosines(self, x: Tensor) -> Tensor:
        """An image (B, C, H, W) in the basis where C is diagonal."""
        return self._turned(self.rotation.T, dct2(x))

    def image(self, cosines: Tensor) -> Tensor:
        """The inverse of `cosines`."""
        return idct2(self._turned(self.rotation, cosines))

    def _turned(self, rotation: Tensor, x: Tensor) -> Tensor:
        return x if len(rotation) == 1 else (rotation @ x.flatten(2)).view_as(x)

    def hidden_spread(self, operator: LinearOperator, s: Tensor, sigma_0: float, steps: int = 20) -> float:
        """The largest standard deviation along directions that y tells little of, by power iteration.

        L = the largest eigenvalue of C^1/2 V diag(sigma_0^2 / (sigma_0^2 + s^2 L)) V^T C^1/2.
        """
        root, largest = self.variances.sqrt(), float(self.variances.max())
        x = torch.randn(1, *operator.image_shape, generator=torch.Generator().manual_seed(0)).to(root)
        for _ in range(steps):
            x = x / x.norm().clamp(min=1e-30)
            weight = torch.where(s > 0, sigma_0**2 / (sigma_0**2 + s**2 * largest).clamp(min=1e-300), 1).to(root)
            x = root * self.cosines(operator.V(weight * operator.Vt(self.image(root * x))))
            largest = float(x.norm())
        return largest**0.5


class Guide:
    """What a noisy image of one noise level and y together tell of x, under the model; in the SVD basis."""

    def __init__(self, coordinates: Coordinates, model: Photographs, level: Level, towards_y: bool = True) -> None:
        self.operator, self.model, self.level = coordinates.operator, model, level
        self.sharpness = _sharpness(coordinates, level) if towards_y else torch.zeros_like(level.q[..., :1])
        self.hides = bool(self.sharpness.any())
        variances = model.variances
        self.root = (variances * level.sigma**2 / (variances + level.sigma**2)).sqrt()  # C^1/2 of each cosine

    def mean(self, denoised_bar: Tensor, x: Tensor) -> Tensor:
        """The denoised image, moved to what y tells of the hidden coordinates."""
        return self._conditioned(denoised_bar, self._look(self.operator.Vt(x))) if self.hides else denoised_bar

    def draw(self, denoised_bar: Tensor, x_bar: Tensor, streams: Streams) -> Tensor:
        """One x of N(D, C) given the look: a draw of N(D, C) that is moved to the look with other noise."""
        H, like = self.operator, x_bar.real.new_empty((len(x_bar), *self.operator.image_shape))
        drawn_bar = denoised_bar + H.Vt(self.model.image(self.root * streams.normal(like)))
        if not self.hides:
            return drawn_bar
        look = self._look(x_bar) + (self.sharpness > 0) * H.Vt(streams.normal(like))
        return self._conditioned(drawn_bar, look)

    def _look(self, x_bar: Tensor) -> Tensor:
        """S y_e; where coordinates are hidden, y_bar / s is level.pull."""
        S, pull = self.sharpness, self.level.pull
        offset = (x_bar - pull) / (torch.where(S > 0, S, 1) * self.level.sigma**2)
        return torch.where(S > 0, S * pull - offset, 0)

    def _conditioned(self, centre_bar: Tensor, look: Tensor) -> Tensor:
        """centre + delta with delta = V^T R u and (I + R^T V S^2 V^T R) u = R^T V S (look - S centre), R R^T = C."""
        H, S = self.operator, self.sharpness

        def from_cosines(u: Tensor) -> Tensor:
            return H.Vt(self.model.image(self.root * u))

        def to_cosines(x_bar: Tensor) -> Tensor:  # real also where V is not
            return self.root * self.model.cosines(H.V(x_bar))

        wanted = to_cosines(S * (look - S * centre_bar))
        u = conjugate_gradients(lambda u: u + to_cosines(S**2 * from_cosines(u)), wanted, steps=STEPS)
        return centre_bar + from_cosines(u)


def _sharpness(coordinates: Coordinates, level: Level) -> Tensor:
    """S >= 0, broadcasts against x_bar; 0 where nothing is hidden."""
    s, sigma, sigma_0 = coordinates.s, level.sigma, coordinates.sigma_0
    r2 = (s * sigma / sigma_0) ** 2 if sigma_0 > 0 else torch.where(s > 0, float("inf"), 0.0)
    relative = (r2 - 1).clamp(max=SHARPEST**2)  # (S sigma)^2
    return (torch.where(relative > 1e-4, relative, 0).sqrt() / sigma).to(level.q.dtype)
