"""When an image goes through the denoiser in tiles, of which size, and what that changes.

Only the calls of the denoiser are cut, never the image that is sampled: all tiles of a call see one state, and each
chain still draws one image from one posterior.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.priors.base import Prior
from snips.priors.tiled import MARGIN, SIDES, TiledPrior, attends

LEVELS = (0.05, 0.3, 2.0)  # sigma, where the deviation is measured
PROBE_SIDE, PROBE = 128, 256  # pixels of the tiles and of the crop it is measured with: at least 2 x 2 tiles


class Tiles(NamedTuple):
    """A prior that is called on tiles, and how far that is from calling it on the whole image."""

    prior: TiledPrior
    deviations: dict[float, float]  # sigma -> root mean square, in pixels of [0, 1]

    def __str__(self) -> str:
        side, margin, worst = self.prior.side, self.prior.margin, max(self.deviations.values())
        return (
            f"the denoiser sees tiles of {side} pixels with margins of {margin}; on a crop, tiles change what it "
            f"returns by {worst:.1g} (root mean square, for pixels in [0, 1]){self._doubt()}"
        )

    def _doubt(self) -> str:
        """A crop tells less than usual of a network that sees all of the image."""
        return "; its attention sees one tile at a time, so large images may change more" if attends(self.prior) else ""

    def record(self) -> dict[str, Any]:
        """For result.json."""
        deviations = {f"{sigma:g}": value for sigma, value in self.deviations.items()}
        return {"side": self.prior.side, "margin": self.prior.margin, "deviation": deviations}


def tiles_for(problem: InverseProblem, prior: Prior, side: int | None, most_pixels: int | None) -> Tiles | None:
    """Tiles of the wanted side, or ones that fit where the image has more than `most_pixels`; None: the whole image."""
    height, width = problem.operator.image_shape[1:]
    if side is None:
        if most_pixels is None or height * width <= most_pixels or hasattr(prior, "image_shape"):
            return None
        side = fitting_side(most_pixels)
    if max(height, width) <= side + MARGIN:
        return None
    tiled = TiledPrior(prior, side)
    return Tiles(tiled, deviations(problem, tiled))


def fitting_side(most_pixels: int) -> int:
    """The largest tile that fits with its margins; the smallest there is where none does."""
    return next((side for side in SIDES if (side + 2 * MARGIN) ** 2 <= most_pixels), SIDES[-1])


def deviations(problem: InverseProblem, tiled: TiledPrior) -> dict[float, float]:
    """Measured on a noisy crop of what the first measurement shows, with tiles that are small enough for it.

    Smaller tiles have more seams for each pixel, and the same margins: the tiles in use deviate no more, unless the
    network has attention.
    """
    crop = _shown(problem[0])
    probe = TiledPrior(tiled.prior, min(tiled.side, PROBE_SIDE), tiled.margin).to(crop.device)
    noise = torch.randn(crop.shape, generator=torch.Generator().manual_seed(0), dtype=crop.dtype)
    return {sigma: probe.deviation(crop + sigma * noise, sigma) for sigma in LEVELS}


def _shown(problem: InverseProblem) -> Tensor:
    """The middle of the simplest image that explains the measurement, (1, C, up to PROBE, up to PROBE)."""
    operator = problem.operator
    image = (operator.pinv if operator.has_svd else operator.adjoint)(problem.y).clamp(0, 1)
    top, left = (max(0, (length - PROBE) // 2) for length in image.shape[-2:])
    return image[..., top : top + PROBE, left : left + PROBE]
