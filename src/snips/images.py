"""Image files to tensors (1, C, H, W) in [0, 1], and back."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from snips.operators.separable import LUMA
from snips.photos.photo import load_photo


def load_image(path: str | Path) -> Tensor:
    """Read an image file as (1, C, H, W) float32 in [0, 1]: C = 1 for grey images, 3 for colour, without alpha."""
    return load_photo(path).pixels.float()


def to_picture(image: Tensor) -> Image.Image:
    """(C, H, W) -> an 8-bit picture, clamped to [0, 1]; channels side by side unless there are 1 or 3."""
    values = side_by_side(image.detach().float().cpu().clamp(0, 1))
    values = (values * 255).round().to(torch.uint8).numpy()
    return Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))


def side_by_side(image: Tensor) -> Tensor:
    """(C, H, W) -> (1, H, C W), one channel beside the other, unless there are 1 or 3, which make a picture."""
    return image if len(image) in (1, 3) else torch.cat(list(image), dim=1)[None]


def luminance(images: Tensor) -> Tensor:
    """Y of RGB images (B, 3, ...) -> (B, 1, ...)."""
    return torch.einsum("c,bc...->b...", images.new_tensor(LUMA), images)[:, None]


def example_image() -> Tensor:
    """The picture that comes with the package, (1, 3, 64, 64)."""
    return load_image(Path(__file__).parent / "assets" / "example.png")


def centre_crop(image: Tensor, multiple: int) -> Tensor:
    """Crop (..., H, W) around its centre to sides that divide by `multiple`."""
    height, width = (n - n % multiple for n in image.shape[-2:])
    return central_part(image, height, width)


def central_part(image: Tensor, height: int, width: int) -> Tensor:
    """(..., H, W) -> (..., height, width) around its centre."""
    top, left = (image.shape[-2] - height) // 2, (image.shape[-1] - width) // 2
    return image[..., top : top + height, left : left + width]
