"""What Python users hand to restore(): a problem, or a photo with what they know about it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from snips.inverse_problem import InverseProblem, checked_sigma_0
from snips.operators import LinearOperator
from snips.photos.photo import ValueRange, as_photo, checked_range
from snips.posing.grey import as_grey
from snips.posing.numbers import as_measurement, channels_first, check_no_range, has_own_units, problem_of
from snips.posing.pictures import AUTO, PhotoProblem, pose
from snips.priors.base import Prior
from snips.priors.choice import choose_prior, misfit, prior_for


def given_problem(
    problem: Any,
    operator: str | LinearOperator | None,
    sigma_0: float | str | None,
    value_range: tuple[float, float] | None,
    grey: bool,
) -> PhotoProblem:
    """The problem as it is, or the photo as a measurement; a noise level that is a guess is warned about."""
    if isinstance(problem, (InverseProblem, PhotoProblem)):
        if not operator is sigma_0 is value_range is None:
            raise ValueError(
                "an InverseProblem knows its operator, sigma_0 and values: leave these out, or give the photo alone"
            )
        return problem if isinstance(problem, PhotoProblem) else PhotoProblem(problem)
    measured_by = _checked_operator("denoise" if operator is None else operator)
    level = _checked_level(sigma_0)
    posed = _posed(problem, measured_by, level, _checked_values(value_range), grey)
    if posed.noise is not None and posed.noise.doubt:
        warnings.warn(str(posed.noise), stacklevel=3)
    return posed


def _posed(
    value: Any, operator: str | LinearOperator, level: float | str, values: ValueRange | None, grey: bool
) -> PhotoProblem:
    """Numbers that are the operator's measurement as they are; everything else is a photo."""
    if isinstance(operator, LinearOperator):
        check_no_range(operator, type(operator).__name__, values is not None)
        if values is None and (y := as_measurement(value, operator)) is not None:
            return problem_of(operator, y, level)
        values = (0.0, 1.0) if has_own_units(value, operator) else values
        value = channels_first(value, operator)
    photo = as_photo(value, values)
    return pose(as_grey(photo, operator, {}) if grey else photo, operator, level, {})


def given_prior(prior: Any, problem: InverseProblem, photo: bool) -> Prior:
    """A prior, or one by its name or file; the fitting bundled one for None. For a photo a misfit is warned about."""
    shape = problem.operator.image_shape
    name = choose_prior(shape).name if prior is None else prior
    found = prior if isinstance(prior, Prior) else prior_for(name, shape)
    told = misfit(found, shape)
    if told and (photo or not isinstance(prior, Prior)):  # who poses a problem and loads a prior has chosen both
        warnings.warn(told, stacklevel=3)
    return found if isinstance(prior, Prior) else found.to(problem.y.device)


def _checked_operator(operator: Any) -> str | LinearOperator:
    if not isinstance(operator, (str, LinearOperator)):
        raise ValueError(
            f"operator takes a problem by name or a LinearOperator, not a {type(operator).__name__}: "
            "snips.as_operator(operator, image_shape) makes one of a matrix"
        )
    return operator


def _checked_level(sigma_0: Any) -> float | str:
    if sigma_0 is None or (isinstance(sigma_0, str) and sigma_0.strip().lower() == AUTO):
        return AUTO
    if isinstance(sigma_0, str):
        raise ValueError(f"sigma_0 must be a number or auto, not {sigma_0!r}")
    return checked_sigma_0(sigma_0)


def _checked_values(value_range: Any) -> ValueRange | None:
    if value_range is None:
        return None
    try:
        black, white = (float(value) for value in np.ravel(value_range))
    except (TypeError, ValueError):
        raise ValueError(f"value_range takes two numbers, black and white, not {value_range!r}") from None
    return checked_range(black, white)
