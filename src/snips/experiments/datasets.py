"""The test images of the experiments, read from a folder of public collections (they are not part of snips).

celeba/img_align_celeba, celeba/list_eval_partition.txt    as published
scenes/test                                                outdoor scenes, 150 x 150
bedrooms                                                   128 x 128; the last 5 % are not trained on
bsds500/test                                               photographs of BSDS500 that were not trained on
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from snips.experiments.base import Request
from snips.images import central_part, example_image, load_image
from snips.training.image_files import celeba64, split_files

T = TypeVar("T")
LARGE = 128  # the side of the images that stand in for LSUN
PHOTOGRAPHS = ("coffee.png", "chelsea.png")  # in scikit-image's wheel


@dataclass(frozen=True)
class TestImages:
    """Clean images of one size, and where they come from."""

    images: Tensor  # (N, 3, H, W)
    source: str
    publishable: bool  # whether pictures of them may be shown
    names: tuple[str, ...]  # of their files, in this order

    def facts(self) -> dict[str, Any]:
        """What results say of them; their names by the group of rows that they belong to."""
        return {"source": self.source, "publishable": self.publishable, "names": {"": list(self.names)}}


CELEBA_PARTS = {"validation": "1", "test": "2"}  # of the official split, by their numbers in the list


def faces(request: Request, count: int, part: str = "test") -> TestImages:
    """CelebA's images at 64 x 64; without data the bundled picture and its mirror image."""
    if not request.without_data:
        names = celeba_names(_folder(request), part)
        source = f"CelebA, the first {count} of {len(names)} {part} images in its list"
        return TestImages(celeba(_folder(request), count, part), source, False, tuple(names[:count]))
    example = example_image()
    pair = torch.cat([example, example.flip(-1)])
    mirrored = "the bundled picture" + (" and its mirror image" if count > 1 else "")
    return TestImages(_first(pair, count), mirrored, True, ("example", "its mirror image")[:count])


def scenes(request: Request, count: int) -> TestImages:
    return _stand_in(request, count, scene_files, "outdoor scenes, in place of LSUN towers")


def bedrooms(request: Request, count: int) -> TestImages:
    return _stand_in(request, count, bedroom_files, "bedrooms, in place of LSUN bedrooms")


def _stand_in(request: Request, count: int, files: Callable[[Path, int], list[Path]], source: str) -> TestImages:
    """Images of 128 x 128; without data, photographs of scikit-image."""
    if request.without_data:
        return TestImages(_first(photographs(), count), "photographs of scikit-image", True, PHOTOGRAPHS[:count])
    found = files(_folder(request), count)
    images = torch.stack([square(to_tensor(_open(file))) for file in found])
    return TestImages(images, source, False, tuple(file.name for file in found))


def celeba_names(data: Path, part: str) -> list[str]:
    """The files of one part of CelebA, in the order of its list."""
    listing = require(data / "celeba" / "list_eval_partition.txt")
    rows = [line.split() for line in listing.read_text(encoding="utf-8").splitlines() if line.strip()]
    if any(len(row) != 2 for row in rows):
        raise ValueError(f"{listing} is damaged: every line must be the name of a file and a number")
    return [name for name, number in rows if number == CELEBA_PARTS[part]]


def celeba(data: Path, count: int, part: str = "test") -> Tensor:
    """The first `count` images of one part of CelebA, prepared as in the paper: (count, 3, 64, 64)."""
    names, folder = celeba_names(data, part), data / "celeba" / "img_align_celeba"
    files = [require(folder / name) for name in enough(names, count, f"{folder} ({part} images)")]
    return torch.stack([to_tensor(celeba64(_open(file))) for file in files])


def scene_files(data: Path, count: int) -> list[Path]:
    """Outdoor scenes of 150 x 150, all classes in turn."""
    folder = require(data / "scenes" / "test")
    files = sorted(folder.rglob("*.jpg"))
    spread = [files[i * len(files) // count] for i in range(count)] if len(files) >= count else files
    return enough(spread, count, folder)


def bedroom_files(data: Path, count: int) -> list[Path]:
    """The first held-out bedrooms."""
    folder = require(data / "bedrooms")
    return enough(split_files(folder)[1], count, folder)


def bsds_files(data: Path) -> list[Path]:
    """Photographs of BSDS500 that nothing was trained on."""
    folder = require(data / "bsds500" / "test")
    return sorted(folder.glob("*.jpg")) or enough([], 1, folder)


def photograph(file: Path) -> Tensor:
    """(1, 3, H, W)."""
    return to_tensor(_open(file))[None]


def photographs() -> Tensor:
    """Photographs that come with scikit-image, halved and cut to (2, 3, 128, 128)."""
    from skimage import data  # takes a second to import

    folder = Path(data.__file__).parent
    return torch.cat([square(load_image(folder / name)[..., ::2, ::2]) for name in PHOTOGRAPHS])


def square(image: Tensor) -> Tensor:
    """The central LARGE x LARGE pixels of (..., H, W)."""
    return central_part(image, LARGE, LARGE)


def to_tensor(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1).contiguous()


def require(path: Path) -> Path:
    if not path.exists():
        raise ValueError(f"{path} is missing: give the folder of the image collections with --data")
    return path


def enough(found: list[T], count: int, place: object) -> list[T]:
    if len(found) < count:
        raise ValueError(f"there are only {len(found)} images in {place}, not {count}: ask for fewer with --images")
    return found[:count]


def _open(file: Path) -> Image.Image:
    try:
        with Image.open(file) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError) as error:
        raise ValueError(f"{file} cannot be read ({error}): copy it again from its collection") from error


def _first(images: Tensor, count: int) -> Tensor:
    if len(images) < count:
        raise ValueError(
            f"without --data there are only {len(images)} images, not {count}: ask for fewer with --images"
        )
    return images[:count]


def _folder(request: Request) -> Path:
    if request.data is None:
        raise ValueError(
            "this experiment needs images that are not part of snips: give the folder of the collections with --data, "
            "or do without: --bundled has a few pictures, --quick is only a trial"
        )
    return request.data
