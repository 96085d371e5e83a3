"""A sampler's options from the few that people choose by name."""

from __future__ import annotations

from typing import Any

from snips.samplers.table import SAMPLER_TABLE, Settings, sampler_entry


def option_names() -> list[str]:
    """All that people choose by name, of whatever sampler."""
    return list(dict.fromkeys(name for entry in SAMPLER_TABLE.values() for name in entry.options))


def named_options(sampler: str, **chosen: Any) -> dict[str, Any]:
    """What was chosen of the options that have names (None: not), with the usual values of the others.

    An option of another sampler would have no effect, so it is refused.
    """
    usual = sampler_entry(sampler).options
    for name, value in chosen.items():
        if value is not None and name not in usual:
            takers = [f"`{other}`" for other, entry in SAMPLER_TABLE.items() if name in entry.options]
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for {' and '.join(takers)}, and has no effect on {sampler}: leave it out")
    return {name: value if chosen.get(name) is None else chosen[name] for name, value in usual.items()}


def sampler_settings(sampler: str, **named: Any) -> dict[str, Any]:
    """The sampler's settings from options that have names, checked before anything is said or computed."""
    entry = sampler_entry(sampler)
    return entry.settings(**{**entry.options, **named})


def doubt_about(sampler: str, settings: Settings) -> str | None:
    """Why samples with these settings may be no good, where that is known before they are drawn."""
    doubt = sampler_entry(sampler).doubt
    return None if doubt is None else doubt(settings)
