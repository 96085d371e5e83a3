"""Measurements that are no pictures, as plain numbers in their own shape and scale: frequencies, projections, sums."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips.buffers import in_own_memory
from snips.operators import Dense, FourierSampling, LinearOperator
from snips.operators.pictures import is_picture
from snips.photos import arrays
from snips.photos.photo import only_array
from snips.posing.measurement_files import ARRAYS
from snips.posing.noise import estimate_noise
from snips.posing.pictures import AUTO, PhotoProblem, refusal
from snips.problems import Build, InverseProblem, Shape


def numbers_in(file: Path, problem: str, image_shape: Shape | None) -> np.ndarray | None:
    """The array of a file that can only be such a measurement; None where it is, or may be, a picture.

    What a matrix measures may be a picture, unless the image has another shape.
    """
    reason = refusal(problem)
    if file.suffix.lower() not in ARRAYS or not (reason or (problem == "matrix" and image_shape is not None)):
        return None
    if image_shape is None:
        raise ValueError(
            f"{problem} {reason}: if {file} holds them, say with --shape C,H,W of which image; a clean image needs "
            "--simulate"
        )
    return arrays.load_npy(file) if file.suffix.lower() == ".npy" else only_array(file)


def pose_numbers(
    values: np.ndarray, problem: str, sigma_0: float | str, options: dict[str, Any], image_shape: Shape, build: Build
) -> PhotoProblem:
    """Numbers as the measurement of a problem by name."""
    operator = build(problem, image_shape, **options)
    y = as_measurement(values, operator)
    if y is None:
        raise ValueError(
            f"an array of {values.dtype} and shape {values.shape} is not a measurement of {problem} of images "
            f"{image_shape}: that has the shape {operator.measurement_shape}"
        )
    return problem_of(operator, y, sigma_0)


def problem_of(operator: LinearOperator, y: Tensor, sigma_0: float | str) -> PhotoProblem:
    """The problem of a measurement (B, *measurement_shape); its noise is estimated where sigma_0 is "auto"."""
    noise = estimate_noise(operator, y) if sigma_0 == AUTO else None
    return PhotoProblem(InverseProblem(operator, y, noise.sigma_0 if noise else float(sigma_0)), noise=noise)


def as_measurement(values: Any, operator: LinearOperator) -> Tensor | None:
    """Real or complex numbers as y (B, *measurement_shape); None where they are no y of this operator, or a picture.

    The batch may be missing, and so may a single channel, or all axes. Frequencies may be complex numbers.
    """
    y = None if is_picture(operator) else _as_tensor(values)
    if y is not None and y.is_complex() and isinstance(operator, FourierSampling):
        y = torch.view_as_real(y.resolve_conj())
    if y is None or not y.is_floating_point():
        return None
    shape = operator.measurement_shape
    fits = tuple(y.shape) in (shape, shape[1:] if shape[0] == 1 else shape)
    in_order = y.numel() == math.prod(shape) and (y.ndim == 1 or isinstance(operator, Dense))
    if fits or in_order:
        y = y.reshape(1, *shape)
    if tuple(y.shape[1:]) != shape:
        return None
    return in_own_memory(y if y.dtype == torch.float64 else y.float())


# What torch holds numbers of NumPy in, by their kind: single and double. Other byte orders it does not know.
KINDS: dict[str, tuple[Any, Any]] = {"f": (np.float32, np.float64), "c": (np.complex64, np.complex128)}


def _as_tensor(values: Any) -> Tensor | None:
    """A tensor as it is, an array of real or complex numbers; None for all else."""
    if isinstance(values, Tensor):
        return values
    if not isinstance(values, np.ndarray) or values.dtype.kind not in KINDS:
        return None
    single, double = KINDS[values.dtype.kind]
    return torch.from_numpy(values.astype(double if values.dtype.itemsize > np.dtype(single).itemsize else single))
