"""Training of our own priors: what `snips train` runs."""

from snips.training.distributed import is_first
from snips.training.image_files import are_grey
from snips.training.loop import train
from snips.training.presets import PRESETS, with_channels, with_network, with_network_of
from snips.training.settings import CHECKPOINT, TrainSettings

__all__ = [
    "CHECKPOINT",
    "PRESETS",
    "TrainSettings",
    "are_grey",
    "is_first",
    "train",
    "with_channels",
    "with_network",
    "with_network_of",
]
