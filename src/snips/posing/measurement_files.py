"""Measurements as files: an image where y is one, or an .npz that also knows its operator and noise level."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from snips.buffers import in_own_memory
from snips.files import new_file
from snips.images import load_image, to_picture
from snips.inverse_problem import InverseProblem
from snips.operators.pictures import is_picture
from snips.photos.arrays import load_npy, load_npz, npz_names
from snips.photos.photo import only_array
from snips.problems import Build, make_operator
from snips.results import storage

ARRAYS = (".npy", ".npz")  # files of numbers, which are taken as they are


def save_measurement(problem: InverseProblem, path: Path, force: bool = False) -> None:
    """Write y: .npz keeps everything exactly; any other ending is written as an 8-bit picture."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists already: choose another name, or overwrite it with --force")
    exact = path.suffix.lower() == ".npz"
    if not exact:
        _check_picture(problem, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not exact:
        with new_file(path) as work:
            to_picture(problem.y[0]).save(work)
        return
    tensors, recipe = storage.recipe_to_json(problem.operator)
    description = json.dumps({"operator": recipe, "sigma_0": problem.sigma_0})
    arrays: dict[str, Any] = {name: value.cpu().numpy() for name, value in tensors.items()}
    with new_file(path) as work, open(work, "wb") as file:  # a name alone would get another .npz after .NPZ
        np.savez_compressed(file, y=problem.y.cpu().numpy(), description=np.array(description), **arrays)


def _check_picture(problem: InverseProblem, path: Path) -> None:
    if Image.registered_extensions().get(path.suffix.lower()) not in Image.SAVE:
        raise ValueError(
            f"the ending of {path} does not say what to write: .npz keeps the measurement exactly, "
            ".png, .tif, .jpg or .webp are pictures"
        )
    if not is_picture(problem.operator):
        shape = problem.operator.measurement_shape
        raise ValueError(f"a measurement of shape {shape} is not a picture: give --out a name that ends in .npz")


def load_measurement(path: Path, build: Build = make_operator) -> InverseProblem:
    """Read an .npz that `save_measurement` wrote."""
    stored = load_npz(path)
    if not {"y", "description"} <= stored.keys():
        raise ValueError(
            f"{path} holds {', '.join(stored) or 'no array'}: save the image alone, or give a measurement that "
            "`snips degrade` wrote"
        )
    try:
        description = json.loads(str(stored.pop("description")))
        tensors = {name: torch.from_numpy(value) for name, value in stored.items()}
        recipe, y, sigma_0 = description["operator"], tensors["y"], description["sigma_0"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"its description lacks {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{path} is not a measurement written by `snips degrade`: {reason}") from error
    return InverseProblem(storage.recipe_from_json(recipe, tensors, build), y, sigma_0)


def is_measurement(path: Path) -> bool:
    """An .npz with more than one array: it describes its operator, or is refused as one that should."""
    return path.suffix.lower() == ".npz" and path.is_file() and len(npz_names(path)) != 1


def load_array(path: Path) -> Tensor:
    """A mask, a kernel or a matrix: the numbers of .npy and .npz as they are, an image as grey values in [0, 1]."""
    suffix = path.suffix.lower()
    if suffix not in ARRAYS:
        return load_image(path).mean((0, 1))
    array = load_npy(path) if suffix == ".npy" else only_array(path)
    if array.dtype.kind not in "buif" or not np.isfinite(array).all():
        raise ValueError(f"{path} must hold real and finite numbers")
    if array.size == 0:
        raise ValueError(f"{path} is empty: its shape is {array.shape}")
    return in_own_memory(torch.from_numpy(array.astype(np.float64)))


def entries(problem: InverseProblem) -> str:
    """For people: how much was measured."""
    measured, wanted = math.prod(problem.operator.measurement_shape), math.prod(problem.operator.image_shape)
    return f"{measured:,} measurements of {wanted:,} values"
