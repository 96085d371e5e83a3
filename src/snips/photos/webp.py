"""What Pillow does not tell of WebP files: whether they were compressed with loss, and whether they are grey."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageChops

CHUNKS = 64  # of a file's head that are looked at; the pixels come after a profile at most


def is_lossy(path: str | Path) -> bool:
    """Whether a WebP file holds pixels that were compressed with loss; of what cannot be read it is assumed."""
    try:
        with open(path, "rb") as file:
            file.seek(12)  # after RIFF, its length, and WEBP
            for _ in range(CHUNKS):
                head = file.read(8)
                if head[:4] in (b"VP8L", b"VP8 ") or len(head) < 8:
                    return head[:4] != b"VP8L"
                length = int.from_bytes(head[4:], "little")
                file.seek(length + length % 2, 1)
    except OSError:
        pass
    return True


def as_grey(image: Image.Image) -> Image.Image | None:
    """One channel (and alpha) of an RGB or RGBA picture whose colours are equal: WebP cannot store grey as such."""
    if image.mode not in ("RGB", "RGBA"):
        return None
    red, green, blue, *alpha = image.split()
    if any(ImageChops.difference(red, other).getbbox() for other in (green, blue)):
        return None
    return Image.merge("LA", (red, *alpha)) if alpha else red
