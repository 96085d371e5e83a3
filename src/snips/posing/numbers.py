"""Measurements that are no pictures, as plain numbers in their own shape and scale: frequencies, projections, sums."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips.buffers import in_own_memory
from snips.inverse_problem import InverseProblem
from snips.operators import Dense, FourierSampling, LinearOperator
from snips.operators.pictures import in_rows_and_columns, is_picture
from snips.photos import arrays
from snips.photos.photo import FULL_SCALE, only_array
from snips.posing.measurement_files import ARRAYS
from snips.posing.noise import estimate_noise
from snips.posing.pictures import AUTO, PhotoProblem
from snips.problems import PROBLEMS, Build, Shape, problem_entry


def numbers_in(file: Path, problem: str, image_shape: Shape | None) -> np.ndarray | None:
    """The array of a file that can only be such a measurement; None where it is, or may be, a picture.

    What a matrix or a plug-in measures may be a picture, unless the image has another shape.
    """
    reason = problem_entry(problem).no_picture
    open_scale = problem not in PROBLEMS or PROBLEMS[problem].own_scale
    if file.suffix.lower() not in ARRAYS or not (reason or (open_scale and image_shape is not None)):
        return None
    if image_shape is None:
        raise ValueError(
            f"{problem} {reason}: if {file} holds them, say with --shape C,H,W of which image; a clean image needs "
            "--simulate"
        )
    return arrays.load_npy(file) if file.suffix.lower() == ".npy" else only_array(file)


def pose_numbers(
    values: np.ndarray,
    problem: str,
    sigma_0: float | str,
    options: dict[str, Any],
    image_shape: Shape,
    build: Build,
    has_range: bool = False,
) -> PhotoProblem | None:
    """Numbers as the measurement of a problem by name; None where they can only be a picture."""
    operator = build(problem, image_shape, **options)
    y = as_measurement(values, operator)
    if y is not None:
        check_no_range(operator, problem, has_range)
    if y is not None and not has_range:
        return problem_of(operator, y, sigma_0)
    if problem_entry(problem).no_picture:
        raise ValueError(
            f"an array of {values.dtype} and shape {values.shape} is not a measurement of {problem} of images "
            f"{image_shape}: that has the shape {operator.measurement_shape}"
        )
    return None


def problem_of(operator: LinearOperator, y: Tensor, sigma_0: float | str) -> PhotoProblem:
    """The problem of a measurement (B, *measurement_shape); its noise is estimated where sigma_0 is "auto"."""
    noise = estimate_noise(operator, y) if sigma_0 == AUTO else None
    return PhotoProblem(InverseProblem(operator, y, noise.sigma_0 if noise else float(sigma_0)), noise=noise)


def check_no_range(operator: LinearOperator, name: str, given: bool) -> None:
    """Black and white are said of pixels only: y would be divided by their range, but not H."""
    if given and not operator.pixel_values:
        raise ValueError(
            f"what {name} measures has units of its own, no black and white: leave out --range (value_range in "
            "Python), or set operator.pixel_values = True where it is a picture"
        )


def as_measurement(values: Any, operator: LinearOperator) -> Tensor | None:
    """Numbers as y (B, *measurement_shape) in its own units; None where they are no y of this operator, or a picture.

    The batch may be missing, and so may a single channel, or all axes. Frequencies may be complex numbers.
    """
    y = None if is_picture(operator) else _as_tensor(values)
    if y is None or _is_photo(y, operator):
        return None
    if y.is_complex():
        if not isinstance(operator, FourierSampling):
            return None
        y = torch.view_as_real(y.resolve_conj())
    shape = operator.measurement_shape
    fits = tuple(y.shape) in (shape, shape[1:] if shape[0] == 1 else shape)
    in_order = y.numel() == math.prod(shape) and (y.ndim == 1 or (isinstance(operator, Dense) and not _has_white(y)))
    if fits or in_order:
        y = y.reshape(1, *shape)
    return in_own_memory(_as_floats(y)) if tuple(y.shape[1:]) == shape else None


def has_own_units(values: Any, operator: LinearOperator) -> bool:
    """Whether values are numbers of an operator that measures no pixels: a wrong shape does not make them some."""
    y = None if operator.pixel_values else _as_tensor(values)
    return y is not None and not _is_photo(y, operator)


def channels_first(values: Any, operator: LinearOperator) -> Any:
    """An array of floats in the shape of the picture that is measured as a tensor, whose axes nobody has to guess."""
    if not (isinstance(values, np.ndarray) and values.dtype.kind == "f" and is_picture(operator)):
        return values
    fits = operator.measurement_shape in (values.shape, values.shape[1:])
    found = _as_tensor(values) if fits else None
    return values if found is None else found


def _is_photo(y: Tensor, operator: LinearOperator) -> bool:
    """Whether numbers have an obvious white and the shape of a picture, or the operator measures pixels."""
    return _has_white(y) and (operator.pixel_values or in_rows_and_columns(operator))


def _has_white(y: Tensor) -> bool:
    return str(y.dtype).removeprefix("torch.") in FULL_SCALE


def _as_floats(y: Tensor) -> Tensor:
    """In double precision where it was, or where it takes that to hold large integers."""
    single = y.float()
    exact = y.is_floating_point() or bool((single.double() == y.double()).all())
    return y if y.dtype == torch.float64 else single if exact else y.double()


# What torch holds numbers of NumPy in, by their kind: single and double. Other byte orders it does not know.
KINDS: dict[str, tuple[Any, Any]] = {"f": (np.float32, np.float64), "c": (np.complex64, np.complex128)}


def _as_tensor(values: Any) -> Tensor | None:
    """A dense tensor as it is, an array or a list of numbers; None for all else."""
    if isinstance(values, Tensor):
        return values if values.layout == torch.strided and not (values.is_quantized or values.is_meta) else None
    array = np.asarray(values) if isinstance(values, (list, tuple)) else values
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray) or array.dtype.kind not in "buifc":
        return None
    if array.dtype.kind not in KINDS:
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))
    single, double = KINDS[array.dtype.kind]
    return torch.from_numpy(array.astype(double if array.dtype.itemsize > np.dtype(single).itemsize else single))
