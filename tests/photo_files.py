"""Image files of many kinds for the tests of the loader."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image


def png(width: int, height: int, bits: int, kind: int, data: bytes, transparent: bytes = b"") -> bytes:
    """A PNG with these bytes as its pixels, be they enough or not."""
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    colour = ((b"tRNS", transparent),) if transparent else ()
    chunks = ((b"IHDR", header), *colour, (b"IDAT", zlib.compress(data)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)


def png16(values: np.ndarray, transparent: np.ndarray | None = None) -> bytes:
    """A PNG of 16 bits from (H, W, C) with C = 1 to 4, which Pillow cannot write, and the colour that is not seen."""
    height, width, channels = values.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    colour = b"" if transparent is None else transparent.astype(">u2").tobytes()
    return png(width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], rows, colour)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def random_pixels(*shape: int, dtype=np.uint8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def saved_photo(path: Path, height: int, width: int) -> Path:
    """Random colours in a file."""
    Image.fromarray(random_pixels(height, width, 3)).save(path)
    return path


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def encoded(kind: str) -> bytes:
    """16 x 16 random pixels in a format of Pillow, as a 16-bit PNG, or as .npy or .npz."""
    buffer = io.BytesIO()
    if kind == "PNG16":
        return png16(random_pixels(16, 16, 4, dtype=np.uint16))
    if kind == "TIFF32":
        tifffile.imwrite(
            buffer, random_pixels(16, 16, 3).astype(np.float32) / 255, photometric="rgb", compression="zlib"
        )
    elif kind == "NPY":
        np.save(buffer, random_pixels(16, 16, 3))
    elif kind == "NPZ":
        np.savez_compressed(buffer, image=random_pixels(16, 16, 3) / 255)
    else:
        Image.fromarray(random_pixels(16, 16, 3)).save(buffer, kind)
    return buffer.getvalue()


def ink_profile() -> bytes:
    """A colour profile of four inks that shows every mixture of them as one green: CIELAB (60, -80, 60)."""
    curve, nodes = bytes(range(256)), bytes([153, 48, 188]) * 2**4  # L 0..255, a and b + 128
    matrix = struct.pack(">9i", *(65536 * (i % 4 == 0) for i in range(9)))
    table = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + matrix + curve * 4 + nodes + curve * 3
    tags = {
        b"desc": b"desc" + bytes(4) + struct.pack(">I", 4) + b"ink\0" + bytes(79),
        b"wtpt": b"XYZ " + bytes(4) + struct.pack(">3i", 63190, 65536, 54061),  # D50
        b"A2B0": table,
    }
    offset, entries, contents = 128 + 4 + 12 * len(tags), b"", b""
    for name, content in tags.items():
        entries += name + struct.pack(">II", offset + len(contents), len(content))
        contents += content + bytes(-len(content) % 4)
    body = struct.pack(">I", len(tags)) + entries + contents
    start = struct.pack(">I4sI4s4s4s12x4s", 128 + len(body), b"", 0x02400000, b"prtr", b"CMYK", b"Lab ", b"acsp")
    light = struct.pack(">3i", 63190, 65536, 54061)
    return start + bytes(68 - len(start)) + light + bytes(48) + body


def tiff12(values: np.ndarray) -> bytes:
    """A grey TIFF of 12 bits, two pixels in three bytes, which neither Pillow nor tifffile writes; even widths."""
    height, width = values.shape
    first, second = values[:, ::2].astype(int), values[:, 1::2].astype(int)
    packed = np.stack([first >> 4, (first & 15) << 4 | second >> 8, second & 255], -1).astype(np.uint8).tobytes()
    tags = {
        256: width,
        257: height,
        258: 12,
        259: 1,
        262: 1,
        273: 8 + 2 + 12 * 9 + 4,
        277: 1,
        278: height,
        279: len(packed),
    }
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + packed


SUFFIXES = {"NPY": ".npy", "NPZ": ".npz"}
KINDS = ("PNG", "PNG16", "JPEG", "TIFF", "TIFF32", "WEBP", "GIF", "NPY", "NPZ")


def mutations(kind: str, count: int):
    """Files with random bytes changed or the end cut off; always the same ones."""
    random, whole = np.random.default_rng(1), np.frombuffer(encoded(kind), np.uint8)
    for _ in range(count):
        mutated = whole.copy()
        places = random.integers(0, len(whole), random.integers(1, 12))
        mutated[places] = random.integers(0, 256, len(places))
        yield mutated[: len(whole) if random.random() < 0.7 else random.integers(1, len(whole))].tobytes()
