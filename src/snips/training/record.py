"""What a run leaves behind: checkpoint, exported weights, held-out table, examples, and the log."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from snips.extras import installing
from snips.files import new_file
from snips.priors.base import Prior
from snips.training.checkpoint import write_checkpoint, writing
from snips.training.data import ImageSet, held_out_crops
from snips.training.ema import PowerAverage
from snips.training.loss import psnr_table
from snips.training.networks import kind_of
from snips.training.settings import CHECKPOINT, EXAMPLES, WEIGHTS, TrainSettings
from snips.training.state import TrainState

SIGMAS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)  # of the held-out table
LARGEST = torch.finfo(torch.float16).max  # of a weight: they are exported in half precision
Log = Callable[[dict[str, Any]], None]


def record(
    state: TrainState, settings: TrainSettings, held: ImageSet, trace: Sequence[tuple[float, float]], log: Log
) -> None:
    """Checkpoint first; then the table, the weights and the picture, which need it not."""
    out = Path(settings.out)
    keep(state, settings)
    with writing(out):
        loss, gradient = np.mean(trace, axis=0).tolist() if trace else (None, None)
        row: dict[str, Any] = {"event": "checkpoint", "step": state.step, "hours": state.seconds / 3600}
        row |= {"loss": loss, "gradient": gradient}
        models = [averaged(state, average) for average in state.averages]
        for model, average in zip(models, state.averages, strict=True):
            row[f"psnr_{average.gamma:g}"] = held_out_table(model, settings, held)
        if models:
            kind_of(state.config).save(models[0], out / WEIGHTS, row)
            _examples(models[0], settings, held, out / EXAMPLES)
        log(row)


def keep(state: TrainState, settings: TrainSettings) -> None:
    """Write a checkpoint; weights that have run away do not replace those that have not."""
    largest = max(float(value.detach().abs().max()) for value in state.model.parameters())
    if not largest <= LARGEST:
        raise FloatingPointError(
            f"weights have grown to {largest:.3g} at step {state.step}: they are not written; the checkpoint before is "
            "kept, and the same command goes on from it with a smaller --lr"
        )
    with writing(Path(settings.out)):
        write_checkpoint(state.as_dict(), Path(settings.out) / CHECKPOINT)


def averaged(state: TrainState, average: PowerAverage) -> Prior:
    """A copy of the network with the averaged weights."""
    copy = kind_of(state.config).build(state.config).eval().requires_grad_(False)
    copy.load_state_dict(state.model.state_dict())
    average.copy_to(copy)
    return copy


def held_out_table(model: Prior, settings: TrainSettings, held: ImageSet) -> dict[str, dict[str, float]]:
    """PSNR by number of channels and by sigma."""
    kinds = settings.network.channels
    crops = {c: held_out_crops(held, settings.crop, settings.held_out, c) for c in kinds}
    return {str(c): psnr_table(model, crops[c], SIGMAS) for c in kinds}


@torch.no_grad()
def _examples(model: Prior, settings: TrainSettings, held: ImageSet, path: Path) -> None:
    """Held-out images, then noisy and denoised ones below, for growing noise."""
    clean = held_out_crops(held, settings.crop, 8, max(settings.network.channels))
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    rows = [clean]
    for sigma in (0.1, 0.5, 2.0):
        noisy = clean + sigma * noise
        rows += [noisy, model.denoise(noisy, sigma)]
    with new_file(path) as work:
        _grid(rows).save(work)


def _grid(rows: Sequence[Tensor]) -> Image.Image:
    """Rows of images (B, C, H, W) as one picture."""
    picture = torch.cat([torch.cat(list(row.clamp(0, 1)), -1) for row in rows], -2)
    pixels = (255 * picture).round().byte().permute(1, 2, 0)
    return Image.fromarray(pixels.expand(-1, -1, 3).contiguous().numpy())


def make_log(settings: TrainSettings) -> Log:
    """A function that notes a row in log.jsonl, and in TensorBoard's format if asked for."""
    path = Path(settings.out) / "log.jsonl"
    board = _tensorboard(settings.out) if settings.tensorboard else None

    def log(row: dict[str, Any]) -> None:
        with writing(path.parent), open(path, "ab+") as file:
            file.write(_line_break(file) + json.dumps(row).encode() + b"\n")
        if board is not None:
            board(row)

    return log


def _line_break(file: BinaryIO) -> bytes:
    """Where a full disk or a kill cut the last row off."""
    if file.seek(0, os.SEEK_END) == 0:
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read() == b"\n" else b"\n"


def _tensorboard(folder: str) -> Log:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError(f"TensorBoard is not installed: {installing('train')}, or leave it out") from None
    writer = SummaryWriter(folder)

    def log(row: dict[str, Any]) -> None:
        for name, value in _scalars(row):
            writer.add_scalar(name, value, row["step"])
        writer.flush()

    return log


def _scalars(row: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    """Every number in a nested row, with its path as name."""
    found: list[tuple[str, float]] = []
    for name, value in row.items():
        if isinstance(value, dict):
            found += _scalars(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            found.append((prefix + name, value))
    return found
