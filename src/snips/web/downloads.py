"""Results as files: a zip of everything, and pictures large enough to look at in a browser."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from snips.images import to_picture
from snips.operators.pictures import framed
from snips.report import degraded_view
from snips.report.colours import std_map
from snips.report.files import with_alpha
from snips.restoration import Restoration

SHOWN_SIDE = 320  # smaller pictures are enlarged to at least this, in whole steps


def pack(result: Restoration, folder: Path, name: str) -> Path:
    """All that `Restoration.save` writes, as `name`.zip in the folder."""
    saved = result.save(folder / name)
    archive = folder / f"{name}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(saved.rglob("*")):
            packed.write(file, file.relative_to(folder))
    shutil.rmtree(saved)
    return archive


def write_gallery(result: Restoration, folder: Path) -> list[tuple[str, str]]:
    """Files and captions: original and degraded, the samples with their verdicts, mean and std."""
    operator = result.problem.operator
    samples = framed(result.samples[:, 0], operator)
    shown = list(zip(captions(result), samples, strict=True))
    shown.append(("Mean of the samples", samples.clamp(0, 1).mean(0)))
    if result.problem.truth is not None:
        shown.insert(0, ("Original", framed(result.problem.truth[0], operator)))
    alpha, shape = None if result.alpha is None else result.alpha[0], tuple(samples.shape[-2:])
    pictures = [(caption, enlarged(image, shape, alpha)) for caption, image in shown]
    degraded = ("Degraded", enlarged(degraded_view(result.problem)[0], shape))
    pictures.insert(0 if result.problem.truth is None else 1, degraded)
    if len(result.samples) > 1:
        pictures.append(("Standard deviation", std_map(framed(result.std[0], operator), SHOWN_SIDE)))
    folder.mkdir()
    files = []
    for index, (caption, picture) in enumerate(pictures):
        file = folder / f"{index:02d}.png"
        picture.save(file)
        files.append((str(file), caption))
    return files


def captions(result: Restoration) -> list[str]:
    verdicts = result.faithfulness().faithful
    if verdicts is None:
        return [f"Sample {k + 1}" for k in range(len(result.samples))]
    return [
        f"Sample {k + 1}: {'faithful' if faithful else 'not faithful'}"
        for k, faithful in enumerate(verdicts[:, 0].tolist())
    ]


def enlarged(image: Tensor, shape: tuple[int, ...] | None = None, alpha: Tensor | None = None) -> Image.Image:
    """(C, H, W) as a picture in which single pixels can be seen; `shape` is that of what it stands beside."""
    picture = with_alpha(to_picture(torch.nan_to_num(image)), alpha)
    height, width = shape or tuple(image.shape[1:])
    width *= picture.width // image.shape[-1]  # channels that are no colours stand side by side
    scale = max(1, -(-SHOWN_SIDE // max(height, width)))
    return picture.resize((width * scale, height * scale), Image.Resampling.NEAREST)
