"""A prior that sees a large image in overlapping tiles, for images whose denoiser call does not fit into memory.

Of our own network only what it adds to its linear filter is tiled. The filter needs the whole image, but hardly any
memory; the rest has a limited field of view, so tiles with a wide enough margin change nothing but rounding. With
attention, as in the bundled `faces`, it sees all of an image, and of tiles each by itself: `attends` tells. A foreign
denoiser is tiled as a whole: what it knows of an image from far away, large noise above all, is lost then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from snips.priors.base import Prior, denoised_copy
from snips.priors.blocks import Attention
from snips.priors.precision import LowPrecision
from snips.priors.unet import UNet

SIDES, MARGIN = (512, 256, 128), 64  # pixels of a tile, and beyond it on each side
GRID = 32  # tiles begin at multiples of this, so that networks with strides see the pixels in their usual places


class TiledPrior(Prior):
    """Another prior, called on tiles of `side` pixels with `margin` more around each; smaller images go as they are."""

    def __init__(self, prior: Prior, side: int = SIDES[0], margin: int = MARGIN) -> None:
        super().__init__()
        check_sides(side, margin)
        if hasattr(prior, "image_shape"):
            raise ValueError(f"the prior {prior.name or type(prior).__name__} is of one size of images: not for tiles")
        self.prior, self.side, self.margin, self.mirrored = prior, side, margin, prior.mirrored
        self.name = f"{prior.name or type(prior).__name__}, tiles of {side} + 2 x {margin}"

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        prior, tiled = self.prior, partial(in_tiles, side=self.side, margin=self.margin)
        if not isinstance(prior, UNet | LowPrecision):
            return tiled(lambda part: denoised_copy(prior, part, sigma), x)

        def residual(white: Tensor, linear: Tensor, level: Tensor) -> Tensor:
            return tiled(lambda a, b: prior.residual(a, b, level), white, linear)

        return prior.estimate(x, sigma, residual)[0].to(x.dtype)

    def deviation(self, x: Tensor, sigma: float) -> float:
        """The root mean square difference to the untiled call at x (B, C, H, W), in units of pixels in [0, 1]."""
        with torch.no_grad():
            return float((self.denoise(x, sigma) - self.prior.denoise(x, sigma)).square().mean().sqrt())


def attends(prior: Prior) -> bool:
    """Whether it is a network of ours that sees all of an image at once."""
    return any(isinstance(part, Attention) for part in prior.modules())


def tile_side(prior: Prior) -> int | None:
    """Of the tiles that the prior sees; None: the whole image."""
    return prior.side if isinstance(prior, TiledPrior) else None


def check_sides(side: int, margin: int = MARGIN) -> None:
    if side < GRID or margin < 0 or side % GRID or margin % GRID:
        raise ValueError(f"tiles and their margins are multiples of {GRID} pixels, not {side} and {margin}")


Place = tuple[Any, slice, slice]  # (..., rows, columns)


def in_tiles(function: Callable[..., Tensor], *images: Tensor, side: int, margin: int) -> Tensor:
    """function(*images) for images (B, C, H, W) of one size, computed tile by tile."""
    height, width = images[0].shape[-2:]
    if height <= side + margin and width <= side + margin:
        return function(*images)
    out = torch.empty_like(images[-1])
    for inner, outer, within in _tiles(height, width, side, margin):
        out[inner] = function(*(image[outer] for image in images))[within]
    return out


def _tiles(height: int, width: int, side: int, margin: int) -> Iterator[tuple[Place, Place, Place]]:
    """For each tile its place in the image, that with the margin, and its place within the latter."""
    for rows in _spans(height, side, margin):
        for columns in _spans(width, side, margin):
            inner, outer, within = ((..., down, across) for down, across in zip(rows, columns, strict=True))
            yield inner, outer, within


def _spans(length: int, side: int, margin: int) -> Iterator[tuple[slice, slice, slice]]:
    for start in range(0, length, side):
        stop, before = min(start + side, length), max(0, start - margin)
        yield slice(start, stop), slice(before, min(stop + margin, length)), slice(start - before, stop - before)
