"""Samplers of the posterior p(x | y)."""

from snips.samplers.annealed_langevin import PRESETS, LangevinPreset, langevin, langevin_steps
from snips.samplers.base import StepInfo
from snips.samplers.matrix_free import matrix_free, matrix_free_steps
from snips.samplers.predictor_corrector import fast, fast_steps
from snips.samplers.red import red, red_luminance
from snips.samplers.states import State

__all__ = [
    "PRESETS",
    "LangevinPreset",
    "State",
    "StepInfo",
    "fast",
    "fast_steps",
    "langevin",
    "langevin_steps",
    "matrix_free",
    "matrix_free_steps",
    "red",
    "red_luminance",
]
