"""Sequences of noise levels."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def geometric(first: float, last: float, levels: int) -> Tensor:
    """`levels` noise levels from first down to last with a constant ratio (Song and Ermon 2019). In float64."""
    if not (first >= last > 0 and math.isfinite(first)):
        raise ValueError(f"noise levels must fall and stay positive, not go from {first} to {last}")
    if levels < 1:
        raise ValueError(f"a schedule needs at least one level, not {levels}")
    return torch.logspace(math.log10(first), math.log10(last), levels, dtype=torch.float64)


def checked_sigmas(sigmas: Tensor) -> list[float]:
    """The noise levels as numbers: finite, positive and not rising."""
    values = torch.as_tensor(sigmas, dtype=torch.float64).flatten()
    if not len(values) or not torch.isfinite(values).all() or (values <= 0).any():
        raise ValueError("noise levels (sigmas) must be finite and positive, and there must be at least one")
    if (values.diff() > 0).any():
        raise ValueError("noise levels (sigmas) must fall from the first to the last")
    return values.tolist()


FEWEST_CALLS = 4  # of the fast sampler
FINEST, FINE = 0.002, 0.01  # the last noise level lies between


def noise_plan(spread: float, shown: float, nfe: int) -> list[float]:
    """The noise level of each of nfe calls; a level that is repeated is corrected there.

    Args:
        spread: the largest standard deviation that y may leave open.
        shown: sigma_0 / s_max; below this level of noise no measured coordinate is hidden.
    """
    last = min(FINE, max(shown / 2, FINEST))
    first = max(3 * spread, 4 * last)
    levels = geometric(first, last, max(2, nfe // 3)).tolist()
    extra = nfe - len(levels)
    out = []
    for i, level in enumerate(levels):
        out += [level] * (1 + extra * (i + 1) // len(levels) - extra * i // len(levels))
    return out
