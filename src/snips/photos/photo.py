"""Photos as people have them, files, PIL images, arrays or tensors, as pixels with 0 black and 1 white."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from snips.buffers import in_own_memory
from snips.photos import arrays, decoding

LOWEST, HIGHEST = -2.0, 3.0  # numbers in [0, 1] with a lot of noise still lie within; others have another scale
NARROWEST = 1e-20  # from black to white; numbers divided by less leave the range of float32
FULL_SCALE = {"bool": 1, "uint8": 255, "uint16": 65535}  # the integers that have an obvious white

ValueRange = tuple[float, float]  # what is black, what is white


@dataclass(frozen=True, eq=False)
class Photo:
    """Pixels, and what must not be lost or left unsaid on the way to them."""

    pixels: Tensor  # (B, C, H, W); B = 1 for a file; C = 1 grey, C = 3 colour, others for arrays
    alpha: Tensor | None = None  # (B, 1, H, W) in [0, 1]
    step: float = 0.0  # between neighbouring values: 1 / 255 for 8 bits, 0 for floating point
    lossy: bool = False  # a JPEG or lossy WebP: its noise was compressed with it
    notes: tuple[str, ...] = ()  # for people: what was done to the values


def load_photo(path: str | Path, value_range: ValueRange | None = None) -> Photo:
    """Read an image file, or the one array of a .npy or .npz file, as float32; B = 1."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no image file {path}")
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            photo = _from_array(arrays.load_npy(path), value_range)
        elif suffix == ".npz":
            photo = _from_array(only_array(path), value_range)
        else:
            photo = _from_values(*decoding.decode_file(path), value_range)
    except ValueError as error:
        raise error if str(path) in str(error) else ValueError(f"{path}: {error}") from error
    if len(photo.pixels) != 1:
        raise ValueError(f"{path} holds {len(photo.pixels)} images: give one at a time")
    return replace(photo, pixels=photo.pixels.float())


def as_photo(value: Any, value_range: ValueRange | None = None) -> Photo:
    """A photo from what Python users hold.

    A PIL image of any mode; an array (H, W), (H, W, C) or (C, H, W); a tensor (H, W) or (C, H, W); or a batch of them,
    (B, C, H, W). uint8 and uint16 are scaled to [0, 1], floating-point numbers are taken as they are.
    """
    if isinstance(value, Photo):
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(
            'a masked array is not read as it is: give value.filled(0), and operator=snips.make_operator("inpaint", '
            "image_shape, mask=...), whose mask is True where a pixel was seen"
        )
    if isinstance(value, Image.Image):
        return _from_values(*decoding.decode_opened(value), value_range)
    if isinstance(value, Tensor):
        _check_channels_first(tuple(value.shape))
        photo = _from_array(_numbers_of(value), value_range, channels_first=True)
        return replace(photo, pixels=photo.pixels.to(value.device))
    if isinstance(value, (np.ndarray, list, tuple)):
        return _from_array(np.asarray(value), value_range)
    files = ": open files with PIL.Image.open or snips.load_image" if isinstance(value, (str, Path)) else ""
    raise ValueError(f"expected a PIL image, an array or a tensor, not {type(value).__name__}{files}")


def _numbers_of(value: Tensor) -> np.ndarray:
    if value.layout != torch.strided or value.is_quantized or value.is_meta:
        kind = "a quantized" if value.is_quantized else "a meta" if value.is_meta else "a sparse"
        raise ValueError(
            f"{kind} tensor is no image: give a dense one of numbers, as from .dequantize() or .to_dense()"
        )
    values = value.detach().cpu()
    few_bits = values.dtype.is_floating_point and values.dtype.itemsize < 4  # NumPy has not all of them
    return (values.float() if few_bits else values).numpy()


def _check_channels_first(shape: tuple[int, ...]) -> None:
    if len(shape) in (3, 4) and shape[-3] > 4 >= shape[-1]:
        turn = "2, 0, 1" if len(shape) == 3 else "0, 3, 1, 2"
        raise ValueError(
            f"a tensor is (C, H, W) or (B, C, H, W), but this one has shape {shape}, as if its channels were last: "
            f"turn it with .permute({turn})"
        )


def only_array(path: Path) -> np.ndarray:
    """The array of an .npz file that holds no other."""
    stored = arrays.load_npz(path)
    if len(stored) != 1:
        raise ValueError(f"{path}: expected one array, found {', '.join(stored) or 'none'}: save it alone")
    return next(iter(stored.values()))


def _from_array(values: np.ndarray, value_range: ValueRange | None, channels_first: bool = False) -> Photo:
    """Sort the axes to (B, H, W, C), then scale."""
    if values.dtype.kind not in "buif" or values.size == 0:
        raise ValueError(f"an image needs real numbers, not {values.dtype} of shape {values.shape}")
    shape, notes = values.shape, ()
    if values.ndim in (1, 2):  # a list of numbers is an image of one row
        values = values.reshape(1, -1, shape[-1], 1)
    elif values.ndim == 3 and not channels_first and shape[-1] <= 4:
        if shape[0] <= 4 and shape[0] != shape[-1]:
            notes = (f"shape {shape} is read as (H, W, C), a picture of {shape[1]} x {shape[0]} pixels",)
        values = values[None]
    elif values.ndim == 3 and (channels_first or shape[0] <= 4):
        values = np.moveaxis(values, 0, -1)[None]
    elif values.ndim == 4 and (channels_first or shape[1] <= 4):
        values = np.moveaxis(values, 1, -1)
    else:
        raise ValueError(f"an array of shape {shape} is no image: expected (H, W), (H, W, C), (C, H, W), (B, C, H, W)")
    decoding.check_size(values.shape[2], values.shape[1], "the picture ")
    channels = values.shape[-1]
    # a tensor's channels are data, and so are two numbers for each pixel unless they are bytes as in a picture
    has_alpha = not channels_first and (channels == 4 or (channels == 2 and values.dtype in (np.uint8, np.uint16)))
    return _from_values(values, decoding.Origin(alpha=has_alpha, notes=notes), value_range)


