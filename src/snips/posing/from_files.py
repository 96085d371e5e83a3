"""From files and what was said about them to a problem."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from snips.photos.photo import ValueRange, load_photo
from snips.posing import measurement_files
from snips.posing.grey import as_grey
from snips.posing.noise import estimate_noise
from snips.posing.numbers import numbers_in, pose_numbers
from snips.posing.options import normalised
from snips.posing.pictures import AUTO, PhotoProblem, pose, simulate
from snips.problems import PROBLEMS, Build, make_operator, problem_entry

DEFAULT_PROBLEM, DEFAULT_SIGMA = "denoise", 0.1


def file_options(mask: Path | None, kernel: Path | None, factor: int | None, matrix: Path | None) -> dict[str, Any]:
    """The options of a problem that have a name of their own; arrays from files."""
    options: dict[str, Any] = {}
    if mask is not None:
        options["mask"] = _read_mask(mask)
    if kernel is not None:
        options["kernel"] = _read_kernel(kernel)
    if factor is not None:
        options["factor"] = factor
    if matrix is not None:
        options["matrix"] = _read_matrix(matrix)
    return options


def _read_mask(path: Path) -> Tensor:
    """Bright is seen. What is bright is told by the brightest: 255, and also 1 in files that hold 0 and 1."""
    _check_opaque(path, "the mask", "white is what was seen, black the rest")
    values = measurement_files.load_array(path)
    brightest = values.max()
    if not brightest > 0:
        raise ValueError(f"the mask {path} hides every pixel: white is what was seen, black what was not")
    return values >= brightest / 2


def _read_kernel(path: Path) -> Tensor:
    _check_opaque(path, "the kernel", "black is no weight")
    weights = measurement_files.load_array(path)
    if not weights.any():
        raise ValueError(f"the weights of the kernel {path} sum to 0: it is zero everywhere")
    return normalised(weights, f"the kernel {path}")


def _check_opaque(path: Path, what: str, meaning: str) -> None:
    """Nobody knows what is meant where a picture cannot be seen."""
    if path.suffix.lower() not in measurement_files.ARRAYS and load_photo(path).alpha is not None:
        raise ValueError(f"{what} {path} is transparent in places: fill them, {meaning}")


def _read_matrix(path: Path) -> Tensor:
    if path.suffix.lower() != ".npy":
        raise ValueError(f"the matrix is read from a .npy file, not from {path}: numpy.save writes one")
    matrix = measurement_files.load_array(path)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"the matrix {path} needs rows and columns, but has shape {tuple(matrix.shape)}")
    return matrix


def option_value(text: Any) -> Any:
    """The value as JSON where it is, else as it is."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except json.JSONDecodeError:
        return text


def problem_name(given: str | None, options: dict[str, Any]) -> str:
    """As given, or as implied by --mask, --kernel, --factor or --matrix."""
    implied = [name for name, entry in PROBLEMS.items() if entry.named_by in options]
    return given or (implied[0] if implied else DEFAULT_PROBLEM)


def read_numbers(option: str, text: str, count: int | None, kind: type) -> tuple[Any, ...]:
    """A list such as 3,64,64; of any length where there is no count."""
    try:
        numbers = tuple(kind(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or len(numbers) != (count or len(numbers)):
        raise ValueError(f"{option} takes {count or 'some'} numbers with commas between them, not {text!r}")
    return numbers


def sigma_from(
    text: str | float | None, confirm: Callable[[str], bool] = lambda _: False, own_scale: bool = False
) -> float | str | None:
    """A number in units of pixels in [0, 1], or "auto". `confirm` is asked about one that is meant for 0 to 255.

    With `own_scale` the measurement has other units, or somebody else checks the number.
    """
    if text is None or (isinstance(text, str) and text.strip().lower() == AUTO):
        return text and AUTO
    try:
        sigma = float(text)
    except ValueError:
        raise ValueError(f"--sigma takes a number or auto, not {text!r}") from None
    if not math.isfinite(sigma):
        raise ValueError(f"--sigma takes a finite number or auto, not {text!r}")
    if sigma <= 1 or own_scale:
        return sigma
    meant = sigma / 255
    told = f"--sigma {sigma:g} is more than the whole range of pixels, which is 0 to 1 here"
    if confirm(f"{told}. Is it meant for 0 to 255, that is {meant:.4g}?"):
        return meant
    raise ValueError(f"{told}: did you mean --sigma {meant:.4g}, which is {sigma:g}/255?")


def posed_problem(
    file: Path,
    problem: str | None,
    sigma: float | str | None,
    simulated: bool,
    seed: int,
    options: dict[str, Any],
    values: ValueRange | None,
    shape: str | None,
    build: Build = make_operator,
    grey: bool = False,
) -> PhotoProblem:
    """The file as a stored measurement, as y, or as the truth; with `grey`, three equal channels are taken as one."""
    if measurement_files.is_measurement(file):
        if problem is not None or options or simulated or values is not None or shape is not None:
            measurement_files.load_measurement(file, build)  # a file that is none, or damaged, has a reason of its own
            raise ValueError(f"{file} knows its problem: leave out --problem, --simulate and the problem's options")
        return _stored(file, sigma, build)
    name = problem_name(problem, options)
    wanted = None if shape is None else read_numbers("--shape", shape, 3, int)
    level = AUTO if sigma is None else sigma
    if not simulated and (values is None or problem_entry(name).no_picture):
        if (numbers := numbers_in(file, name, wanted)) is not None and wanted is not None:
            posed = pose_numbers(numbers, name, level, options, wanted, build, has_range=values is not None)
            if posed is not None:
                return posed
        if problem_entry(name).own_scale and file.suffix.lower() in measurement_files.ARRAYS:
            values = (0.0, 1.0)
    photo = load_photo(file, values)
    if grey and wanted is None:
        photo = as_grey(photo, name, options)
    if simulated:
        return simulate(photo, name, DEFAULT_SIGMA if sigma is None else sigma, seed, options, build)
    return pose(photo, name, level, options, wanted, build)


def _stored(file: Path, sigma: float | str | None, build: Build) -> PhotoProblem:
    """A measurement with the noise that it states, or with another."""
    problem = measurement_files.load_measurement(file, build)
    if sigma is None:
        return PhotoProblem(problem)
    recipe = problem.operator.recipe
    sigma = sigma_from(sigma, own_scale=recipe is not None and problem_entry(recipe.name).own_scale)
    if isinstance(sigma, float):
        return PhotoProblem(replace(problem, sigma_0=sigma))
    noise = estimate_noise(problem.operator, problem.y)
    return PhotoProblem(replace(problem, sigma_0=noise.sigma_0), noise=noise)
