"""Image files to tensors (1, C, H, W) in [0, 1], and back."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

MAX_PIXELS = 64_000_000  # refuse larger images before they are decoded


def load_image(path: str | Path) -> Tensor:
    """Read an image file as (1, C, H, W) float32 in [0, 1]: C = 1 for grey images, 3 for colour."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no image file {path}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged files, which fail anyway, and of sizes, checked below
            with Image.open(path) as opened:
                _check_size(path, opened.size)
                upright = ImageOps.exif_transpose(opened)
                return _to_tensor(upright)
    except Exception as error:  # decoders of damaged files fail in many ways
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} cannot be read as an image ({error}): is it damaged, or not an image?") from error


def _check_size(path: Path, size: tuple[int, int]) -> None:
    if size[0] * size[1] > MAX_PIXELS:
        raise ValueError(f"{path} has {size[0]} x {size[1]} pixels; at most {MAX_PIXELS:,} are read: crop it first")


def _to_tensor(image: Image.Image) -> Tensor:
    """Grey stays one channel, 16 bits keep their depth, everything else becomes RGB."""
    if image.mode in ("I;16", "I;16L", "I;16B", "I", "F"):
        values = np.asarray(image, dtype=np.float32) / (1 if image.mode == "F" else 65535)
        if not (values.min() >= 0 and values.max() <= 1):
            raise ValueError("its values are not 8 or 16 bits, nor numbers from 0 to 1")
    else:
        image = image if image.mode in ("L", "RGB") else image.convert("L" if image.mode in ("1", "LA") else "RGB")
        values = np.asarray(image, dtype=np.float32) / 255
    values = values[..., None] if values.ndim == 2 else values
    return torch.from_numpy(values.copy()).permute(2, 0, 1)[None].contiguous()


def to_picture(image: Tensor) -> Image.Image:
    """(C, H, W) -> an 8-bit picture, clamped to [0, 1]; channels side by side unless there are 1 or 3."""
    values = image.detach().float().cpu().clamp(0, 1)
    if len(values) not in (1, 3):
        values = torch.cat(list(values), dim=1)[None]
    values = (values * 255).round().to(torch.uint8).numpy()
    return Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))


def example_image() -> Tensor:
    """The picture that comes with the package, (1, 3, 64, 64)."""
    return load_image(Path(__file__).parent / "assets" / "example.png")


def centre_crop(image: Tensor, multiple: int) -> Tensor:
    """Crop (..., H, W) around its centre to sides that divide by `multiple`."""
    height, width = (n - n % multiple for n in image.shape[-2:])
    top, left = (image.shape[-2] - height) // 2, (image.shape[-1] - width) // 2
    return image[..., top : top + height, left : left + width]
