"""Image files to arrays (1, H, W, C) of their own integers, by Pillow or tifffile; anything doubtful is refused."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from snips.photos import tiff, webp

MAX_PIXELS = 64_000_000  # refuse larger images before they are decoded
FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP", "PPM")  # others need decoders that nobody tests here
JPEG_IN_TIFF = (6, 7)  # the old and the new kind of compression
WIDE = ("I", "I;16", "I;16L", "I;16B", "I;16N")  # modes with 16 bits, and 32 that may hold 16
FEW_BITS = {"L;2": 3, "L;4": 15}  # the highest level of grey PNGs whose pixels Pillow scales to 255
FROM_16_BITS = ("PNG", "PPM")  # formats whose 16 bits Pillow may hold as "I"; others say nothing of their white


@dataclass(frozen=True)
class Origin:
    """What the pixels alone do not tell."""

    alpha: bool = False  # the last channel is transparency
    lossy: bool = False
    notes: tuple[str, ...] = ()


def decode_file(path: Path) -> tuple[np.ndarray, Origin]:
    """The pixels of an image file, upright."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged files, which fail anyway, and of sizes, checked below
            if tiff.is_tiff(path) and (found := tiff.decode_tiff(path, MAX_PIXELS)) is not None:
                return found[0], Origin(alpha=found[1])
            with Image.open(path, formats=FORMATS) as opened:
                _check(opened)
                low = _low_bytes(path, opened)
                return decode(opened, low)
    except Image.DecompressionBombError:
        raise ValueError(f"{path} has far more than the {MAX_PIXELS:,} pixels that are read: crop it first") from None
    except (_Refused, tiff.UnreadableKind) as error:
        raise ValueError(f"{path} {error}") from None
    except UnidentifiedImageError as error:
        raise ValueError(_unidentified(path)) from error
    except Exception as error:  # decoders of damaged files fail in many ways
        reason = " ".join(str(error).replace(str(path), "it").split())[:200] or type(error).__name__
        raise ValueError(f"{path} cannot be read as an image ({reason}): is it damaged, or not an image?") from error


def _unidentified(path: Path) -> str:
    kind = tiff.kind_of(path) if tiff.is_tiff(path) else None
    if kind is None:
        return f"{path} cannot be read as an image (its format is not known): is it damaged, or not an image?"
    return f"{path} is a TIFF of a kind that is not read ({kind}): {tiff.ADVICE}"


class _Refused(ValueError):
    """A file that is whole, but not what is asked for."""


def check_size(width: int, height: int, subject: str = "") -> None:
    """Of a file, whose path will be put in front, or of what `subject` says."""
    if width * height > MAX_PIXELS:
        raise _Refused(f"{subject}has {width} x {height} pixels; at most {MAX_PIXELS:,} are read: crop it first")


def _check(image: Image.Image) -> None:
    check_size(*image.size)
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # cameras store a preview beside the photo as MPO
        raise _Refused(f"has {frames} frames or pages: save the one you mean as a PNG")


def decode_opened(image: Image.Image) -> tuple[np.ndarray, Origin]:
    """An image that somebody else opened: its current frame, and damage only shows now."""
    frames = getattr(image, "n_frames", 1) if image.format != "MPO" else 1
    try:
        values, origin = decode(image)
    except OSError as error:
        raise ValueError(f"the picture cannot be read ({error}): is its file damaged?") from error
    notes = (*origin.notes, f"of its {frames} frames the current one is taken") if frames > 1 else origin.notes
    return values, replace(origin, notes=notes)


def decode(image: Image.Image, low: Image.Image | None = None) -> tuple[np.ndarray, Origin]:
    """A Pillow image as an array (1, H, W, C) with C = 1 or 3 and alpha where it has that."""
    _read_without_mapping(image)
    lossy = _is_lossy(image)
    profile, raw, levels = image.info.get("icc_profile"), _raw_mode(image), _ppm_levels(image)
    upright = ImageOps.exif_transpose(image)
    if upright.mode in WIDE:
        values, transparent = _wide_grey(image, upright, raw)
        return values, Origin(transparent, lossy)
    if upright.mode == "F":
        return _grey(np.asarray(upright, dtype=np.float32)), Origin(lossy=lossy)
    transparent = ";16" in raw and upright.info.pop("transparency", None) is not None  # a colour of 16 bits
    converted, notes = _to_known_mode(upright, profile, raw)
    if image.format == "WEBP" and (grey := webp.as_grey(converted)) is not None:
        converted, notes = grey, (*notes, "its three channels are equal, as WebP stores grey: one is taken")
    values = _with_lower_bytes(np.asarray(converted), low)
    if low is None:
        notes = (*_lost_levels(raw, levels), *notes)
    has_alpha = converted.mode in ("LA", "RGBA")
    if transparent and low is not None:
        values, has_alpha = _with_transparent_colour(values, image), True
    elif transparent:
        notes = (*notes, "which of its colours is transparent is not read")
    return values, Origin(has_alpha, lossy, notes)


def _with_lower_bytes(values: np.ndarray, low: Image.Image | None) -> np.ndarray:
    """All 16 bits, where the lower 8 were read as a picture of their own, as (1, H, W, C)."""
    whole = values if low is None else values.astype(np.uint16) * 256 + np.asarray(low)
    return (whole[..., None] if whole.ndim == 2 else whole)[None]


def _lost_levels(raw: str, levels: int) -> tuple[str, ...]:
    """What is not read of a file with more than 8 bits."""
    if ";16" in raw:
        return ("of its 16 bits the upper 8 are read",)
    return (f"its {levels:,} levels are read as 256",) if levels > 256 else ()