def _from_values(values: np.ndarray, origin: decoding.Origin, value_range: ValueRange | None) -> Photo:
    """(B, H, W, C) of any number type -> a photo; the last channel may be alpha."""
    colours = values[..., :-1] if origin.alpha else values
    scaled, step, note = _scaled(colours, value_range)
    pixels = in_own_memory(torch.from_numpy(np.moveaxis(scaled, -1, 1)))
    alpha = _transparency(values[..., -1:], value_range) if origin.alpha else None
    notes = (*origin.notes, *([note] if note else []))
    return Photo(pixels.contiguous(), alpha, step, origin.lossy, notes)


def _transparency(values: np.ndarray, value_range: ValueRange | None) -> Tensor | None:
    """Alpha (B, 1, H, W) in a range of its own: that of its type, 0 to 1 for floating point; None where all is opaque.

    Signed integers have no range of transparency: they are taken to have the one of the colours.
    """
    full = 1.0
    if values.dtype.kind == "i" and value_range is not None:
        full = max(value_range)
    elif values.dtype.kind in "ui":
        full = np.iinfo(values.dtype).max
    alpha = in_own_memory(torch.from_numpy(np.moveaxis(values.astype(np.float64) / full, -1, 1).astype(np.float32)))
    if not bool(((alpha >= 0) & (alpha <= 1)).all()):
        raise ValueError("its last channel is no transparency: that lies between 0 and 1")
    return None if bool((alpha == 1).all()) else alpha


def _scaled(values: np.ndarray, value_range: ValueRange | None) -> tuple[np.ndarray, float, str]:
    """Values with 0 black and 1 white, their step, and a sentence where that is not obvious."""
    dtype = np.float64 if values.dtype == np.float64 else np.float32
    numbers = values.astype(dtype)
    if bad := int((~np.isfinite(numbers)).sum()):
        raise ValueError(f"it has NaN or Inf in {bad} places: set them to a number and hide them with a mask")
    if value_range is not None:
        black, white = value_range
        numbers = (numbers - black) / (white - black)
        integers = values.dtype.kind in "bui"
        said = f"{black:g} is black and {white:g} is white; sigma and results are fractions of that range"
        return numbers.astype(dtype), abs(1 / (white - black)) if integers else 0.0, said
    if values.dtype.name in FULL_SCALE:
        full = FULL_SCALE[values.dtype.name]
        return numbers / dtype(full), 1 / full, ""
    low, high = float(numbers.min()), float(numbers.max())
    integers = values.dtype.kind in "ui"
    if integers and low >= 0 and high <= 1:
        raise ValueError(f"it holds integers of {values.dtype}, whose white may be 1 or more: say {range_advice(0, 1)}")
    if integers or low < LOWEST or high > HIGHEST:
        raise ValueError(f"its values run from {low:g} to {high:g}, not from 0 to 1: say {range_advice(low, high)}")
    outside = low < 0 or high > 1
    said = f"values from {low:.3g} to {high:.3g} are taken as they are: 0 is black, 1 is white" if outside else ""
    return numbers, 0.0, said


def range_advice(low: float, high: float) -> str:
    guess = next((full for full in (1, 255, 1023, 4095, 16383, 65535) if low >= 0 and high <= full), high)
    return f"which are black and white, for example --range {min(low, 0):g},{guess:g} (value_range in Python)"


def checked_range(black: float, white: float) -> ValueRange:
    if not (np.isfinite([black, white]).all() and black != white):
        raise ValueError(f"the range needs two different numbers, black and white, not {black} and {white}")
    if abs(white - black) < NARROWEST or max(abs(black), abs(white)) > 1 / NARROWEST:
        raise ValueError(
            f"the range from {black} to {white} is beyond what pixels can hold: black and white may lie "
            f"{NARROWEST:g} apart at least, and {1 / NARROWEST:g} from 0 at most"
        )
    return float(black), float(white)


def enlarged_alpha(alpha: Tensor, height: int, width: int) -> Tensor:
    """The transparency (B, 1, h, w) at the size of the result."""
    if tuple(alpha.shape[-2:]) == (height, width):
        return alpha
    return torch.nn.functional.interpolate(alpha, size=(height, width), mode="bilinear", align_corners=False)


def grey_if_equal(pixels: Tensor, step: float) -> Tensor | None:
    """One channel where all three are equal up to what a JPEG changes: a grey picture that was saved as colour."""
    spread = float((pixels.amax(1) - pixels.amin(1)).max())
    return pixels.mean(1, keepdim=True) if spread <= 2.5 * max(step, 1e-6) else None
