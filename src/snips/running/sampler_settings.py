"""A sampler's options from the few that people choose by name."""

from __future__ import annotations

from typing import Any

from snips.names import unknown_name
from snips.restoration import SAMPLERS
from snips.samplers import PRESETS
from snips.samplers.annealed_langevin import noise_of_states
from snips.schedules import check_calls, geometric

MUCH_LEFT = 2.0  # times the last noise level: with the paper's settings it is 1.06 and 1.10


USUAL_CALLS, USUAL_PRESET = 100, "celeba"
OF_LANGEVIN = ("preset", "levels", "actual_noise")


def named_options(sampler: str, **chosen: Any) -> dict[str, Any]:
    """What was chosen of the options that have names (None: not), with the usual values of the others.

    An option of another sampler would have no effect, so it is refused.
    """
    own, others = (OF_LANGEVIN, ("nfe",)) if sampler == "langevin" else (("nfe",), OF_LANGEVIN)
    for name in others:
        if chosen.get(name) is not None:
            instead = "`fast` and `matrix_free`" if sampler == "langevin" else "`langevin`"
            raise ValueError(
                f"--{name.replace('_', '-')} is for {instead}, and has no effect on {sampler}: leave it out"
            )
    usual = {"nfe": USUAL_CALLS, "preset": USUAL_PRESET, "levels": None, "actual_noise": False}
    return {name: usual[name] if chosen.get(name) is None else chosen[name] for name in own}


def sampler_settings(
    sampler: str,
    nfe: int = USUAL_CALLS,
    preset: str = USUAL_PRESET,
    levels: int | None = None,
    actual_noise: bool = False,
) -> dict[str, Any]:
    """The sampler's options, checked before anything is said or computed."""
    if sampler not in SAMPLERS:
        raise ValueError(unknown_name("sampler", sampler, list(SAMPLERS)))
    if sampler == "langevin":
        return {**_langevin_options(preset, levels), "actual_noise": actual_noise}
    check_calls(nfe)
    return {"nfe": nfe}


def _langevin_options(name: str, levels: int | None) -> dict[str, Any]:
    if name not in PRESETS:
        raise ValueError(unknown_name("preset", name, list(PRESETS)))
    preset = PRESETS[name]
    options = preset.options()
    return options if levels is None else {**options, "sigmas": geometric(preset.first, preset.last, levels)}


def few_levels(sampler: str, settings: dict[str, Any]) -> str | None:
    """The paper's sampler needs many levels: with few its samples are noise, whatever was measured."""
    if sampler != "langevin":
        return None
    sigmas = settings["sigmas"]
    left = noise_of_states(sigmas, settings["c"], settings["tau"])[-1]
    if left <= MUCH_LEFT * float(sigmas[-1]):
        return None
    return f"{len(sigmas)} levels are too few: noise of about {left:.2g} stays in the samples"
