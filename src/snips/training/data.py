"""Training images: decoded once into one file of bytes, then drawn as random crops."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from snips.files import new_file
from snips.images import central_part, luminance, to_picture
from snips.photos.photo import load_photo

TIFFS = {".tif", ".tiff"}
SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", *TIFFS}
GREY = {"1", "L", "LA", "La"}  # modes of PIL with one channel of at most 8 bits
BYTES = {*GREY, "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr"}  # others would be cut off at 255 by PIL
HELD_OUT = 0.05  # share of a folder's last files that is not trained on, where no official split exists


def celeba64(image: Image.Image) -> Image.Image:
    """An aligned CelebA face as in the paper: centre crop 140, then 64 x 64 with antialiasing."""
    left, top = (image.width - 140) // 2, (image.height - 140) // 2
    return image.crop((left, top, left + 140, top + 140)).resize((64, 64), Image.Resampling.BILINEAR)


PREPARE: dict[str, Callable[[Image.Image], Image.Image]] = {"celeba64": celeba64, "none": lambda image: image}


@dataclass(frozen=True)
class ImageSet:
    """Images of any sizes, three channels, as one run of bytes."""

    pixels: Tensor  # (total,) uint8, each image in H, W, C order
    sizes: Tensor  # (N, 2) int64, height and width

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def starts(self) -> Tensor:
        """(N,): where in `pixels` each image begins."""
        lengths = 3 * self.sizes.prod(1)
        return torch.cumsum(lengths, 0) - lengths

    def image(self, index: int) -> Tensor:
        """Image number `index` as (3, H, W) uint8."""
        height, width = self.sizes[index].tolist()
        start = int(self.starts[index])
        return self.pixels[start : start + 3 * height * width].view(height, width, 3).permute(2, 0, 1)

    @staticmethod
    def join(sets: Sequence[ImageSet]) -> ImageSet:
        return ImageSet(torch.cat([s.pixels for s in sets]), torch.cat([s.sizes for s in sets]))


def check_sizes(images: ImageSet, crop: int) -> None:
    smallest = int(images.sizes.min())
    if smallest < crop:
        raise ValueError(f"an image is only {smallest} pixels wide or high; choose a crop of at most {smallest}")


class Crops:
    """Random square crops, flipped or not, from an image set; larger images are drawn more often."""

    def __init__(self, images: ImageSet, crop: int) -> None:
        check_sizes(images, crop)
        self.images, self.crop = images, crop
        area = images.sizes.prod(1)
        self.shares = torch.cumsum(area.double(), 0) / area.sum()

    def draw(self, count: int, channels: int, random: torch.Generator) -> Tensor:
        """`count` crops as (count, channels, crop, crop) in [0, 1]."""
        uniform = torch.rand(count, 4, generator=random, dtype=torch.float64)
        chosen = torch.searchsorted(self.shares, uniform[:, 0].contiguous(), right=True)
        chosen = chosen.clamp(max=len(self.images) - 1)
        crops = [self._cut(int(i), *u) for i, u in zip(chosen, uniform[:, 1:].tolist(), strict=True)]
        return to_float(torch.stack(crops), channels)

    def _cut(self, index: int, down: float, right: float, flip: float) -> Tensor:
        image = self.images.image(index)
        _, height, width = image.shape
        top, left = int(down * (height - self.crop + 1)), int(right * (width - self.crop + 1))
        cut = image[:, top : top + self.crop, left : left + self.crop]
        return cut.flip(-1) if flip < 0.5 else cut


def to_float(images: Tensor, channels: int) -> Tensor:
    """Bytes (B, 3, H, W) as numbers in [0, 1], all channels or their luminance."""
    scaled = images.float() / 255
    return scaled if channels == 3 else luminance(scaled)


def held_out_crops(images: ImageSet, crop: int, count: int, channels: int) -> Tensor:
    """The central crops of `count` images spread evenly over the set."""
    chosen = torch.linspace(0, len(images) - 1, min(count, len(images))).round().long().tolist()
    return to_float(torch.stack([central_part(images.image(i), crop, crop) for i in chosen]), channels)


def load_images(
    folders: Sequence[str], prepare: str, cache: str, skipped: Sequence[Path] = ()
) -> tuple[ImageSet, ImageSet]:
    """The training and the held-out images of some folders, decoded on first use."""
    parts = [_load_folder(Path(folder), prepare, Path(cache), skipped) for folder in folders]
    return ImageSet.join([train for train, _ in parts]), ImageSet.join([held for _, held in parts])


def _load_folder(folder: Path, prepare: str, cache: Path, skipped: Sequence[Path]) -> tuple[ImageSet, ImageSet]:
    train, held = split_files(folder, (*skipped, cache))
    return _cached(train, folder, prepare, cache), _cached(held, folder, prepare, cache)


def split_files(folder: Path, skipped: Sequence[Path] = ()) -> tuple[list[Path], list[Path]]:
    """Training and held-out files: CelebA's official list if there is one, else the last are held out."""
    files = sorted(_image_files(folder, skipped), key=_natural)
    if len(files) < 2:
        raise ValueError(f"{folder} holds {len(files)} images ({', '.join(sorted(SUFFIXES))}); give a folder with more")
    listing = folder.parent / "list_eval_partition.txt"
    if listing.exists():
        return _listed(files, listing)
    kept = len(files) - max(1, round(HELD_OUT * len(files)))
    return files[:kept], files[kept:]


