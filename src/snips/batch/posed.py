"""From the row of an item to the problem that it describes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from snips.batch import stacks
from snips.batch.items import OPTION, Item
from snips.buffers import in_own_memory
from snips.images import load_image
from snips.operators import LinearOperator
from snips.photos.photo import as_photo, checked_range
from snips.posing.grey import as_grey
from snips.posing.measured import (
    DEFAULT_SIGMA,
    file_options,
    option_value,
    posed_problem,
    problem_name,
    read_numbers,
    sigma_from,
)
from snips.posing.noise import estimate_noise
from snips.posing.pictures import AUTO, PhotoProblem, pose, simulate
from snips.problems import Build, InverseProblem


def posed_item(item: Item, seed: int, build: Build, grey: bool) -> PhotoProblem:
    """The problem that an item's row describes; a file that cannot be read is bad input."""
    row = item.row
    try:
        posed = (_from_stack if "index" in row else _from_file)(row, seed, build, grey)
        if "truth" not in row:
            return posed
        return replace(posed, problem=replace(posed.problem, truth=load_image(row["truth"]).to(posed.problem.y)))
    except OSError as error:
        raise ValueError(f"{row['file']}: {error}") from error


def _from_file(row: dict[str, Any], seed: int, build: Build, grey: bool) -> PhotoProblem:
    options = _options(row)
    return posed_problem(
        Path(row["file"]),
        row.get("problem"),
        _sigma(row, options),
        bool(row.get("simulate")),
        seed,
        options,
        _range(row),
        row.get("shape"),
        build,
        grey,
    )


def _from_stack(row: dict[str, Any], seed: int, build: Build, grey: bool) -> PhotoProblem:
    """A slice of an array: in the shape of the problem's measurement where the image's is said, else as a picture."""
    values = stacks.read(Path(row["file"]), row["dataset"], row["index"])
    options = _options(row)
    name, sigma = problem_name(row.get("problem"), options), _sigma(row, options)
    shape = None if row.get("shape") is None else read_numbers("--shape", row["shape"], 3, int)
    if shape is not None and values.dtype.kind == "f":
        operator = build(name, shape, **options)
        if values.shape == operator.measurement_shape:
            return _measured(operator, in_own_memory(torch.from_numpy(values.copy())[None]), sigma)
    photo = as_photo(values, _range(row))
    if grey and shape is None:
        photo = as_grey(photo, name, options)
    if row.get("simulate"):
        return simulate(photo, name, DEFAULT_SIGMA if sigma is None else sigma, seed, options, build)
    return pose(photo, name, AUTO if sigma is None else sigma, options, shape, build)


def _measured(operator: LinearOperator, y: Tensor, sigma: float | str | None) -> PhotoProblem:
    noise = estimate_noise(operator, y) if sigma is None or isinstance(sigma, str) else None
    return PhotoProblem(InverseProblem(operator, y, noise.sigma_0 if noise else float(sigma or 0)), noise=noise)


def _options(row: dict[str, Any]) -> dict[str, Any]:
    paths = {name: None if row.get(name) is None else Path(row[name]) for name in ("mask", "kernel", "matrix")}
    factor = None if row.get("factor") is None else int(row["factor"])
    own = {name.removeprefix(OPTION): option_value(value) for name, value in row.items() if name.startswith(OPTION)}
    return own | file_options(paths["mask"], paths["kernel"], factor, paths["matrix"])


def _sigma(row: dict[str, Any], options: dict[str, Any]) -> float | str | None:
    return sigma_from(row.get("sigma"), problem=problem_name(row.get("problem"), options))


def _range(row: dict[str, Any]) -> tuple[float, float] | None:
    return None if row.get("range") is None else checked_range(*read_numbers("--range", row["range"], 2, float))
