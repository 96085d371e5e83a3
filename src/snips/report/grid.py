"""Pictures of results: the paper's comparison grid."""

from __future__ import annotations

import math

from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn import functional as F

from snips.images import to_picture
from snips.inverse_problem import InverseProblem
from snips.operators.pictures import framed, is_picture

STD_SCALE = 4  # standard deviations are shown four times brighter, as in the paper
GAP = 4
HEADER = 16  # pixels above the pictures, for their names
CLEAR = 96  # pixels; smaller pictures are enlarged by a whole number
LARGEST = 384  # pixels; larger pictures are shrunk in the grid, they are saved beside it


def degraded_view(problem: InverseProblem) -> Tensor:
    """y as pictures (B, C, H, W): itself where it is an image, else the least-norm image that fits it."""
    H = problem.operator
    return problem.y if is_picture(H) else framed(H.pinv(problem.y), H)


def comparison_grid(
    problem: InverseProblem, samples: Tensor, scale: int | None = None, shown: int | None = None
) -> Image.Image:
    """One row for each image: original (where known), degraded, the samples (or the first few), mean, and std x 4.

    One sample has no std.
    """
    return picture_grid(comparison_columns(problem, samples, shown), scale)


def comparison_columns(problem: InverseProblem, samples: Tensor, shown: int | None = None) -> list[tuple[str, Tensor]]:
    """The columns of `comparison_grid`, by name."""
    K, samples = len(samples), framed(samples, problem.operator)
    clamped = samples.clamp(0, 1)
    columns = [("degraded", degraded_view(problem)), *((f"sample {k + 1}", clamped[k]) for k in range(K)[:shown])]
    columns.append(("mean", clamped.mean(0)))
    if K > 1:
        columns.append((f"std x {STD_SCALE}", STD_SCALE * samples.std(0)))
    return columns if problem.truth is None else [("original", framed(problem.truth, problem.operator)), *columns]


def picture_grid(columns: list[tuple[str, Tensor]], scale: int | None = None) -> Image.Image:
    """Named columns of pictures (B, C, h, w), one row for each b; all are shown in the largest size among them."""
    height, width = (max(images.shape[axis] for _, images in columns) for axis in (-2, -1))
    scale = scale or math.ceil(CLEAR / max(height, width))
    size = (height * scale, width * scale)
    tiles = [[_tile(images[b], size) for _, images in columns] for b in range(len(columns[0][1]))]
    return _assemble(tiles, [name for name, _ in columns])


def _tile(image: Tensor, size: tuple[int, int]) -> Image.Image:
    """Enlarged without smoothing, so that pixels stay visible; a low-resolution y fills the same space."""
    shown = fitted(size, LARGEST)
    mode = "area" if shown[0] < image.shape[-2] else "nearest-exact"
    return to_picture(F.interpolate(image[None].float(), size=shown, mode=mode)[0])


def fitted(size: tuple[int, int], largest: int) -> tuple[int, int]:
    """A size of the same aspect whose sides do not exceed `largest`."""
    shrink = min(1.0, largest / max(size))
    return max(1, round(size[0] * shrink)), max(1, round(size[1] * shrink))


def _assemble(tiles: list[list[Image.Image]], names: list[str]) -> Image.Image:
    font = ImageFont.load_default()
    labels = [math.ceil(font.getlength(name)) for name in names]  # narrow pictures still have names that can be read
    columns = zip(labels, *tiles, strict=True)
    widths = [max(label, *(tile.width for tile in column)) for label, *column in columns]
    height = max(tile.height for row in tiles for tile in row)
    canvas = Image.new("RGB", (sum(widths) + GAP * (len(widths) + 1), HEADER + (height + GAP) * len(tiles)), "white")
    draw = ImageDraw.Draw(canvas)
    left = GAP
    for column, (name, width) in enumerate(zip(names, widths, strict=True)):
        draw.text((left + width / 2, HEADER / 2), name, fill="black", anchor="mm", font=font)
        for row, tile_row in enumerate(tiles):
            tile = tile_row[column].convert("RGB")
            canvas.paste(tile, (left + (width - tile.width) // 2, HEADER + row * (height + GAP)))
        left += width + GAP
    return canvas
