"""Training of our own priors; `python -m snips.training --help`."""

from snips.training.loop import TrainSettings, train
from snips.training.presets import PRESETS

__all__ = ["PRESETS", "TrainSettings", "train"]
