"""Samplers of the posterior p(x | y)."""

from snips.samplers.annealed_langevin import PRESETS, LangevinPreset, langevin, langevin_steps
from snips.samplers.base import State, StepInfo

__all__ = ["PRESETS", "LangevinPreset", "State", "StepInfo", "langevin", "langevin_steps"]
