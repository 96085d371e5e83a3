"""From a file and what was typed about it to a problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from snips import measurements
from snips.cli.problem_options import DEFAULT_SIGMA, problem_name, read_numbers
from snips.noise import estimate_noise
from snips.photo_problems import AUTO, PhotoProblem, pose, simulate
from snips.photos import ValueRange, load_photo


def posed_problem(
    file: Path,
    problem: str | None,
    sigma: float | str | None,
    simulated: bool,
    seed: int,
    options: dict[str, Any],
    values: ValueRange | None,
    shape: str | None,
) -> PhotoProblem:
    """The file as a stored measurement, as y, or as the truth."""
    if measurements.is_measurement(file):
        if problem is not None or options or simulated or values is not None or shape is not None:
            raise ValueError(f"{file} knows its problem: leave out --problem, --simulate and the problem's options")
        return _stored(file, sigma)
    name = problem_name(problem, options)
    if name == "matrix" and values is None and file.suffix.lower() in (".npy", ".npz"):
        values = (0.0, 1.0)  # what a matrix measures has a scale of its own
    photo = load_photo(file, values)
    if simulated:
        return simulate(photo, name, DEFAULT_SIGMA if sigma is None else sigma, seed, options)
    wanted = None if shape is None else read_numbers("--shape", shape, 3, int)
    return pose(photo, name, AUTO if sigma is None else sigma, options, wanted)


def _stored(file: Path, sigma: float | str | None) -> PhotoProblem:
    """A measurement with the noise that it states, or with another."""
    problem = measurements.load_measurement(file)
    if sigma is None:
        return PhotoProblem(problem)
    noise = estimate_noise(problem.operator, problem.y) if isinstance(sigma, str) else None
    known = noise.sigma_0 if noise is not None else sigma
    return PhotoProblem(replace(problem, sigma_0=known), noise=noise)
