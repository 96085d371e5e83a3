"""From files and what was said about them to a problem."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from snips.photos.photo import Photo, ValueRange, load_photo
from snips.posing import measurement_files
from snips.posing.grey import as_grey
from snips.posing.noise import estimate_noise
from snips.posing.numbers import numbers_in, pose_numbers
from snips.posing.options import normalised
from snips.posing.pictures import AUTO, PhotoProblem, pose, simulate
from snips.problems import PROBLEMS, Build, make_operator, problem_entry

DEFAULT_PROBLEM, DEFAULT_SIGMA = "denoise", 0.1


@dataclass(frozen=True)
class Said:
    """What was said of a measurement; None where nothing was."""

    problem: str | None = None
    sigma: float | str | None = None
    simulated: bool = False  # the photo is the truth
    seed: int = 0  # of the simulated noise
    options: dict[str, Any] = field(default_factory=dict)  # of the problem
    values: ValueRange | None = None  # of black and white
    shape: tuple[int, int, int] | None = None  # of the image
    grey: bool = False  # three equal channels are taken as one

    @property
    def name(self) -> str:
        return problem_name(self.problem, self.options)

    @property
    def level(self) -> float | str:
        return AUTO if self.sigma is None else self.sigma


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


def read_shape(text: str | None) -> tuple[int, int, int] | None:
    return None if text is None else read_numbers("--shape", text, 3, int)  # pyright: ignore[reportReturnType]


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


def posed_problem(file: Path, said: Said, build: Build = make_operator) -> PhotoProblem:
    """The file as a stored measurement, as y, or as the truth."""
    if measurement_files.is_measurement(file):
        if said.problem is not None or said.options or said.simulated or said.values or said.shape:
            measurement_files.load_measurement(file, build)  # a file that is none, or damaged, has a reason of its own
            raise ValueError(f"{file} knows its problem: leave out --problem, --simulate and the problem's options")
        return _stored(file, said.sigma, build)
    entry, values = problem_entry(said.name), said.values
    if not said.simulated and (values is None or entry.no_picture):
        if (numbers := numbers_in(file, said.name, said.shape)) is not None:
            posed = posed_numbers(numbers, said, build)
            if posed is not None:
                return posed
        if entry.own_scale and file.suffix.lower() in measurement_files.ARRAYS:
            values = (0.0, 1.0)
    return posed_photo(load_photo(file, values), said, build)


def posed_numbers(numbers: np.ndarray, said: Said, build: Build) -> PhotoProblem | None:
    """Numbers that are the problem's measurement as they are; None where they are none, or the shape was not said."""
    if said.shape is None:
        return None
    has_range = said.values is not None
    return pose_numbers(numbers, said.name, said.level, said.options, said.shape, build, has_range=has_range)


def posed_photo(photo: Photo, said: Said, build: Build) -> PhotoProblem:
    """A photo as y, or as the truth."""
    if said.grey and said.shape is None:
        photo = as_grey(photo, said.name, said.options)
    if said.simulated:
        sigma = DEFAULT_SIGMA if said.sigma is None else said.sigma
        return simulate(photo, said.name, sigma, said.seed, said.options, build)
    return pose(photo, said.name, said.level, said.options, said.shape, build)


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
