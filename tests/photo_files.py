"""Image files of many kinds for the tests of the loader."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image


def png(width: int, height: int, bits: int, kind: int, data: bytes) -> bytes:
    """A PNG with these bytes as its pixels, be they enough or not."""
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(data)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)


def png16(values: np.ndarray) -> bytes:
    """A PNG of 16 bits from (H, W, C) with C = 1 to 4, which Pillow cannot write."""
    height, width, channels = values.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return png(width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], rows)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def random_pixels(*shape: int, dtype=np.uint8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def encoded(kind: str) -> bytes:
    """16 x 16 random pixels in a format of Pillow, as a 16-bit PNG, or as .npy or .npz."""
    buffer = io.BytesIO()
    if kind == "PNG16":
        return png16(random_pixels(16, 16, 4, dtype=np.uint16))
    if kind == "NPY":
        np.save(buffer, random_pixels(16, 16, 3))
    elif kind == "NPZ":
        np.savez_compressed(buffer, image=random_pixels(16, 16, 3) / 255)
    else:
        Image.fromarray(random_pixels(16, 16, 3)).save(buffer, kind)
    return buffer.getvalue()


SUFFIXES = {"NPY": ".npy", "NPZ": ".npz"}
KINDS = ("PNG", "PNG16", "JPEG", "TIFF", "WEBP", "GIF", "NPY", "NPZ")


def mutations(kind: str, count: int):
    """Files with random bytes changed or the end cut off; always the same ones."""
    random, whole = np.random.default_rng(1), np.frombuffer(encoded(kind), np.uint8)
    for _ in range(count):
        mutated = whole.copy()
        places = random.integers(0, len(whole), random.integers(1, 12))
        mutated[places] = random.integers(0, 256, len(places))
        yield mutated[: len(whole) if random.random() < 0.7 else random.integers(1, len(whole))].tobytes()
