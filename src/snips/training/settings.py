"""All there is to choose about a training run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from snips.names import check_count, unknown_name
from snips.priors.precision import check_precision
from snips.priors.unet import UNetConfig
from snips.training.loss import NoiseLevels
from snips.training.networks import Config
from snips.training.optim import OPTIMISERS

CHECKPOINT, WEIGHTS, EXAMPLES = "checkpoint.pt", "weights.safetensors", "examples.png"  # in the folder of a run


@dataclass(frozen=True)
class TrainSettings:
    """A run. Given again with the same `out` it goes on; network, optimiser, averages and data may not change then."""

    folders: tuple[str, ...]
    out: str
    cache: str
    prepare: str = "none"  # a name in data.PREPARE
    network: Config = field(default_factory=UNetConfig)
    levels: NoiseLevels = field(default_factory=NoiseLevels)  # of a U-Net; an NCSNv2 has its own
    mix: tuple[int, ...] = ()  # channel counts to draw from, repeated at will; empty: those of the network
    crop: int = 64
    batch: int = 8  # images per step and process
    chunk: int | None = None  # how many of them go through the network at once; all, unless given
    optimiser: str = "adam"  # a name in optim.OPTIMISERS
    lr: float = 8e-4
    clip: float = 1.0  # largest norm of the gradient
    warmup: int = 300  # steps of growing learning rate
    steps: int | None = None  # the last step; None trains until killed
    cooldown: int = 0  # steps before the last in which the learning rate falls to 0
    averages: tuple[float, ...] = (16.97, 6.94)  # exponents of the weight averages; the first is exported
    seed: int = 0
    minutes: float = 10.0  # between checkpoints
    held_out: int = 64  # images in the held-out table
    precision: str = "float32"  # of the products; "bfloat16" is faster on CPUs that have it
    compile: bool = False  # fuse the network's small operations; needs a C++ compiler
    tensorboard: bool = False  # besides log.jsonl
    device: str = "cpu"  # with several processes each takes the graphics processor of its own number
    init: str | None = None  # weights to start from, where there is no checkpoint

    def __post_init__(self) -> None:
        for name in ("crop", "batch", "warmup", "held_out"):
            check_count(name, getattr(self, name))
        for name in ("steps", "chunk"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_precision(self.precision)
        if self.optimiser not in OPTIMISERS:
            raise ValueError(unknown_name("optimiser", self.optimiser, list(OPTIMISERS)))
        if not 0 < self.lr < math.inf:
            raise ValueError(f"lr must be above 0 and finite, but is {self.lr}")
        for name in ("cooldown", "minutes", "seed"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, but is {getattr(self, name)}")
        if self.seed >= 2**63:
            raise ValueError(f"seed must be below 2^63, but is {self.seed}")
        size = getattr(self.network, "size", None)
        if size is not None and size != (self.crop, self.crop):
            raise ValueError(f"this network is for whole images of {size[0]} x {size[1]} pixels: leave out --crop")

    @property
    def own(self) -> tuple[Path, ...]:
        """What the run itself writes: nothing to learn from, even where it lies among the images."""
        return Path(self.out), Path(self.out) / EXAMPLES, Path(self.cache)
