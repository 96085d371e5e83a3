"""From the row of an item to the problem that it describes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from snips.batch import stacks
from snips.batch.items import OPTION, Item
from snips.operators.pictures import framed
from snips.photos.photo import as_photo, checked_range, load_photo
from snips.posing.from_files import (
    Said,
    file_options,
    option_value,
    posed_numbers,
    posed_photo,
    posed_problem,
    problem_name,
    read_numbers,
    read_shape,
    sigma_from,
)
from snips.posing.grey import as_grey
from snips.posing.numbers import channels_first
from snips.posing.pictures import PhotoProblem
from snips.problems import Build, problem_entry


def posed_item(item: Item, seed: int, build: Build, grey: bool) -> PhotoProblem:
    """The problem that an item's row describes; a file that cannot be read is bad input."""
    row = item.row
    try:
        posed = (_from_stack if "index" in row else _from_file)(row, _said(row, seed, grey), build)
        if len(posed.problem) != 1:
            raise ValueError(f"{row['file']}: an item is one image, but this one holds {len(posed.problem)}")
        return _with_truth(posed, row) if "truth" in row else posed
    except OSError as error:
        raise ValueError(f"{row['file']}: {error}") from error


def _with_truth(posed: PhotoProblem, row: dict[str, Any]) -> PhotoProblem:
    """The truth is grey where the image is, and has the range of the measurement where it is the same kind of file."""
    operator, path = posed.problem.operator, Path(row["truth"])
    same_kind = path.suffix.lower() == Path(row["file"]).suffix.lower()
    photo = load_photo(path, _range(row) if same_kind else None)
    truth = (as_grey(photo, "denoise", {}) if operator.image_shape[0] == 1 else photo).pixels
    if any(operator.surroundings) and framed(torch.empty(operator.image_shape), operator).shape == truth.shape[1:]:
        raise ValueError(
            "what lies beyond the picture is sampled, too, and its truth is not known: say option.border zero or "
            "circular, or leave out truth"
        )
    return replace(posed, problem=replace(posed.problem, truth=truth.to(posed.problem.y)))


def _said(row: dict[str, Any], seed: int, grey: bool) -> Said:
    options, simulated, shape = _options(row), bool(row.get("simulate")), read_shape(row.get("shape"))
    return Said(row.get("problem"), _sigma(row, options), simulated, seed, options, _range(row), shape, grey)


def _from_file(row: dict[str, Any], said: Said, build: Build) -> PhotoProblem:
    return posed_problem(Path(row["file"]), said, build)


def _from_stack(row: dict[str, Any], said: Said, build: Build) -> PhotoProblem:
    """A slice of an array: the problem's measurement where the shape of the image is said, else a picture."""
    values = stacks.read(Path(row["file"]), row["dataset"], row["index"])
    if said.shape is not None and not said.simulated:
        posed = posed_numbers(values, said, build)
        if posed is not None:
            return posed
        values = channels_first(values, build(said.name, said.shape, **said.options))
    return posed_photo(as_photo(values, said.values), said, build)


def _options(row: dict[str, Any]) -> dict[str, Any]:
    paths = {name: None if row.get(name) is None else Path(row[name]) for name in ("mask", "kernel", "matrix")}
    factor = None if row.get("factor") is None else int(row["factor"])
    own = {name.removeprefix(OPTION): option_value(value) for name, value in row.items() if name.startswith(OPTION)}
    return own | file_options(paths["mask"], paths["kernel"], factor, paths["matrix"])


def _sigma(row: dict[str, Any], options: dict[str, Any]) -> float | str | None:
    return sigma_from(row.get("sigma"), own_scale=problem_entry(problem_name(row.get("problem"), options)).own_scale)


def _range(row: dict[str, Any]) -> tuple[float, float] | None:
    return None if row.get("range") is None else checked_range(*read_numbers("--range", row["range"], 2, float))
