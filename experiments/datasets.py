"""The test images of the experiments, read from a folder of public collections (they are not part of snips)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from snips.training.data import celeba64


def celeba_test(data: Path, count: int) -> Tensor:
    """The first `count` images of CelebA's official test split, prepared as in the paper: (count, 3, 64, 64)."""
    folder = data / "celeba"
    listing = require(folder / "list_eval_partition.txt").read_text().splitlines()
    names = [name for name, part in (line.split() for line in listing) if part == "2"]
    files = [file for name in names if (file := folder / "img_align_celeba" / name).is_file()][:count]
    if len(files) < count:
        raise ValueError(f"{folder} has {len(files)} test images, but {count} were asked for")
    return torch.stack([to_tensor(celeba64(Image.open(file).convert("RGB"))) for file in files])


def bsds_test(data: Path) -> list[Tensor]:
    """The photographs of the BSDS500 test folder, each (1, 3, H, W)."""
    folder = require(data / "bsds500" / "test")
    return [to_tensor(Image.open(file).convert("RGB"))[None] for file in sorted(folder.glob("*.jpg"))]


def to_tensor(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1).contiguous()


def require(path: Path) -> Path:
    if not path.exists():
        raise ValueError(f"{path} is missing: give the folder of the image collections with --data")
    return path