def _image_files(folder: Path, skipped: Sequence[Path]) -> Iterator[Path]:
    """Those at any depth, but nothing hidden, and nothing of the files and folders to skip that lie below the folder.

    A run may be at the folder itself, or above it: then its images are no less meant.
    """
    root = folder.resolve()
    left_out = [place for path in skipped if root in (place := path.resolve()).parents]
    for file in folder.rglob("*"):
        within = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in within.parts)
        written = any((root / within).is_relative_to(place) for place in left_out)
        if file.suffix.lower() in SUFFIXES and not hidden and not written:
            yield file


def _listed(files: Sequence[Path], listing: Path) -> tuple[list[Path], list[Path]]:
    """The files that a list of lines `name part` gives to training (0) and to validation (1)."""
    lines = [line.split() for line in listing.read_text().splitlines() if line.strip()]
    if any(len(words) != 2 for words in lines):
        raise ValueError(f"{listing} must have lines `name part`, with part 0, 1 or 2: mend or remove it")
    part = dict(lines)
    unknown = [f.name for f in files if f.name not in part]
    if unknown:
        raise ValueError(f"{listing} lacks {len(unknown)} of the images, {unknown[0]} first: add them, or remove it")
    train, held = ([f for f in files if part[f.name] == wanted] for wanted in ("0", "1"))
    if not train or not held:
        raise ValueError(
            f"{listing} names {len(train)} images for training (0) and {len(held)} to hold out (1): both must be some"
        )
    return train, held


def _natural(path: Path) -> tuple[tuple[int, ...], str]:
    """Order by the numbers in the name first, so that 2.jpg precedes 10.jpg and classes mix."""
    return tuple(int(n) for n in re.findall(r"\d+", path.stem)), str(path)


def _cached(files: Sequence[Path], folder: Path, prepare: str, cache: Path) -> ImageSet:
    listing = "\n".join([prepare, *(f"{f.relative_to(folder)} {_edition(f)}" for f in files)])
    digest = hashlib.sha256(f"{folder.resolve()}\n{listing}".encode()).hexdigest()[:12]
    stored = cache / f"{folder.name}-{digest}.safetensors"
    if not stored.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _decode(files, PREPARE[prepare], stored)
    return ImageSet(**load_file(stored))


def _edition(file: Path) -> str:
    """Another one where the file was replaced; of a file that is gone reading tells."""
    try:
        found = file.stat()
    except OSError:
        return "gone"
    return f"{found.st_size} {found.st_mtime_ns}"


def _decode(files: Sequence[Path], prepare: Callable[[Image.Image], Image.Image], stored: Path) -> None:
    arrays = [_read(f, prepare) for f in files]
    sizes = torch.tensor([a.shape[:2] for a in arrays])
    pixels = torch.from_numpy(np.concatenate([a.ravel() for a in arrays]))
    try:
        with new_file(stored) as work:
            save_file({"pixels": pixels, "sizes": sizes}, work)
    except SafetensorError as error:
        raise OSError(f"{stored} cannot be written ({error}): make space, or choose another --cache") from error


def _read(path: Path, prepare: Callable[[Image.Image], Image.Image]) -> np.ndarray:
    try:
        if _is_deep(path):
            return np.asarray(prepare(to_picture(load_photo(path).pixels[0]).convert("RGB")))
        with Image.open(path) as image:
            return np.asarray(prepare(ImageOps.exif_transpose(image).convert("RGB")))
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise ValueError(f"cannot read the image {path} ({error}); remove or replace it") from None


def _is_deep(path: Path) -> bool:
    """Whether it has, or may have, more than 8 bits."""
    if path.suffix.lower() in TIFFS:
        return True
    with Image.open(path) as image:
        return image.mode not in BYTES


def are_grey(folder: str, skipped: Sequence[Path] = ()) -> bool:
    """Whether no image of a folder has colours, as their headers tell."""
    return all(_is_grey(file) for part in split_files(Path(folder), skipped) for file in part)


def _is_grey(path: Path) -> bool:
    try:
        if _is_deep(path):
            return load_photo(path).pixels.shape[1] == 1
        with Image.open(path) as image:
            return image.mode in GREY
    except (OSError, UnidentifiedImageError, ValueError):
        return True  # it has no colours that would be missed, and is refused when it is read
