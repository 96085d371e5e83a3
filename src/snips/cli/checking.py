"""Command: check-prior."""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from snips.cli.app import JsonOption, SeedOption, app, err, out
from snips.cli.restore_run import note
from snips.images import central_part, example_image, load_image
from snips.metrics.prior_check import SIGMAS, check_prior
from snips.posing.from_files import read_numbers
from snips.priors.base import Prior
from snips.priors.denoiser import as_prior
from snips.priors.registry import load_prior

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp")
MOST = 16  # images
LARGEST_PART = 128  # pixels, of images that are cropped: the figures are averages, which more hardly changes


@app.command(name="check-prior")
def check_prior_command(
    prior: Annotated[str, typer.Argument(help="A name from `snips priors`, a file, or `module:object` of your own.")],
    images: Annotated[
        Path | None, typer.Option(help="A folder of clean images it is made for; else an example.")
    ] = None,
    sigmas: Annotated[str, typer.Option(help="Noise levels to try, for pixels in [0, 1].")] = ",".join(
        map(str, SIGMAS)
    ),
    sigma_scale: Annotated[
        float | None, typer.Option(help="`module:object`: it is told sigma times this; 1 unless given.")
    ] = None,
    value_range: Annotated[
        str | None, typer.Option(help="`module:object`: its values of black and white; 0,1 unless given.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Measure whether a prior behaves like an MMSE denoiser, and name the usual mistakes. Exit code 1 if it does not.

    Example: `snips check-prior my_package.models:denoiser --images photos --value-range=-1,1`
    """
    levels = read_numbers("--sigmas", sigmas, None, float)
    units = None if value_range is None else read_numbers("--value-range", value_range, 2, float)
    checked, shown = _prior(prior, {"sigma_scale": sigma_scale, "value_range": units}), _images(images)
    size = f"{len(shown)} image{'s' * (len(shown) > 1)} of {shown.shape[-1]} x {shown.shape[-2]} pixels"
    with err.status(f"measuring on {size}"):  # minutes, where the prior is a network
        report = check_prior(checked, shown, levels, seed)
    if as_json:
        print(json.dumps({**asdict(report), "ok": report.ok}))
    else:
        out.print(str(report), markup=False, highlight=False, soft_wrap=True)
    if not report:
        raise typer.Exit(1)


def _prior(name: str, options: dict[str, Any]) -> Prior:
    module, colon, attribute = name.partition(":")
    if not colon or Path(name).exists():
        return as_prior(load_prior(name), **options)  # which refuses them: it knows its own units
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does: the user's own module beside the photos
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever the user's own module does
        raise ValueError(f"{module} cannot be imported ({type(error).__name__}: {error})") from error
    if not hasattr(found, attribute):
        raise ValueError(f"{module} has no {attribute}")
    return as_prior(getattr(found, attribute), **options)


def _images(folder: Path | None) -> Tensor:
    if folder is None:
        return example_image()
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES) if folder.is_dir() else []
    if not files:
        raise ValueError(f"{folder} holds no images ({', '.join(SUFFIXES)})")
    return _batch([load_image(file) for file in files[:MOST]])


def _batch(images: list[Tensor]) -> Tensor:
    """One tensor of images (1, C, H, W); where they differ, of their central parts, grey among colours as colour."""
    if len({image.shape for image in images}) == 1:
        return torch.cat(images)
    height, width = (min(LARGEST_PART, *(image.shape[axis] for image in images)) for axis in (-2, -1))
    note(f"the images differ in size or colour: the central {width} x {height} pixels of each are taken", quiet=False)
    channels = max(image.shape[1] for image in images)
    return torch.cat([central_part(image, height, width).expand(-1, channels, -1, -1) for image in images])
