"""The law of a noisy image given y, one coordinate of the SVD basis at a time. Every sampler moves towards it.

The annealing noise n ~ N(0, sigma^2 I) is carved from the measurement noise z (section 3.1 of the paper), so that with
r = s sigma / sigma_0 the coordinate x_bar of x + n has, given y,

    r >= 1    mean y_bar / s                             variance sigma^2 (1 - r^-2)
    r <  1    mean D_bar + r^2 (y_bar / s - D_bar)       step size sigma^2 (1 - r^2)

where D_bar is the denoised image. Both are one formula in q = min(r^2, 1): mean (1 - q) D_bar + q y_bar / s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.streams import Chain


@dataclass(frozen=True)
class Level:
    """Everything about one noise level that does not depend on the image; broadcasts against x_bar."""

    sigma: float
    q: Tensor  # min(r^2, 1): how much of the coordinate y tells by itself
    pull: Tensor  # q y_bar / s, written without division by small s
    variance: Tensor  # A: the paper's step size, sigma^2 |1 - r^(+-2)|
    hidden: Tensor  # r >= 1: the annealing noise hides the coordinate, and it is known from y alone

    def mean(self, denoised_bar: Tensor) -> Tensor:
        """m = (1 - q) D_bar + q y_bar / s."""
        return torch.addcmul(self.pull, 1 - self.q, denoised_bar)


def believable_noise(problem: InverseProblem, largest: float) -> float:
    """Sigma_0, but no less than the rounding of y: to believe more than its digits would amplify that by 1 / s."""
    return max(problem.sigma_0, 4 * torch.finfo(problem.y.dtype).eps * largest)


class Coordinates:
    """The measurements of all chains in the SVD basis of H."""

    def __init__(self, problem: InverseProblem, chains: Sequence[Chain]) -> None:
        self.operator = problem.operator
        y_bar = self.operator.Ut(problem.y.detach())
        self.y_bar = y_bar[[chain.image - problem.first_image for chain in chains]]
        self.s = self.operator.singular_values.cpu().to(torch.float64)  # not every device has float64
        self.sigma_0 = believable_noise(problem, float(self.s.max()))
        spread = torch.where(self.s > 0, problem.sigma_0 / torch.where(self.s > 0, self.s, 1), 0)
        self.spread = spread.to(self.operator.singular_values)  # sigma_0 / s: the noise of y_bar / s

    def shown(self, sigma: float) -> bool:
        """Whether the noise is so small that it hides no coordinate."""
        return bool((self._r(sigma) < 1).all())

    def _ratio(self, sigma: float) -> float:
        return sigma / self.sigma_0 if self.sigma_0 > 0 else float("inf")

    def _r(self, sigma: float) -> Tensor:
        return torch.where(self.s > 0, self.s * self._ratio(sigma), 0)  # 0 times infinity only where H is 0

    def at(self, sigma: float) -> Level:
        """The conditional law at noise level sigma."""
        s, ratio, r = self.s, self._ratio(sigma), self._r(sigma)
        measured, hidden = s > 0, r >= 1
        q = torch.where(hidden, 1, r**2)
        gain = torch.where(hidden, 1 / torch.where(measured, s, 1), r * ratio)  # q / s
        gain = torch.where(measured, gain, 0)
        variance = sigma**2 * torch.where(hidden, 1 - r.clamp(min=1) ** -2, 1 - q)
        like = self.operator.singular_values
        return Level(sigma, q.to(like), gain.to(like) * self.y_bar, variance.to(like), hidden.to(like.device))

    def white(self, noise: Tensor) -> Tensor:
        """Noise drawn in pixels as coordinates: the same for every basis that LAPACK may choose, real or complex."""
        return self.operator.Vt(noise)
