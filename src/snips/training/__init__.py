"""Training of our own priors: what `snips train` runs."""

from snips.training.loop import train
from snips.training.presets import PRESETS, with_network
from snips.training.settings import TrainSettings

__all__ = ["PRESETS", "TrainSettings", "train", "with_network"]
