"""The transparent level of grey PNGs of 1 to 8 bits, which Pillow does not scale with the pixels."""

from __future__ import annotations

import pytest
import torch
from PIL import Image

from photo_files import png
from snips.photos.photo import as_photo, load_photo


def grey_png(bits: int, levels: list[int], transparent: int) -> bytes:
    """One row of levels; the last byte is filled up with zeros."""
    row = "".join(f"{level:0{bits}b}" for level in levels)
    row += "0" * (-len(row) % 8)
    data = bytes(int(row[i : i + 8], 2) for i in range(0, len(row), 8))
    return png(len(levels), 1, bits, 0, b"\0" + data, transparent.to_bytes(2, "big"))


@pytest.mark.parametrize(
    ("bits", "levels", "transparent"),
    [
        (1, [0, 1, 0, 1], 1),
        (1, [0, 1, 1, 1], 0),
        (2, [0, 1, 2, 3], 2),
        (4, [0, 10, 5, 15], 10),
        (8, [0, 10, 170, 2], 10),
    ],
)
def test_the_transparent_level_is_alpha(bits, levels, transparent, tmp_path):
    file = tmp_path / "photo.png"
    file.write_bytes(grey_png(bits, levels, transparent))
    for photo in (load_photo(file), as_photo(Image.open(file))):
        torch.testing.assert_close(photo.pixels[0, 0, 0].double(), torch.tensor(levels).double() / (2**bits - 1))
        assert photo.alpha is not None
        assert photo.alpha[0, 0, 0].tolist() == [float(level != transparent) for level in levels]
