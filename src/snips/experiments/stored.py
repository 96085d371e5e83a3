"""What experiments wrote earlier, read again: somebody may have changed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from snips.files import read_json
from snips.priors.precision import in_precision
from snips.samplers.multistep import STEPS_VERSION


@contextmanager
def stored_record(file: Path, name: str) -> Iterator[dict[str, Any]]:
    """The result.json of an experiment; what is missing in it, or is of another kind, ends the block with one line."""
    record = read_json(file)
    try:
        if record["experiment"] != name:
            raise KeyError(name)
        yield record
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is not what `snips experiment {name}` writes: remove it, and run that again"
        ) from error


def with_former(
    name: str, results: dict[str, Any], file: Path, settings: dict[str, Any], order: Sequence[str]
) -> dict[str, Any]:
    """With the rows of samplers that only an earlier run had, if it had the same settings and the same first images.

    A sampler may be run on fewer images than another: what is said of images is then said of the longer list. Rows of
    `fast` whose steps were others are left out.

    Args:
        name: the experiment.
        results: what it found now; `made_by` has the command that made the rows of each sampler, `precision` that of
            the network in it.
        file: its earlier result.json, if there is one.
        settings: those of both runs, or nothing is taken over.
        order: of the samplers, in which their rows stand.
    """
    results = {**results, "steps": STEPS_VERSION}
    if not file.is_file():
        return results
    with stored_record(file, name) as former:
        found, names = former["results"], results["names"][""]
        others = any(mine != theirs for mine, theirs in zip(names, found["names"][""], strict=False))
        own = [row for row in found["rows"] if not row.get("stored_by")]
        if found.get("steps") != STEPS_VERSION:
            own = [row for row in own if not row["sampler"].startswith("fast")]
        kept = [row for row in own if row["sampler"] not in results["made_by"] and row["sampler"] in order]
        if others or not kept or former["settings"] != settings:
            return results
        longer = found if max(row["images"] for row in kept) > len(names) else results
        images = {key: longer[key] for key in ("source", "publishable", "names", "truth") if key in results}
        commands = {row["sampler"]: former["command"] for row in kept} | found.get("made_by", {}) | results["made_by"]
    rows = sorted(kept + results["rows"], key=lambda row: order.index(row["sampler"]))
    made_by = {row["sampler"]: commands[row["sampler"]] for row in rows}
    precision = {name: precision_of(results if name in results["made_by"] else found, name) for name in made_by}
    return {**results, **images, "made_by": made_by, "precision": precision, "rows": rows}


def precision_of(results: dict[str, Any], sampler: str) -> str:
    """Of the network in a sampler's rows, where each may have its own."""
    return results.get("precision", {}).get(sampler, "float32")


def prior_of(results: dict[str, Any], sampler: str) -> dict[str, str]:
    """The prior of a sampler's rows; its name tells the precision, as it does where all samplers have the same."""
    prior, precision = results["prior"], precision_of(results, sampler)
    return prior if precision == "float32" else {**prior, "name": in_precision(prior["name"], precision)}


def commands_of(results: dict[str, Any]) -> str:
    """What made the rows, one after the other."""
    return " && ".join(dict.fromkeys(results["made_by"].values()))
