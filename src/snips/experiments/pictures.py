"""What grids of pictures of experiments have in addition: names of their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from snips.report.grid import GAP, HEADER


def with_row_names(grid: Image.Image, names: Sequence[str]) -> Image.Image:
    """A `picture_grid` with a name to the left of each row."""
    font = ImageFont.load_default()
    margin = math.ceil(max(font.getlength(name) for name in names)) + GAP
    canvas = Image.new("RGB", (margin + grid.width, grid.height), "white")
    canvas.paste(grid, (margin, 0))
    height, draw = (grid.height - HEADER) / len(names), ImageDraw.Draw(canvas)
    for row, name in enumerate(names):
        middle = HEADER + row * height + (height - GAP) / 2
        draw.text(((margin + GAP) / 2, middle), name, fill="black", anchor="mm", font=font)
    return canvas
