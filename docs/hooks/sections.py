"""A section of the page of measurements: heading, table, and where its figures come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snips.samplers.multistep import STEPS_VERSION

ROOT = Path(__file__).parents[2]
FORMER = "Measured with former steps of `fast`, see the [trials](fast_sampler_trials.md)."


@dataclass(frozen=True)
class Measurement:
    """One section of the page."""

    title: str
    file: Path
    command: str
    note: str
    describe: Callable[[Any], str]  # the stored record -> Markdown
    of_fast: bool = False  # whether samples of `fast` were measured


def section(measurement: Measurement) -> str:
    """Heading, table, and where the figures come from; or how to get them."""
    head = f"## {measurement.title}\n\n"
    if not measurement.file.is_file():
        return f"{head}Not run yet: `{measurement.command}`.\n"
    record = json.loads(measurement.file.read_text(encoding="utf-8"))
    command, machine = record.get("command", measurement.command), record.get("machine")
    made = f"`{measurement.file.relative_to(ROOT)}`, made by `{command}`" + (f" ({machine})" if machine else "")
    former = f"{FORMER}\n\n" if measurement.of_fast and steps_of(record) != {STEPS_VERSION} else ""
    return f"{head}{measurement.note}\n\n{former}{measurement.describe(record)}\n{made}.\n"


def steps_of(record: dict[str, Any]) -> set[int | None]:
    """The versions of the fast sampler's steps: of the whole record, or of each row."""
    if "steps" in record or not isinstance(record["results"], list):
        return {record.get("steps")}
    return {row["steps"] for row in record["results"] if "steps" in row}