def _is_lossy(image: Image.Image) -> bool:
    if image.format == "WEBP":
        return webp.is_lossy(getattr(image, "filename", ""))
    return image.format in ("JPEG", "MPO") or _tags(image).get(259) in JPEG_IN_TIFF


def _tags(image: Image.Image) -> Any:
    """Of a TIFF, by their numbers; none of others."""
    return getattr(image, "tag_v2", {})


def _wide_grey(image: Image.Image, upright: Image.Image, raw: str) -> tuple[np.ndarray, bool]:
    """Grey of 16 bits, or of integers whose white nobody knows, and whether its last channel is transparency."""
    values = np.asarray(upright)
    if upright.mode != "I" or image.format in FROM_16_BITS:
        values = values.astype(np.uint16)  # other integers stay, as only their owner knows which of them is white
    if raw == "I;12":  # which Pillow leaves at 0 to 4095
        values = (values / 4095 * 65535).round().astype(np.uint16)
    inverted = _tags(image).get(262) == 0  # white is 0; Pillow heeds that for 8 bits only
    values = _grey(65535 - values if inverted and values.dtype == np.uint16 else values)
    transparent = "transparency" in image.info and values.dtype == np.uint16
    return (_with_transparent_colour(values, image) if transparent else values), transparent


def _grey(values: np.ndarray) -> np.ndarray:
    return values[None, ..., None]


def _read_without_mapping(image: Image.Image) -> None:
    """Pillow maps an uncompressed TIFF into memory with its sides exchanged where it is to be turned: not so."""
    file = getattr(image, "fp", None)
    if image.format == "TIFF" and file is not None:
        opened: Any = image
        opened.load_read = file.read  # with a reader of its own, an image is not mapped


def _with_transparent_colour(values: np.ndarray, image: Image.Image) -> np.ndarray:
    """uint16 (1, H, W, C) with alpha as a further channel: a PNG may name one colour that is transparent."""
    seen = (values != np.asarray(image.info["transparency"])).any(-1, keepdims=True)
    return np.concatenate([values, seen.astype(np.uint16) * 65535], -1)


def _ppm_levels(image: Image.Image) -> int:
    """How many levels of each colour a PPM has; 0 for others."""
    tiles = getattr(image, "tile", None) if image.format == "PPM" else None
    arguments = tiles[0].args if tiles else ()
    return 1 + max((part for part in arguments if isinstance(part, int)), default=-1) if image.mode == "RGB" else 0


def _to_known_mode(image: Image.Image, profile: bytes | None, raw: str) -> tuple[Image.Image, tuple[str, ...]]:
    if image.mode == "CMYK":
        return _from_cmyk(image, profile)
    if raw == "LA;16B":  # which Pillow makes RGBA
        return image.convert("LA"), ()
    if image.mode in ("1", "L") and "transparency" in image.info:
        return _with_transparent_level(image, raw), ()
    if image.mode == "1":
        return image.convert("L"), ()
    if image.mode == "RGB" and "transparency" in image.info:
        return image.convert("RGBA"), ()
    if image.mode in ("L", "LA", "RGB", "RGBA"):
        return image, ()
    if image.mode in ("P", "PA", "La", "RGBa", "RGBX"):
        transparent = image.mode in ("PA", "La", "RGBa") or "transparency" in image.info
        return image.convert("LA" if image.mode == "La" else "RGBA" if transparent else "RGB"), ()
    return image.convert("RGB"), (f"colours are converted from {image.mode} to RGB",)


def _with_transparent_level(image: Image.Image, raw: str) -> Image.Image:
    """Grey with alpha: of few bits Pillow scales the pixels, but not (of one bit: not always) the transparent level."""
    grey, level = image.convert("L"), image.info["transparency"]
    grey.info["transparency"] = 255 * bool(level) if image.mode == "1" else level * 255 // FEW_BITS.get(raw, 255)
    return grey.convert("LA")


def _from_cmyk(image: Image.Image, profile: bytes | None) -> tuple[Image.Image, tuple[str, ...]]:
    """Ink to light: by the file's own profile, or by the plain formula, which is said."""
    if profile is not None:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            made = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if made is not None:
                return made, ("CMYK is converted to RGB by the colour profile in the file",)
        except (ImageCms.PyCMSError, OSError):
            pass
    return image.convert("RGB"), ("CMYK without a usable colour profile is converted to RGB by the plain formula",)


def _raw_mode(image: Image.Image) -> str:
    """How the first tile is stored, for example "RGB;16B"; empty for images that were not read from a file."""
    tiles = getattr(image, "tile", None)
    if not tiles:
        return ""
    arguments = tiles[0].args
    first = arguments if isinstance(arguments, str) else arguments[0] if arguments else ""
    return first if isinstance(first, str) else ""


def _low_bytes(path: Path, image: Image.Image) -> Image.Image | None:
    """The low bytes of 16-bit colours, of which Pillow keeps the high ones.

    With the order of the bytes exchanged it keeps the others: the same file is decoded once more, so, and upright.
    """
    raw = _raw_mode(image)
    kind, _, order = raw.partition(";")
    if kind not in ("RGB", "RGBA") or order not in SWAPPED or image.mode != kind:
        return None
    swapped = f"{kind};{SWAPPED[order]}"
    with Image.open(path, formats=FORMATS) as opened:
        second: Any = opened
        second.tile = [tile._replace(args=_with_raw_mode(tile.args, swapped)) for tile in second.tile]
        return ImageOps.exif_transpose(second)


SWAPPED = {"16B": "16L", "16L": "16B", "16N": "16B" if np.little_endian else "16L"}


def _with_raw_mode(arguments: Any, raw: str) -> Any:
    return raw if isinstance(arguments, str) else (raw, *arguments[1:])
