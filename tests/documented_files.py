"""The files that documented commands and blocks of Python name, small ones, and the limits that let them end soon."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from documented import ROOT
from ncsnv2_cases import published_file
from snips import restoration, training
from snips.integrations.torchvision import register_torchvision_operators
from snips.running.devices import pick_device
from snips.training import TrainSettings, networks
from snips.training.checkpoint import read_checkpoint
from snips.training.networks import NCSNv2Config

EXAMPLE = ROOT / "src" / "snips" / "assets" / "example.png"
MOST_CALLS = 5
MORE_STEPS = 2  # of training
SMALL_UNET = {"widths": (8, 8, 16), "encoder": (1, 1, 1), "decoder": (1, 1, 1)}
TINY_DIFFUSION = {
    "sample_size": 8,
    "block_out_channels": (32, 32),
    "layers_per_block": 1,
    "down_block_types": ("DownBlock2D",) * 2,
    "up_block_types": ("UpBlock2D",) * 2,
}
MY_MODULE = """import snips

denoiser = snips.StationaryGaussian.natural((3, 64, 64)).denoise
"""


def fill_folder(folder: Path, page: str = "") -> None:
    """What most pages name, the bundled example where it lies in the repository, and what only this page names."""
    copied = folder / EXAMPLE.relative_to(ROOT)
    copied.parent.mkdir(parents=True)
    shutil.copy(EXAMPLE, copied)
    with Image.open(EXAMPLE) as picture:
        small = picture.reduce(4)
        for name in ("small.png", "face.png", "photo.png", "scratched.png", "blurred.tif"):
            small.save(folder / name)
        for name in ("measurements/first.png", "measurements/second.png"):
            save_into(small, folder / name)
        picture.save(folder / "clean.png")
        for i in range(3):  # unlike each other, so that a network can learn from two and hold one out
            for name in ("photos", "scans"):
                save_into(picture.rotate(90 * i), folder / name / f"{i}.png")
    mask = np.full((16, 16), 255, np.uint8)
    mask[4:8, 4:12] = 0
    Image.fromarray(mask).save(folder / "mask.png")
    Image.fromarray(np.full((3, 3), 28, np.uint8)).save(folder / "kernel.png")
    for word, make in MADE.items():
        if word in page:
            make(folder)


def save_into(picture: Image.Image, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    picture.save(path)


def make_sums(folder: Path) -> None:
    """Of the matrix in docs/problems/matrix.md, for a grey image."""
    np.save(folder / "y.npy", np.random.default_rng(1).standard_normal(512).astype("f4") / 10)


def make_frequencies(folder: Path) -> None:
    """Of an even image of 64 x 64 pixels, the zero frequency first."""
    mask = np.zeros((64, 64), bool)
    mask[:, :8] = True
    noise = np.random.default_rng(1).standard_normal((2, 64, 64)) / 50
    seen = np.fft.fft2(np.full((64, 64), 0.5), norm="ortho") + noise[0] + 1j * noise[1]
    np.save(folder / "mask.npy", mask)
    np.save(folder / "kspace.npy", seen[mask])


def make_diffusion_model(folder: Path) -> None:
    if not is_missing("diffusers"):
        from diffusers import DDPMScheduler, UNet2DModel

        UNet2DModel(**TINY_DIFFUSION).save_pretrained(folder / "folder")
        DDPMScheduler().save_pretrained(folder / "folder")


# What takes time to make, by a word of the pages that name it.
MADE: dict[str, Callable[[Path], object]] = {
    "my_module:denoiser": lambda folder: (folder / "my_module.py").write_text(MY_MODULE),
    "checkpoint_210000.pth": lambda folder: published_file("ncsnv2", folder / "checkpoint_210000.pth"),
    "restore y.npy": make_sums,
    "restore kspace.npy": make_frequencies,
    'from_pretrained("folder")': make_diffusion_model,
}


def is_missing(library: str) -> bool:
    """Whether an optional library is not installed; if it is, it can be imported beside a CPU build of torch."""
    if find_spec(library) is None:
        return True
    register_torchvision_operators()
    return False


def limit_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = restoration.SAMPLERS["fast"]

    @functools.wraps(fast)
    def limited(*given: Any, nfe: int = 100, **options: Any) -> Any:
        return fast(*given, nfe=min(nfe, MOST_CALLS), **options)

    monkeypatch.setitem(restoration.SAMPLERS, "fast", limited)


def limit_training(monkeypatch: pytest.MonkeyPatch, change: Callable[[TrainSettings], TrainSettings]) -> None:
    """A few steps more, with changed settings; on the CPU where a graphics processor is named and there is none."""
    train = training.train

    def limited(settings: TrainSettings, *given: Any, **options: Any) -> Any:
        settings = change(settings)
        checkpoint = Path(settings.out, training.CHECKPOINT)
        done = read_checkpoint(checkpoint)["step"] if checkpoint.exists() else 0
        return train(replace(settings, steps=done + MORE_STEPS), *given, **options)

    def present_device(name: str) -> torch.device:
        return pick_device("cpu" if name == "cuda" and not torch.cuda.is_available() else name)

    monkeypatch.setattr(training, "train", limited)
    monkeypatch.setattr("snips.cli.training.pick_device", present_device)
    monkeypatch.setattr(networks, "FIT_IMAGES", 64)


def small_batches(settings: TrainSettings) -> TrainSettings:
    return replace(settings, batch=min(settings.batch, 2), held_out=1)


def small_networks(settings: TrainSettings) -> TrainSettings:
    """Narrow ones too, but for a network that goes on from given weights."""
    settings = small_batches(settings)
    if settings.init is not None:
        return settings
    smaller = {"ngf": 8} if isinstance(settings.network, NCSNv2Config) else SMALL_UNET
    return replace(settings, network=replace(settings.network, **smaller))
