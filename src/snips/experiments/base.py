"""What all experiments share: what is asked for, the pieces of work, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor

from snips.samplers.base import OnStep

ACTUAL = "langevin-actual"  # Algorithm 1 with `actual_noise`; the paper's network, which sees no sigma, behaves so
ALL_SAMPLERS = ("fast", "langevin", ACTUAL)
WITH_CALLS = ("images", "prior", "precision", "nfe")  # what experiments take that draw samples with `fast` alone


@dataclass(frozen=True)
class Request:
    """What the user asked for; None leaves the choice to the experiment."""

    out: Path  # each experiment has a folder of its own name in it
    data: Path | None = None  # the folder of the image collections
    images: int | None = None
    quick: bool = False  # tiny settings, and bundled pictures unless there is data: does it run?
    bundled: bool = False  # pictures that are always there and may be shown, with full settings
    prior: str | None = None
    precision: str = "float32"  # of the prior's network
    nfe: int | None = None
    samplers: tuple[str, ...] = ALL_SAMPLERS
    seed: int = 0

    @property
    def without_data(self) -> bool:
        return self.bundled or (self.quick and self.data is None)

    def choose(self, full: int, quick: int) -> int:
        """An experiment's own number, for the full or the quick run."""
        return quick if self.quick else full

    def count(self, full: int, quick: int, bundled: int = 1) -> int:
        """How many images: as asked for, or the experiment's own number; there are few that are bundled."""
        return self.images or (bundled if self.bundled else self.choose(full, quick))

    def given(self) -> set[str]:
        """The options that not every experiment has, as far as they were given."""
        chosen = {"images": self.images, "prior": self.prior, "nfe": self.nfe}
        names = {name for name, value in chosen.items() if value is not None}
        names |= {"precision"} if self.precision != "float32" else set()
        return names | ({"sampler"} if self.samplers != ALL_SAMPLERS else set())

    def command(self, name: str) -> str:
        """How to do it again, with FOLDER for the place of the data."""
        words = ["snips experiment", name]
        words += ["--quick"] * self.quick + ["--data FOLDER"] * (self.data is not None)
        words += ["--bundled"] * self.bundled
        given = {"images": self.images, "prior": self.prior, "nfe": self.nfe, "seed": self.seed or None}
        words += [f"--{option} {value}" for option, value in given.items() if value is not None]
        words += [f"--precision {self.precision}"] * (self.precision != "float32")
        words += [f"--sampler {sampler}" for sampler in self.samplers if self.samplers != ALL_SAMPLERS]
        return " ".join(words)


@dataclass(frozen=True)
class Measured:
    """What one piece of work found."""

    facts: dict[str, Any]  # kept as JSON
    tensors: dict[str, Tensor] = field(default_factory=dict)  # what pictures will be made of


@dataclass(frozen=True)
class Part:
    """A piece of work whose result is kept, so that a stopped run goes on after it."""

    key: str  # the name of its files
    label: str  # for people
    compute: Callable[[OnStep], Measured]


@dataclass(frozen=True)
class Outcome:
    results: dict[str, Any]  # what JSON holds, and all that `Experiment.describe` needs
    pictures: dict[str, Image.Image] = field(default_factory=dict)
    command: str | None = None  # what made the results, where it was more than the command of this run


@dataclass(frozen=True)
class Study:
    """An experiment that is ready to run."""

    settings: dict[str, Any]  # what its parts depend on: with other settings they are not used again
    parts: list[Part]
    conclude: Callable[[list[Measured]], Outcome]


@dataclass(frozen=True)
class Experiment:
    """One row of EXPERIMENTS."""

    summary: str
    prepare: Callable[[Request], Study]
    describe: Callable[[dict[str, Any]], str]  # results -> Markdown
    takes: tuple[str, ...] = ("images", "prior", "precision")  # of the options that not every experiment has
