"""Measurements as files: an image where y is one, or an .npz that also knows its operator and noise level."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips import storage
from snips.files import new_file
from snips.images import load_image, to_picture
from snips.operators import Inpainting
from snips.problems import InverseProblem, make_operator
from snips.report import is_picture


def save_measurement(problem: InverseProblem, path: Path, force: bool = False) -> None:
    """Write y: .npz keeps everything exactly; any other ending is written as an 8-bit picture."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists already: choose another name, or overwrite it with --force")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".npz":
        _save_picture(problem, path)
        return
    tensors, recipe = storage.recipe_to_json(problem.operator)
    description = json.dumps({"operator": recipe, "sigma_0": problem.sigma_0})
    arrays: dict[str, Any] = {name: value.cpu().numpy() for name, value in tensors.items()}
    with new_file(path) as work:
        np.savez_compressed(work, y=problem.y.cpu().numpy(), description=np.array(description), **arrays)


def _save_picture(problem: InverseProblem, path: Path) -> None:
    if not is_picture(problem.operator):
        shape = problem.operator.measurement_shape
        raise ValueError(f"a measurement of shape {shape} is not a picture: give --out a name that ends in .npz")
    with new_file(path) as work:
        to_picture(problem.y[0]).save(work)


def load_measurement(path: Path) -> InverseProblem:
    """Read an .npz that `save_measurement` wrote."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            tensors = {name: torch.from_numpy(stored[name]) for name in stored.files if name != "description"}
            description = json.loads(str(stored["description"]))
        recipe, y, sigma_0 = description["operator"], tensors["y"], description["sigma_0"]
    except Exception as error:  # a damaged archive fails in many ways
        raise ValueError(f"{path} is not a measurement written by `snips degrade`: {error}") from error
    return InverseProblem(storage.recipe_from_json(recipe, tensors), y, sigma_0)


def measure(path: Path, name: str, sigma_0: float, seed: int, options: dict[str, Any]) -> InverseProblem:
    """Take the image file as the truth and simulate a measurement of it."""
    x = load_image(path)
    return InverseProblem.simulate(make_operator(name, tuple(x.shape[1:]), **options), x, sigma_0, seed)


def as_measurement(path: Path, name: str, sigma_0: float, options: dict[str, Any]) -> InverseProblem:
    """Take the image file itself as y."""
    picture = load_image(path)
    operator = make_operator(name, restored_shape(name, tuple(picture.shape[1:])), **options)
    y = operator(picture) if isinstance(operator, Inpainting) else picture
    if tuple(y.shape[1:]) != operator.measurement_shape:
        raise ValueError(
            f"a picture of shape {tuple(y.shape[1:])} is not a measurement of {name}, whose shape is "
            f"{operator.measurement_shape}: make one with `snips degrade`, or degrade a clean image with --simulate"
        )
    return InverseProblem(operator, y, sigma_0)


ENLARGED = {"sr2": 2, "sr4": 4}


def restored_shape(name: str, picture: tuple[int, ...]) -> tuple[int, int, int]:
    """The shape of the image whose measurement is a picture of this shape."""
    channels, height, width = picture
    factor = ENLARGED.get(name, 1)
    return 3 if name == "colorize" else channels, height * factor, width * factor


def load_array(path: Path) -> Tensor:
    """A mask or a kernel: .npy as it is, an image as grey values in [0, 1]."""
    if path.suffix != ".npy":
        return load_image(path).mean((0, 1))
    try:
        array = torch.from_numpy(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as an array of numbers: {error}") from error
    if array.is_complex() or not torch.isfinite(array).all():
        raise ValueError(f"{path} must hold real and finite numbers")
    return array.to(torch.float64)


def entries(problem: InverseProblem) -> str:
    """For people: how much was measured."""
    measured, wanted = math.prod(problem.operator.measurement_shape), math.prod(problem.operator.image_shape)
    return f"{measured:,} measurements of {wanted:,} values"
