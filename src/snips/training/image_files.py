"""Folders of training images: which are held out, and decoding them once into one file of bytes."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from snips.files import new_file
from snips.images import to_picture
from snips.memory import available_memory
from snips.photos.photo import load_photo
from snips.training.data import ImageSet

TIFFS = {".tif", ".tiff"}
SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", *TIFFS}
GREY = {"1", "L", "LA", "La"}  # modes of PIL with one channel of at most 8 bits
BYTES = {*GREY, "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr"}  # others would be cut off at 255 by PIL
HELD_OUT = 0.05  # share of a folder's last files that is not trained on, where no official split exists


def celeba64(image: Image.Image) -> Image.Image:
    """An aligned CelebA face as in the paper: centre crop 140, then 64 x 64 with antialiasing."""
    if min(image.size) < 140:
        raise ValueError(f"{image.width} x {image.height} pixels; aligned images of CelebA have 178 x 218")
    left, top = (image.width - 140) // 2, (image.height - 140) // 2
    return image.crop((left, top, left + 140, top + 140)).resize((64, 64), Image.Resampling.BILINEAR)


PREPARE: dict[str, Callable[[Image.Image], Image.Image]] = {"celeba64": celeba64, "none": lambda image: image}


def load_images(
    folders: Sequence[str], prepare: str, cache: str, skipped: Sequence[Path] = (), crop: int = 1
) -> tuple[ImageSet, ImageSet]:
    """The training and the held-out images of some folders, decoded on first use; all at least as large as a crop."""
    parts = [_load_folder(Path(folder), prepare, Path(cache), skipped, crop) for folder in folders]
    return ImageSet.join([train for train, _ in parts]), ImageSet.join([held for _, held in parts])


def _load_folder(
    folder: Path, prepare: str, cache: Path, skipped: Sequence[Path], crop: int
) -> tuple[ImageSet, ImageSet]:
    parts = split_files(folder, (*skipped, cache))
    train, held = (_checked(_cached(files, folder, prepare, cache), files, crop) for files in parts)
    return train, held


def _checked(images: ImageSet, files: Sequence[Path], crop: int) -> ImageSet:
    """The images of these files, none of them smaller than a crop."""
    smallest, index = map(int, images.sizes.min(1).values.min(0))
    if smallest < crop:
        raise ValueError(
            f"{files[index]} is only {smallest} pixels wide or high: choose a crop of at most {smallest}, or remove it"
        )
    return images


def split_files(folder: Path, skipped: Sequence[Path] = ()) -> tuple[list[Path], list[Path]]:
    """Training and held-out files: CelebA's official list if there is one, else the last are held out."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder: give one of images with --data")
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

    def wanted(path: Path) -> bool:
        return not path.name.startswith(".") and root / path.relative_to(folder) not in left_out

    def refuse(error: OSError) -> None:
        raise ValueError(f"cannot read the folder {error.filename} ({error.strerror}): allow it, or move it elsewhere")

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if wanted(Path(place) / name)]  # the others are not entered
        files = (Path(place) / name for name in names)
        yield from (file for file in files if file.suffix.lower() in SUFFIXES and wanted(file))


def listing_digest(folders: Sequence[str], skipped: Sequence[Path]) -> str:
    """Of the names and sizes of all images, and of which are held out; wherever the folders are."""
    digest = hashlib.sha256()
    for folder in folders:
        for part in split_files(Path(folder), skipped):
            lines = (f"{file.relative_to(folder)} {_edition(file).split()[0]}" for file in part)
            digest.update("\n".join(["", *lines]).encode())
    return digest.hexdigest()[:16]


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
    if stored.exists():
        try:
            return ImageSet(**load_file(stored))
        except (SafetensorError, TypeError):  # damaged, or of another kind: decoded again
            pass
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
    arrays = list(_within_memory(_read(f, prepare) for f in files))
    sizes = torch.tensor([a.shape[:2] for a in arrays])
    pixels = torch.from_numpy(np.concatenate([a.ravel() for a in arrays]))
    try:
        with new_file(stored) as work:
            save_file({"pixels": pixels, "sizes": sizes}, work)
    except SafetensorError as error:
        raise OSError(f"{stored} cannot be written ({error}): make space, or choose another --cache") from error


def _within_memory(arrays: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """The same, as long as all of them fit into memory twice: one by one, and in one piece."""
    free, taken = available_memory(), 0
    for array in arrays:
        taken += 2 * array.nbytes
        if taken > free:
            raise ValueError(
                f"the images do not fit into memory: when {free / 2**30:.1f} GiB were full, some were left; train on "
                "fewer or smaller ones (crops of photographs do)"
            )
        yield array


def _read(path: Path, prepare: Callable[[Image.Image], Image.Image]) -> np.ndarray:
    try:
        if _is_deep(path):
            return np.asarray(prepare(to_picture(load_photo(path).pixels[0]).convert("RGB")))
        with Image.open(path) as image:
            return np.asarray(prepare(ImageOps.exif_transpose(image).convert("RGB")))
    except Exception as error:  # a damaged file makes decoders raise almost anything
        raise ValueError(f"cannot read the image {path} ({error}); remove or replace it") from None


def _is_deep(path: Path) -> bool:
    """Whether it has, or may have, more than 8 bits."""
    if path.suffix.lower() in TIFFS:
        return True
    with Image.open(path) as image:
        return image.mode not in BYTES


def are_grey(folder: str, skipped: Sequence[Path] = ()) -> bool:
    """Whether no image of a folder has colours; the first that has some ends the search."""
    return all(_is_grey(file) for part in split_files(Path(folder), skipped) for file in part)


def _is_grey(path: Path) -> bool:
    try:
        if _is_deep(path):
            return load_photo(path).pixels.shape[1] == 1
        with Image.open(path) as image:
            if image.mode in GREY:
                return True
            red, green, blue = image.convert("RGB").split()  # scanners and microscopes often store grey so
            return red.tobytes() == green.tobytes() == blue.tobytes()
    except Exception:
        return True  # it has no colours that would be missed, and is refused when it is read
