"""What one visitor may ask of the machine, checked before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from snips.photos import tiff
from snips.photos.arrays import npz_bytes
from snips.photos.decoding import FORMATS
from snips.photos.photo import Photo, load_photo

BYTES_PER_PIXEL = 4 * 8  # of an array: four channels of float64
SIDE = 2048  # pixels that any picture may be long; the SVD of a blur takes some seconds then


@dataclass(frozen=True)
class Limits:
    """Bounds of the page; all of them are options of `snips web` or keep its sliders in range."""

    upload_bytes: int = 20 * 2**20
    pixels: int = 512 * 512  # of a picture, and of what is restored from it
    samples: int = 16
    calls: int = 200  # of the denoiser, for each sample
    jobs: int = 1  # restorations at once: each uses all cores that torch is given
    waiting: int = 8  # restorations in the queue

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1 and not (name == "waiting" and value == 0):
                raise ValueError(f"the limit {name} must be at least 1, but is {value}")

    @property
    def side(self) -> int:
        """The longest side of a picture: an SVD along it grows with its cube, however narrow the picture is."""
        return max(SIDE, 2 * math.isqrt(self.pixels))

    def describe_upload(self) -> str:
        return f"A picture, or numbers as .npy: up to {megabytes(self.upload_bytes)} and {self.pixels:,} pixels"


def load_upload(path: Path, limits: Limits) -> Photo:
    """An uploaded file as a photo, refused in one line that names the file but not its folder."""
    size = path.stat().st_size
    if size > limits.upload_bytes:
        raise ValueError(f"{path.name} has {megabytes(size)}; at most {megabytes(limits.upload_bytes)} are taken")
    try:
        _check_header(path, limits)
        photo = load_photo(path)
        check_pixels(path.name, photo.pixels.shape[-1], photo.pixels.shape[-2], limits)  # of an array, too
        return photo
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), path.name)) from error


def _check_header(path: Path, limits: Limits) -> None:
    """Before anything is decoded, so that a small file cannot ask for a lot of memory."""
    unpacked = npz_bytes(path)
    if unpacked > BYTES_PER_PIXEL * limits.pixels:
        raise ValueError(
            f"{path.name} would unpack to {megabytes(unpacked)}; at most {limits.pixels:,} pixels are restored here"
        )
    try:
        with Image.open(path, formats=FORMATS) as opened:
            width, height = opened.size
    except Image.DecompressionBombError as error:
        raise ValueError(f"{path.name} has far more than {limits.pixels:,} pixels: crop or shrink it first") from error
    except Exception:  # a TIFF that Pillow does not know; or not an image, or damaged: the loader says so
        size = tiff.size_of(path) if tiff.is_tiff(path) else None
        if size is None:
            return
        width, height = size
    check_pixels(path.name, width, height, limits)


def check_pixels(name: str, width: int, height: int, limits: Limits) -> None:
    if width * height > limits.pixels:
        raise ValueError(
            f"{name} has {width} x {height} pixels; at most {limits.pixels:,} are restored here: crop or shrink it "
            "first, or use `snips restore`"
        )
    if max(width, height) > limits.side:
        raise ValueError(
            f"{name} has {width} x {height} pixels; at most {limits.side:,} on a side are restored here: crop or "
            "shrink it first, or use `snips restore`"
        )


def megabytes(size: int) -> str:
    return f"{size / 2**20:.3g} MB"
