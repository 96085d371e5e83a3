"""The flow below the noise of y: which steps belong to it, and the denoised image of the middle of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from snips.samplers.base import repeats
from snips.samplers.states import State, remembered

Shown = Callable[[float], bool]  # whether a noise level hides nothing that is measured
STEPS_VERSION = 2  # of `fast` and `matrix_free`: a state that other steps stored is of another run
FIRST_STEP = 0.45  # sigma' / sigma of the flow's first step, at the least: larger ones lose too much variance
LONGER = 2.0  # than the step before: as far as `in_the_middle` looks ahead


def flows(plan: Sequence[float], i: int, shown: Shown) -> bool:
    """Whether the step after call i is one of the flow: nothing is hidden, and no correction follows at either level.

    The first one, whose order is the first, must not be all too large.
    """
    if i + 1 >= len(plan) or not shown(plan[i]) or repeats(plan, i) or repeats(plan, i + 1):
        return False
    return plan[i + 1] >= FIRST_STEP * plan[i] or (i > 0 and flows(plan, i - 1, shown))


def in_the_middle(denoised: Tensor, state: State, plan: Sequence[float], i: int, shown: Shown) -> Tensor:
    """D of the middle of the step after call i of the flow, extrapolated from D and the remembered one before it.

    It is D + min(h / h_, 2) / 2 (D - D_), h = log(sigma / sigma') and h_ that of the step before: the second-order
    multistep solver of Lu et al. 2022 (DPM-Solver++ 2M), but that a step which is more than twice as long as the one
    before looks no further ahead. The first step of the flow has D itself.
    """
    if i == 0 or not flows(plan, i - 1, shown):
        return denoised
    h_before, h = (math.log(plan[j] / plan[j + 1]) for j in (i - 1, i))
    return remembered(state).lerp(denoised, 1 + min(h / h_before, LONGER) / 2)
