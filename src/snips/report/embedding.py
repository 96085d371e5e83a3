"""Pictures inside a page: as data URIs, so that one file holds everything."""

from __future__ import annotations

import base64
import io

from PIL import Image
from torch import Tensor

from snips.images import to_picture
from snips.report.grid import fitted

LARGEST = 1024  # pixels; a page shows larger pictures at this size
WEBP_SIDE = 16383  # pixels, the most that the format has room for
LOSSLESS = 512 * 512  # pixels; pictures up to this size are embedded without loss


def data_uri(picture: Image.Image, lossless: bool = False) -> str:
    """PNG, or WebP of high quality where PNG would make the page heavy and WebP can hold the picture."""
    buffer = io.BytesIO()
    small = picture.width * picture.height <= LOSSLESS
    kind = "png" if lossless or small or max(picture.size) > WEBP_SIDE else "webp"
    picture.save(buffer, format=kind, **({} if kind == "png" else {"quality": 92}))
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def shown(image: Tensor) -> Image.Image:
    """(C, H, W) as a picture that is at most LARGEST pixels wide and high."""
    return shrunk(to_picture(image))


def shrunk(picture: Image.Image, largest: int = LARGEST) -> Image.Image:
    size = fitted(picture.size, largest)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.BOX)
