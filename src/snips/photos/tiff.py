"""TIFFs that Pillow refuses or misreads, through tifffile: numbers of 32 bits, signed ones, separate planes.

What neither reads for sure is refused in words that say what to do; tags are named as in the TIFF 6.0 specification.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import tifffile

logging.getLogger("tifffile").addHandler(logging.NullHandler())  # what it says of damaged files, we say in one line

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # little and big endian, and both of files beyond 4 GB
UNSIGNED, SIGNED, FLOAT = 1, 2, 3  # SampleFormat
WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, YCBCR = 0, 1, 2, 6  # PhotometricInterpretation
UNCOMPRESSED = 1  # Compression
SEPARATE = 2  # PlanarConfiguration
ALPHA = 2  # ExtraSamples: transparency that the colours were not multiplied with
# Orientation -> whether to exchange rows and columns first, then which axes to flip.
UPRIGHT = {
    2: (False, [1]),
    3: (False, [0, 1]),
    4: (False, [0]),
    5: (True, []),
    6: (True, [1]),
    7: (True, [0, 1]),
    8: (True, [0]),
}
ADVICE = "save it as a TIFF or PNG of 16 bits, or as .npy"


class UnreadableKind(ValueError):
    """A whole file of a kind that is not read; the message goes on after its name."""


def is_tiff(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in MAGIC


def is_beyond_pillow(page: tifffile.TiffPage) -> bool:
    """Whether Pillow would refuse or misread the numbers."""
    wide, single = page.bitspersample > 8, page.samplesperpixel == 1
    if page.sampleformat == FLOAT and page.bitspersample == 32 and single:
        return page.photometric != BLACK_IS_ZERO
    grey_with_alpha = page.samplesperpixel == 2 and wide
    return page.sampleformat != UNSIGNED or page.bitspersample > 16 or grey_with_alpha or (wide and _has_planes(page))


def decode_tiff(path: Path, most_pixels: int) -> tuple[np.ndarray, bool] | None:
    """(1, H, W, C) as stored, upright, and whether the last channel is transparency; None where Pillow can read it."""
    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        if not isinstance(page, tifffile.TiffPage) or _area(page) > most_pixels:
            return None  # Pillow's size check says so
        if page.photometric == YCBCR and page.compression == UNCOMPRESSED:
            raise UnreadableKind("is a TIFF of a kind that is not read (uncompressed YCbCr): convert it to RGB")
        if not is_beyond_pillow(page):
            return None
        if len(file.pages) > 1:
            raise UnreadableKind(f"has {len(file.pages)} pages: save the one you mean as a file of its own")
        has_alpha = _check_channels(page)
        _check_complete(page, path)
        values = _pixels(page)
    if page.photometric == WHITE_IS_ZERO:
        values = np.iinfo(values.dtype).max - values
    return _upright(values, page)[None], has_alpha


def _area(page: tifffile.TiffPage) -> int:
    """In pixels. In a damaged file a side may be a list of numbers, and lists can be multiplied without end."""
    sides = page.imagewidth, page.imagelength
    if not all(isinstance(side, int) for side in sides):
        raise ValueError("its width or height is no number")
    return sides[0] * sides[1]


def size_of(path: Path) -> tuple[int, int] | None:
    """Width and height of the first page by its header; None where it is damaged."""
    try:
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            return int(page.imagewidth), int(page.imagelength)
    except Exception:
        return None


def kind_of(path: Path) -> str | None:
    """For people: what the first page holds; None where it is damaged."""
    try:
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            assert isinstance(page, tifffile.TiffPage)
            names = (getattr(tag, "name", str(tag)) for tag in (page.photometric, page.compression))
            return f"{page.samplesperpixel} x {describe(page)}, {', '.join(names)}"
    except Exception:  # whatever a damaged file does
        return None


def describe(page: tifffile.TiffPage) -> str:
    """For people: what one number of the picture is."""
    kind = {UNSIGNED: "integers", SIGNED: "signed integers", FLOAT: "floating-point numbers"}.get(
        page.sampleformat, "numbers"
    )
    return f"{page.bitspersample}-bit {kind}"


def _check_channels(page: tifffile.TiffPage) -> bool:
    """Refuse all but grey and RGB, with or without transparency; True where the last channel is that."""
    colours = {WHITE_IS_ZERO: 1, BLACK_IS_ZERO: 1, RGB: 3}.get(page.photometric)
    if colours is None:
        name = getattr(page.photometric, "name", str(page.photometric))
        raise UnreadableKind(f"holds {name} in {describe(page)}, which is not read: convert it to RGB, and {ADVICE}")
    if page.photometric == WHITE_IS_ZERO and page.sampleformat != UNSIGNED:
        raise UnreadableKind(
            f"holds {describe(page)} whose white is 0, of which black is not known: invert it, and {ADVICE}"
        )
    if page.sampleformat not in (UNSIGNED, SIGNED, FLOAT) or page.dtype is None:
        raise UnreadableKind(f"holds {describe(page)} that are neither integers nor floating-point numbers: {ADVICE}")
    extra = tuple(page.extrasamples)
    if page.samplesperpixel == colours + 1 and extra == (ALPHA,):
        return True
    if page.samplesperpixel != colours:
        raise UnreadableKind(
            f"has {page.samplesperpixel} channels of {describe(page)}, of which {colours} can be placed: remove the "
            f"others, or {ADVICE}"
        )
    return False


def _check_complete(page: tifffile.TiffPage, path: Path) -> None:
    """tifffile takes missing parts as black; here they are damage."""
    size = path.stat().st_size
    parts = list(zip(page.dataoffsets, page.databytecounts, strict=True))
    if not parts or any(start <= 0 or length <= 0 or start + length > size for start, length in parts):
        raise ValueError("parts of the picture are missing")


def _pixels(page: tifffile.TiffPage) -> np.ndarray:
    """(H, W, C), decoded; a compression that needs a further library is refused."""
    try:
        values = page.asarray()
    except (ImportError, KeyError, ValueError) as error:
        name = getattr(page.compression, "name", str(page.compression))
        if page.compression != UNCOMPRESSED and (
            "imagecodecs" in str(error) or isinstance(error, (ImportError, KeyError))
        ):
            raise UnreadableKind(
                f"holds {describe(page)} compressed by {name}, which is not read: save it uncompressed, or as .npy"
            ) from error
        raise
    if values.ndim == 2:
        return values[..., None]
    return np.moveaxis(values, 0, -1) if _has_planes(page) else values


def _has_planes(page: tifffile.TiffPage) -> bool:
    return page.planarconfig == SEPARATE and page.samplesperpixel > 1


def _upright(values: np.ndarray, page: tifffile.TiffPage) -> np.ndarray:
    tag = page.tags.get(274)
    turned, flipped = UPRIGHT.get(int(tag.value) if tag is not None else 1, (False, []))
    return np.flip(values.swapaxes(0, 1) if turned else values, flipped)
