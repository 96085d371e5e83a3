"""Training images in memory, drawn as random crops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from snips.images import central_part, luminance


@dataclass(frozen=True)
class ImageSet:
    """Images of any sizes, three channels, as one run of bytes."""

    pixels: Tensor  # (total,) uint8, each image in H, W, C order
    sizes: Tensor  # (N, 2) int64, height and width

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def starts(self) -> Tensor:
        """(N,): where in `pixels` each image begins."""
        lengths = 3 * self.sizes.prod(1)
        return torch.cumsum(lengths, 0) - lengths

    def image(self, index: int) -> Tensor:
        """Image number `index` as (3, H, W) uint8."""
        height, width = self.sizes[index].tolist()
        start = int(self.starts[index])
        return self.pixels[start : start + 3 * height * width].view(height, width, 3).permute(2, 0, 1)

    @staticmethod
    def join(sets: Sequence[ImageSet]) -> ImageSet:
        if len(sets) == 1:
            return sets[0]  # without a copy
        return ImageSet(torch.cat([s.pixels for s in sets]), torch.cat([s.sizes for s in sets]))


class Crops:
    """Random square crops, flipped or not, from an image set; larger images are drawn more often."""

    def __init__(self, images: ImageSet, crop: int) -> None:
        smallest = int(images.sizes.min())
        if smallest < crop:
            raise ValueError(f"an image is only {smallest} pixels wide or high; choose a crop of at most {smallest}")
        self.images, self.crop = images, crop
        area = images.sizes.prod(1)
        self.shares = torch.cumsum(area.double(), 0) / area.sum()

    def draw(self, count: int, channels: int, random: torch.Generator) -> Tensor:
        """`count` crops as (count, channels, crop, crop) in [0, 1]."""
        uniform = torch.rand(count, 4, generator=random, dtype=torch.float64)
        chosen = torch.searchsorted(self.shares, uniform[:, 0].contiguous(), right=True)
        chosen = chosen.clamp(max=len(self.images) - 1)
        crops = [self._cut(int(i), *u) for i, u in zip(chosen, uniform[:, 1:].tolist(), strict=True)]
        return to_float(torch.stack(crops), channels)

    def _cut(self, index: int, down: float, right: float, flip: float) -> Tensor:
        image = self.images.image(index)
        _, height, width = image.shape
        top, left = int(down * (height - self.crop + 1)), int(right * (width - self.crop + 1))
        cut = image[:, top : top + self.crop, left : left + self.crop]
        return cut.flip(-1) if flip < 0.5 else cut


def to_float(images: Tensor, channels: int) -> Tensor:
    """Bytes (B, 3, H, W) as numbers in [0, 1], all channels or their luminance."""
    scaled = images.float() / 255
    return scaled if channels == 3 else luminance(scaled)


def held_out_crops(images: ImageSet, crop: int, count: int, channels: int) -> Tensor:
    """The central crops of `count` images spread evenly over the set."""
    chosen = torch.linspace(0, len(images) - 1, min(count, len(images))).round().long().tolist()
    return to_float(torch.stack([central_part(images.image(i), crop, crop) for i in chosen]), channels)
