"""The test images of the experiments, read from a folder of public collections (they are not part of snips).

celeba/img_align_celeba, celeba/list_eval_partition.txt    as published
scenes/test                                                outdoor scenes, 150 x 150
bedrooms                                                   128 x 128; the last 5 % are not trained on
bsds500/test                                               photographs
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from snips.experiments.base import Request
from snips.images import central_part, example_image, load_image
from snips.training.image_files import celeba64, split_files

LARGE = 128  # the side of the images that stand in for LSUN
PHOTOGRAPHS = ("coffee.png", "chelsea.png")  # in scikit-image's wheel


@dataclass(frozen=True)
class TestImages:
    """Clean images of one size, and where they come from."""

    images: Tensor  # (N, 3, H, W)
    source: str
    publishable: bool  # whether pictures of them may be shown


def faces(request: Request, count: int) -> TestImages:
    """CelebA's test images at 64 x 64; without data the bundled picture and its mirror image."""
    if not request.without_data:
        source = "CelebA, the first images of the official test split"
        return TestImages(celeba_test(_folder(request), count), source, publishable=False)
    example = example_image()
    pair = torch.cat([example, example.flip(-1)])
    return TestImages(_first(pair, count), "the bundled picture and its mirror image", True)


def scenes(request: Request, count: int) -> TestImages:
    return _stand_in(request, count, scenes_test, "outdoor scenes, in place of LSUN towers")


def bedrooms(request: Request, count: int) -> TestImages:
    return _stand_in(request, count, bedrooms_test, "bedrooms, in place of LSUN bedrooms")


def _stand_in(request: Request, count: int, read: Callable[[Path, int], Tensor], source: str) -> TestImages:
    """Images of 128 x 128; without data, photographs of scikit-image."""
    if not request.without_data:
        return TestImages(read(_folder(request), count), source, publishable=False)
    return TestImages(_first(photographs(), count), "photographs of scikit-image", True)


def celeba_test(data: Path, count: int) -> Tensor:
    """The first `count` images of CelebA's official test split, prepared as in the paper: (count, 3, 64, 64)."""
    folder = data / "celeba"
    listing = require(folder / "list_eval_partition.txt").read_text().splitlines()
    names = [name for name, part in (line.split() for line in listing) if part == "2"]
    files = [file for name in names if (file := folder / "img_align_celeba" / name).is_file()]
    return torch.stack([to_tensor(celeba64(_open(file))) for file in enough(files, count, folder)])


def scenes_test(data: Path, count: int) -> Tensor:
    """Centres of outdoor scenes, (count, 3, 128, 128), all classes in turn."""
    folder = require(data / "scenes" / "test")
    files = sorted(folder.rglob("*.jpg"))
    spread = [files[i * len(files) // count] for i in range(count)] if len(files) >= count else files
    return _large(enough(spread, count, folder))


def bedrooms_test(data: Path, count: int) -> Tensor:
    """The first held-out bedrooms, (count, 3, 128, 128)."""
    folder = require(data / "bedrooms")
    return _large(enough(split_files(folder)[1], count, folder))


def bsds_test(data: Path) -> list[Tensor]:
    """The photographs of the BSDS500 test folder, each (1, 3, H, W)."""
    folder = require(data / "bsds500" / "test")
    return [to_tensor(_open(file))[None] for file in sorted(folder.glob("*.jpg"))]


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


def enough(files: list[Path], count: int, folder: Path) -> list[Path]:
    if len(files) < count:
        raise ValueError(f"{folder} has {len(files)} test images, but {count} were asked for")
    return files[:count]


def _open(file: Path) -> Image.Image:
    with Image.open(file) as image:
        return image.convert("RGB")


def _large(files: list[Path]) -> Tensor:
    return torch.stack([square(to_tensor(_open(file))) for file in files])


def _first(images: Tensor, count: int) -> Tensor:
    if len(images) < count:
        raise ValueError(f"without --data there are {len(images)} images, but {count} were asked for")
    return images[:count]


def _folder(request: Request) -> Path:
    if request.data is None:
        raise ValueError(
            "this experiment needs images that are not part of snips: give the folder of the collections with --data, "
            "or do without: --bundled has a few pictures, --quick is only a trial"
        )
    return request.data
