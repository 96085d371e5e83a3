"""Sequences of noise levels."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from snips.names import is_whole


def geometric(first: float, last: float, levels: int) -> Tensor:
    """`levels` noise levels from first down to last with a constant ratio (Song and Ermon 2019). In float64."""
    if not (first >= last > 0 and math.isfinite(first)):
        raise ValueError(f"noise levels must fall and stay positive, not go from {first} to {last}")
    if levels < 1:
        raise ValueError(f"a schedule needs at least one level, not {levels}")
    return torch.logspace(math.log10(first), math.log10(last), levels, dtype=torch.float64)


SAME_LEVEL = 1e-5  # relative: another rounding is no other noise level
SMALLEST_LEVEL, LARGEST_LEVEL = 1e-12, 1e12  # that may be asked for: squares of these are numbers of single precision


def checked_sigmas(sigmas: Tensor) -> list[float]:
    """The noise levels as numbers: finite, positive and not rising; those that differ by rounding alone are one."""
    try:
        values = torch.as_tensor(sigmas, dtype=torch.float64).flatten()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"noise levels (sigmas) must be numbers: {error}") from error
    if not len(values) or not torch.isfinite(values).all() or (values <= 0).any():
        raise ValueError("noise levels (sigmas) must be finite and positive, and there must be at least one")
    if values.min() < SMALLEST_LEVEL or values.max() > LARGEST_LEVEL:
        raise ValueError(f"noise levels (sigmas) must lie between {SMALLEST_LEVEL:g} and {LARGEST_LEVEL:g}")
    levels: list[float] = []
    for value in values.tolist():
        before = levels[-1] if levels else math.inf
        if value > before * (1 + SAME_LEVEL):
            raise ValueError("noise levels (sigmas) must fall from the first to the last")
        levels.append(before if value > before * (1 - SAME_LEVEL) else value)
    return levels


FEWEST_CALLS, MOST_CALLS = 4, 10**6  # of the fast sampler; more is a slip of the pen
FIRST = 6.0  # times the largest standard deviation that y leaves open
LAST = 0.25  # times sigma_0 / s_max, but between the next two:
FINEST, FINE = 0.002, 0.005
CROSSING = 3.0  # levels are dense within this factor of sigma_0 / s_max
DENSITY = 2.0  # how dense
CORRECTED = (0.6, 3.0)  # times sigma_0 / s_max: between these, levels are corrected
CORRECTED_UP_TO = 0.3  # at the least: where y is precise, what it does not tell is decided far above its noise
CORRECTED_DOWN_TO = 0.02  # and no further: below, errors of a learned denoiser grow with each correction
CALLS_PER_LEVEL = 2  # for each level but the first, on average


def check_calls(nfe: int) -> None:
    if not is_whole(nfe):
        raise ValueError(f"nfe must be a whole number, but is {nfe!r}")
    if nfe < FEWEST_CALLS:
        raise ValueError(f"the fast sampler needs at least nfe={FEWEST_CALLS} calls of the denoiser, not {nfe}")
    if nfe > MOST_CALLS:
        raise ValueError(f"the fast sampler takes at most nfe={MOST_CALLS} calls of the denoiser, not {nfe}")


def noise_plan(spread: float, shown: float, nfe: int) -> list[float]:
    """The noise level of each of nfe calls of the denoiser; a level that is repeated is corrected there.

    Levels have a constant ratio, and a smaller one around `shown`, where the measured coordinates come out of hiding.
    Corrections are there and, where y is precise, at the hidden levels above, whose target is approximate.
    Below, predictions alone keep the law, while corrections would add up the errors of a learned denoiser; at very
    small levels, where it may be expansive, they would even grow. Where all levels are below, the first is corrected
    once: a flow that begins there would never forget the grey image that it started from.

    Args:
        spread: the largest standard deviation that y leaves open.
        shown: sigma_0 / s_max, below which no measured coordinate is hidden; infinite where nothing is measured.
    """
    check_calls(nfe)
    last = min(FINE, max(LAST * shown, FINEST))
    first = max(FIRST * spread, 4 * last)
    levels = dense_around(first, last, shown, 1 + max(nfe // CALLS_PER_LEVEL, 2))
    lowest = max(CORRECTED[0] * shown, CORRECTED_DOWN_TO)
    highest = max(CORRECTED[1] * shown, CORRECTED_UP_TO)
    corrected = [lowest <= level <= highest for level in levels]
    if first < lowest:
        levels = dense_around(first, last, shown, nfe - 1)
        return [levels[0], *levels]
    if not any(corrected):  # few levels may step over them all
        corrected[nearest(levels, math.sqrt(lowest * highest))] = True
    return repeated(levels, corrected, nfe)


def nearest(levels: list[float], wanted: float) -> int:
    """Which level is the one with the ratio nearest to 1."""
    return min(range(len(levels)), key=lambda i: abs(math.log(levels[i] / wanted)))


def dense_around(first: float, last: float, centre: float, levels: int) -> list[float]:
    """Falling noise levels, DENSITY times as many per octave within a factor CROSSING of the centre."""
    edges = [min(max(edge, last), first) for edge in (first, centre * CROSSING, centre / CROSSING, last)]
    knots = [-math.log(edge) for edge in edges]
    widths = [(b - a) * density for a, b, density in zip(knots, knots[1:], (1, DENSITY, 1), strict=False)]
    positions = np.interp(np.linspace(0, sum(widths), levels), np.cumsum([0, *widths]), knots)
    return np.exp(-positions).tolist()


def repeated(levels: list[float], corrected: list[bool], calls: int) -> list[float]:
    """Each level once, and the other calls spread evenly over those that are corrected."""
    spare, share, plan = calls - len(levels), sum(corrected), []
    done = 0
    for level, chosen in zip(levels, corrected, strict=True):
        extra = spare * (done + chosen) // share - spare * done // share
        plan += [level] * (1 + extra)
        done += chosen
    return plan
