"""The table of samplers by name: all that commands, costs and checks know of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from snips.names import unknown_name
from snips.samplers.annealed_langevin import PRESETS, langevin, noise_of_states
from snips.samplers.matrix_free import matrix_free
from snips.samplers.matrix_free import planned_sigmas as matrix_free_plan
from snips.samplers.predictor_corrector import fast
from snips.samplers.predictor_corrector import planned_sigmas as fast_plan
from snips.schedules import FEWEST_CALLS, check_calls, geometric

USUAL_CALLS, USUAL_PRESET = 100, "celeba"
MUCH_LEFT = 2.0  # times the last noise level: with the paper's settings it is 1.06 and 1.10

Function = Callable[..., Tensor]
Settings = Mapping[str, Any]  # of a sampler's function: its arguments beside those that all samplers share


@dataclass(frozen=True)
class Doubled:
    """The argument of a sampler's function that `verify` doubles, and with it the calls of the denoiser."""

    option: str
    default: int  # of the function
    replaced_by: str | None = None  # another argument: where it is given, this one has no effect


def nfe_settings(nfe: int) -> dict[str, Any]:
    check_calls(nfe)
    return {"nfe": nfe}


def nfe_calls(settings: Settings) -> int:
    return settings["nfe"]


def langevin_settings(preset: str, levels: int | None, actual_noise: bool) -> dict[str, Any]:
    if preset not in PRESETS:
        raise ValueError(unknown_name("preset", preset, list(PRESETS)))
    chosen = PRESETS[preset]
    sigmas = {} if levels is None else {"sigmas": geometric(chosen.first, chosen.last, levels)}
    return {**chosen.options(), **sigmas, "actual_noise": actual_noise}


def langevin_calls(settings: Settings) -> int:
    return len(settings["sigmas"]) * settings["tau"]


def few_levels(settings: Settings) -> str | None:
    """The paper's sampler needs many levels: with few its samples are noise, whatever was measured."""
    sigmas = settings["sigmas"]
    left = noise_of_states(sigmas, settings["c"], settings["tau"])[-1]
    if left <= MUCH_LEFT * float(sigmas[-1]):
        return None
    return f"{len(sigmas)} levels are too few: noise of about {left:.2g} stays in the samples"


@dataclass(frozen=True, eq=False)
class SamplerEntry:
    """One row of SAMPLER_TABLE. The defaults are those of a sampler that takes its number of calls as `nfe`."""

    function: Function  # takes what `restore` gives to all samplers, `chunk`, and its own settings, as `fast` does
    summary: str = ""  # beside its name in `--help`
    # what people choose by name, with its usual values, and the settings that follow from all of it, checked
    options: Mapping[str, Any] = field(default_factory=lambda: {"nfe": USUAL_CALLS})
    settings: Callable[..., dict[str, Any]] = nfe_settings
    calls: Callable[[Settings], int] = nfe_calls  # of the denoiser for each sample
    doubt: Callable[[Settings], str | None] | None = None  # why samples with such settings may be no good
    # (problem, **settings, **_): the noise level of each call, where the sampler chooses them by itself
    planned_sigmas: Callable[..., list[float]] | None = None
    doubled: Doubled = Doubled("nfe", USUAL_CALLS, replaced_by="sigmas")
    shortest: Settings = field(default_factory=lambda: {"nfe": FEWEST_CALLS})  # of a trial run that measures the cost
    without_svd: str | None = None  # the sampler in its place, with the same settings, where H has no SVD


SAMPLER_TABLE: dict[str, SamplerEntry] = {
    "fast": SamplerEntry(fast, planned_sigmas=fast_plan, without_svd="matrix_free"),
    "langevin": SamplerEntry(
        langevin,
        summary="the paper's Algorithm 1",
        options={"preset": USUAL_PRESET, "levels": None, "actual_noise": False},
        settings=langevin_settings,
        calls=langevin_calls,
        doubt=few_levels,
        doubled=Doubled("tau", PRESETS["celeba"].tau),
        shortest={"sigmas": torch.tensor([1.0]), "tau": 1},
    ),
    "matrix_free": SamplerEntry(matrix_free, summary="without an SVD", planned_sigmas=matrix_free_plan),
}


def sampler_entry(name: str) -> SamplerEntry:
    """The row of a sampler; an unknown name ends with the known ones."""
    if name not in SAMPLER_TABLE:
        raise ValueError(unknown_name("sampler", name, list(SAMPLER_TABLE)))
    return SAMPLER_TABLE[name]


class SamplerFunctions(MutableMapping[str, Function]):
    """The functions of a table by name. One that is put here replaces that of its row, or gets a row of defaults."""

    def __init__(self, table: dict[str, SamplerEntry]) -> None:
        self.table = table

    def __getitem__(self, name: str) -> Function:
        return self.table[name].function

    def __setitem__(self, name: str, function: Function) -> None:
        row = self.table.get(name)
        self.table[name] = SamplerEntry(function) if row is None else replace(row, function=function)

    def __delitem__(self, name: str) -> None:
        del self.table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)
