"""Training of our own priors: what `snips train` runs."""

from snips.training.data import are_grey
from snips.training.loop import train
from snips.training.presets import PRESETS, with_channels, with_network, with_network_of
from snips.training.settings import TrainSettings

__all__ = ["PRESETS", "TrainSettings", "are_grey", "train", "with_channels", "with_network", "with_network_of"]
