"""Where a run stands: all that changes in it, and what a checkpoint must agree in before the run goes on from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from snips.priors.base import Prior
from snips.training.checkpoint import what_to_do
from snips.training.distributed import world
from snips.training.ema import PowerAverage
from snips.training.image_files import listing_digest
from snips.training.networks import Config, signature
from snips.training.optim import optimiser_name
from snips.training.settings import WEIGHTS, TrainSettings

NEEDED = {"model", "optimiser", "averages", "step", "seconds"}  # in every version's checkpoints


@dataclass
class TrainState:
    """All that changes during a run."""

    config: Config
    model: Prior
    optimiser: torch.optim.Optimizer
    averages: list[PowerAverage]
    data: dict[str, Any] = field(default_factory=dict)  # what its steps are drawn from, see `drawn_from`
    step: int = 0
    seconds: float = 0.0  # computed in steps, over all starts
    inherited: float = 0.0  # of these, those of the weights that it started from

    def as_dict(self) -> dict[str, Any]:
        form, config = signature(self.config)
        return {
            "format": form,
            "config": config,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "optimiser_name": optimiser_name(self.optimiser),
            "averages": [a.state() for a in self.averages],
            "exponents": [a.gamma for a in self.averages],
            "data": self.data,
            "step": self.step,
            "seconds": self.seconds,
            "inherited": self.inherited,
        }

    def restore(self, stored: dict[str, Any], path: Path) -> None:
        """Go on from the checkpoint at this path, if it is one of this run."""
        there = stored.get("format"), stored.get("config")
        if signature(self.config) != there:
            raise ValueError(f"{path} is of another network ({', '.join(map(str, there))}); choose another --out")
        if missing := NEEDED - stored.keys():
            lacking = ", ".join(sorted(missing))
            raise ValueError(f"{path} is no checkpoint of a run: it lacks {lacking}; {what_to_do(path)}")
        _check_data(self.data, stored, path)
        _check_optimiser(self.optimiser, stored, path)
        _check_averages(self.averages, stored, path)
        self.model.load_state_dict(stored["model"])
        self.optimiser.load_state_dict(stored["optimiser"])
        for average, weights in zip(self.averages, stored["averages"], strict=True):
            average.restore(weights)
        self.step, self.seconds = stored["step"], stored["seconds"]
        self.inherited = stored.get("inherited", 0.0)


def drawn_from(settings: TrainSettings) -> dict[str, Any]:
    """What decides the images and the noise of a step. Folders may have moved, but must hold the same files."""
    chosen = {name: getattr(settings, name) for name in ("prepare", "crop", "batch", "seed")}
    images = listing_digest(settings.folders, settings.own)
    levels = [list(values) for values in asdict(settings.levels).values()]
    return {"images": images, **chosen, "mix": list(settings.mix), "levels": levels, "processes": world()}


def _check_data(wanted: dict[str, Any], stored: dict[str, Any], path: Path) -> None:
    """With other images or noise the run would not end as if it had never stopped; earlier versions do not tell."""
    there, weights = stored.get("data", wanted), path.with_name(WEIGHTS)
    begin = f", or begin another run from its weights with --init {weights} and another --out"
    for name, value in wanted.items():
        if there.get(name, value) != value:
            what = "other images" if name == "images" else f"{name} {there[name]}, not {value}"
            advice = f"go on with those{begin if weights.exists() else ', or choose another --out'}"
            raise ValueError(f"{path} was trained with {what}: {advice}")


def _check_optimiser(optimiser: torch.optim.Optimizer, stored: dict[str, Any], path: Path) -> None:
    """Checkpoints of earlier versions do not name theirs: its groups of parameters tell."""
    wanted, there = optimiser_name(optimiser), stored.get("optimiser_name")
    if there is None:
        fits = _group_sizes(stored["optimiser"]) == _group_sizes(optimiser.state_dict())
        there = wanted if fits else "another optimiser"
    if there != wanted:
        raise ValueError(f"{path} was trained with {there}, not {wanted}: go on with that, or choose another --out")


def _group_sizes(state: dict[str, Any]) -> list[int]:
    return [len(group["params"]) for group in state["param_groups"]]


def _check_averages(averages: list[PowerAverage], stored: dict[str, Any], path: Path) -> None:
    """Checkpoints of earlier versions do not tell the exponents, only how many there are."""
    wanted, count = [average.gamma for average in averages], len(stored["averages"])
    there = stored.get("exponents", wanted if len(wanted) == count else f"{count} unknown ones")
    if there != wanted:
        raise ValueError(f"{path} averages weights with the exponents {there}, not {wanted}: choose another --out")
