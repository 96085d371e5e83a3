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
from snips.operators.transforms import dct2, idct2
from snips.priors.stationary import NATURAL_COLOURS
from snips.samplers.conditional import Coordinates, Level
from snips.solvers import Apply, conjugate_gradients, largest_ratio
from snips.streams import Streams

STEPS = 3  # of conjugate gradients: levels below make up for what is missing
LAST_STEPS = 30  # of those for the last draw, which nothing follows
SHARPEST = 30.0  # S sigma is limited to this: a better known coordinate moves D no further
POWER = 3e-4  # of the cosine coefficients of a photograph's quiet parts, POWER / f^2 with f in cycles per pixel
BRIGHTNESS = 0.05  # the variance of the mean of all pixels
SUREST = 0.05  # sigma_0 / s, at the least, in the search for what y leaves open: that is more than this anyway
RATIO_STEPS = 24  # of that search
COUNT = 4.0  # the model itself counts as much as this many coefficients of an octave


class Photographs:
    """N(1/2, C): power falls with the square of the frequency in the cosine basis, and colours move together."""

    def __init__(self, operator: LinearOperator) -> None:
        channels, height, width = operator.image_shape
        like = operator.like
        vertical, horizontal = torch.arange(height) / (2 * height), torch.arange(width) / (2 * width)
        f2 = vertical[:, None] ** 2 + horizontal**2
        power = torch.where(f2 > 0, POWER / f2.clamp(min=1e-12), BRIGHTNESS * height * width)
        colours = torch.tensor(NATURAL_COLOURS) if channels == 3 else torch.eye(channels)
        variances, rotation = torch.linalg.eigh(colours.double())
        self.rotation = rotation.to(like)  # (C, C)
        self.variances = (variances[:, None, None] * power).to(like)  # (C, H, W)
        lowest = f2[f2 > 0].min() if f2.numel() > 1 else 1.0
        octaves = torch.where(f2 > 0, 1 + (f2 / lowest).clamp(min=1).log2().div(2).floor(), 0)
        self.octaves = octaves.long().to(like.device)  # (H, W), 0 is the brightness
        self.octave_count = int(octaves.max()) + 1

    def cosines(self, x: Tensor) -> Tensor:
        """An image (B, C, H, W) in the basis where C is diagonal."""
        return _turned(self.rotation.T, dct2(x))

    def image(self, cosines: Tensor) -> Tensor:
        """The inverse of `cosines`."""
        return idct2(_turned(self.rotation, cosines))

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

    def open_spread(self, told: Apply, weight: float) -> float:
        """The largest standard deviation that y leaves open: that of (C^-1 + P)^-1, with P what y tells.

        With x = C^1/2 u it is the root of the largest |x|^2 / (|u|^2 + x^T P x).

        Args:
            told: P x, the precision of y; where y is very sure, less will do, see `SUREST`.
            weight: the mean of P's eigenvalues.
        """
        root = self.variances.sqrt()[None]
        random = torch.randn(root.shape, generator=torch.Generator().manual_seed(0)).to(root)
        ratio = largest_ratio(
            lambda u: root**2 * u,
            lambda u: u + root * self.cosines(told(self.image(root * u))),
            lambda u: u / (1 + weight * root**2),
            root * random,
            steps=RATIO_STEPS,
        )
        return ratio**0.5


def _turned(rotation: Tensor, x: Tensor) -> Tensor:
    return x if len(rotation) == 1 else (rotation @ x.flatten(2)).view_as(x)


def spread_given_noisy(variances: Tensor, sigma: float) -> Tensor:
    """C^1/2 of each cosine, where C^-1 = (the model's covariance)^-1 + sigma^-2."""
    return (variances * sigma**2 / (variances + sigma**2)).sqrt()


class Guide:
    """What a noisy image of one level and y together tell of x, under the model; in the SVD basis."""

    def __init__(self, coordinates: Coordinates, model: Photographs, level: Level, towards_y: bool = True) -> None:
        self.operator, self.model, self.level = coordinates.operator, model, level
        self.sharpness = _sharpness(coordinates, level) if towards_y else torch.zeros_like(level.q)
        self.hides = bool(self.sharpness.any())

    def mean(self, x: Tensor, denoised: Tensor, variances: Tensor | None = None) -> Tensor:
        """D_bar, moved to what y tells of the hidden coordinates; `variances` of the model as fitted, or given."""
        denoised_bar = self.operator.Vt(denoised)
        if not self.hides:
            return denoised_bar
        variances = self.model.fitted(x, denoised, self.level.sigma) if variances is None else variances
        return self._conditioned(
            spread_given_noisy(variances, self.level.sigma), denoised_bar, self._look(self.operator.Vt(x)), STEPS
        )

    def draw(self, x: Tensor, denoised: Tensor, streams: Streams, last: bool = False) -> Tensor:
        """One x_bar of N(D, C) given the look: a draw of N(D, C) that is moved to the look with other noise."""
        H, sigma = self.operator, self.level.sigma
        root = spread_given_noisy(self.model.fitted(x, denoised, sigma), sigma)
        drawn_bar = H.Vt(denoised + self.model.image(root * streams.normal(x)))
        if not self.hides:
            return drawn_bar
        look = self._look(H.Vt(x)) + (self.sharpness > 0) * H.Vt(streams.normal(x))
        return self._conditioned(root, drawn_bar, look, LAST_STEPS if last else STEPS)

    def _look(self, x_bar: Tensor) -> Tensor:
        """S y_e; where coordinates are hidden, y_bar / s is level.pull."""
        S, pull = self.sharpness, self.level.pull
        offset = (x_bar - pull) / (torch.where(S > 0, S, 1) * self.level.sigma**2)
        return torch.where(S > 0, S * pull - offset, 0)

    def _conditioned(self, root: Tensor, centre_bar: Tensor, look: Tensor, steps: int) -> Tensor:
        """centre + R u with (I + R^T S^2 R) u = R^T S (look - S centre), where R R^T = V^T C V."""
        H, S = self.operator, self.sharpness

        def R(u: Tensor) -> Tensor:
            return H.Vt(self.model.image(root * u))

        def Rt(x_bar: Tensor) -> Tensor:  # real also where V is not
            return root * self.model.cosines(H.V(x_bar))

        wanted = Rt(S * (look - S * centre_bar))
        return centre_bar + R(conjugate_gradients(lambda u: u + Rt(S**2 * R(u)), wanted, steps=steps))


def _sharpness(coordinates: Coordinates, level: Level) -> Tensor:
    """S >= 0, broadcasts against x_bar; 0 where nothing is hidden."""
    s, sigma, sigma_0 = coordinates.s, level.sigma, coordinates.sigma_0
    r2 = (s * sigma / sigma_0) ** 2 if sigma_0 > 0 else torch.where(s > 0, float("inf"), 0.0)
    relative = (r2 - 1).clamp(max=SHARPEST**2)  # (S sigma)^2
    return (torch.where(relative > 1e-4, relative, 0).sqrt() / sigma).to(level.q)
