"""A training run of a few steps: random pictures, a tiny network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from snips.priors.unet import UNetConfig
from snips.training import TrainSettings


def small_settings(tmp_path: Path) -> TrainSettings:
    """The pictures are made where they are missing, so that another process can go on with them."""
    folder = tmp_path / "photos"
    if not folder.exists():
        folder.mkdir()
        values = np.random.default_rng(0)
        for i in range(12):
            shape = (20 + i, 24, 3)
            Image.fromarray(values.integers(0, 255, shape, dtype=np.uint8)).save(folder / f"{i}.png")
    network = UNetConfig(channels=(1, 3), widths=(8, 8, 16), encoder=(1, 1, 1), decoder=(1, 1, 1))
    return TrainSettings(
        (str(folder),), str(tmp_path / "run"), str(tmp_path / "cache"),
        network=network, crop=16, batch=2, warmup=2, steps=6, cooldown=3, held_out=1,
    )  # fmt: skip
