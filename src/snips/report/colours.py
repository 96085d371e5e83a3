"""Numbers as colours: the std map, with a bar that says which colour is which number."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

# From calm to alarming; lightness rises evenly, so that the order survives in grey and for the colour-blind.
ANCHORS = np.array([(10, 12, 40), (62, 20, 112), (142, 34, 116), (214, 70, 82), (250, 140, 60), (252, 226, 140)])
BAR = 16  # pixels
MARGIN = 8


def std_plane(std: Tensor) -> np.ndarray:
    """One number for each pixel of std (C, H, W): the root mean square over channels."""
    return std.detach().double().square().mean(0).sqrt().cpu().numpy()


def round_up(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten, for the end of a scale."""
    if not value > 0:
        return 1e-3
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (1, 2, 5, 10) if value <= step * power * (1 + 1e-9)))


def colour_map(values: np.ndarray, top: float) -> Image.Image:
    """(H, W) in [0, top] -> colours; larger values take the last one."""
    position = np.clip(values / top, 0, 1) * (len(ANCHORS) - 1)
    channels = [np.interp(position, range(len(ANCHORS)), ANCHORS[:, c]) for c in range(3)]
    return Image.fromarray(np.stack(channels, -1).round().astype(np.uint8))


def scale_end(values: np.ndarray) -> float:
    """Where colours end: a few pixels may have more, so that they do not make all others dark."""
    return round_up(float(np.quantile(values, 0.999)))


def std_map(std: Tensor, side: int = 192) -> Image.Image:
    """The std (C, H, W) in colours, with its bar on the right; small ones are enlarged in whole steps up to `side`."""
    values = std_plane(std)
    top = scale_end(values)
    picture = colour_map(values, top)
    scale = max(1, side // max(picture.size))
    picture = picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    return with_bar(picture, top, has_more=bool(values.max() > top))


def with_bar(picture: Image.Image, top: float, has_more: bool) -> Image.Image:
    """Its labels grow with the picture: both are shrunk together where there is little room."""
    height = max(picture.height, 64)
    size = max(10, height // 14)
    font, bar_width = ImageFont.load_default(size), max(BAR, size)
    left, above = picture.width + MARGIN, max(MARGIN, size // 2)
    labels = {share: f"{share * top:.3g}" for share in (0, 0.5, 1)}
    labels[1] += " or more" if has_more else ""
    widest = max(font.getlength(text) for text in labels.values())
    canvas = Image.new("RGB", (left + bar_width + MARGIN + round(widest), height + 2 * above), "white")
    canvas.paste(picture, (0, above))
    bar = colour_map(np.linspace(top, 0, height)[:, None].repeat(bar_width, 1), top)
    canvas.paste(bar, (left, above))
    draw = ImageDraw.Draw(canvas)
    for share, text in labels.items():
        place = (left + bar_width + 4, above + (1 - share) * (height - 1))
        draw.text(place, text, fill="black", anchor="lm", font=font)
    return canvas
