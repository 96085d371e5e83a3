"""The faithfulness section: do the samples of all experiments explain their measurements?

It computes nothing itself, but pools what the other experiments in the same folder stored. Several of them draw the
same samples, of which those of the most images are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snips.experiments.base import Experiment, Measured, Outcome, Request, Study
from snips.experiments.markdown import FAITHFULNESS_COLUMNS, percent, table
from snips.experiments.published import SHARE_NORMAL, SHARE_UNCORRELATED
from snips.experiments.sampled import mean_and_error
from snips.experiments.stored import prior_of, stored_record

SAMPLING = ("table1", "calls", "red", "figures", "strip", "uncurated", "lsun")  # they draw posterior samples
KEPT = ("group", "problem", "sigma_0", "images", "faithfulness")


def prepare(request: Request) -> Study:
    found = stored(request.out)
    rows = without_copies([row for each in found for row in each.rows])
    if not rows:
        raise ValueError(f"{request.out} holds no results with samples yet: run `snips experiment table1` first")
    check_weights(rows)
    truth, quick = [row for each in found for row in each.truth], any(each.quick for each in found)

    def conclude(measured: list[Measured]) -> Outcome:
        samplers = dict.fromkeys(row["sampler"] for row in rows)
        pooled = {name: pool([row["faithfulness"] for row in rows if row["sampler"] == name]) for name in samplers}
        chance = pool(truth) if truth else None
        return Outcome({"rows": rows, "pooled": pooled, "truth": chance, "quick": quick})

    return Study({}, [], conclude)


@dataclass(frozen=True)
class Stored:
    """What an experiment says about residuals."""

    rows: list[dict[str, Any]]
    truth: list[dict[str, Any]]  # the residuals of the true images
    quick: bool

    @classmethod
    def of(cls, record: dict[str, Any]) -> Stored:
        rows, truth = rows_of(record), [row for row in record["results"].get("truth", []) if "samples" in row]
        for each in (*(row["faithfulness"] for row in rows), *truth):
            pool([each])  # so that what it lacks is noticed here, where its file is known
        return cls(rows, truth, " --quick" in record["command"])


def stored(folder: Path) -> list[Stored]:
    found = []
    for name in SAMPLING:
        file = folder / name / "result.json"
        if file.is_file():
            with stored_record(file, name) as record:
                found.append(Stored.of(record))
    return found


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What an experiment says about the residuals of each problem, and all that decides which samples they were."""
    results, rows = record["results"], []
    for row in results["rows"]:
        if not row.get("faithfulness") or row.get("stored_by"):
            continue
        rows.append(
            {
                "experiment": record["experiment"],
                "prior": prior_of(results, row["sampler"]),
                "sampler": _with_calls(row["sampler"], record["settings"]),
                "seed": _seed(record["settings"]),
                "names": results["names"][row["group"]][: row["images"]],
                **{name: row[name] for name in KEPT},
            }
        )
    return rows


def _with_calls(sampler: str, settings: dict[str, Any]) -> str:
    """The sampler and its number of calls, as `calls` names them."""
    name, _, number = sampler.partition(" ")
    if number:
        return sampler
    chosen = settings[name]
    return f"{name} {chosen['nfe'] if 'nfe' in chosen else chosen['levels'] * chosen['tau']}"


def _seed(settings: dict[str, Any]) -> int:
    """All samplers of an experiment have the same."""
    return {chosen["seed"] for chosen in settings.values() if isinstance(chosen, dict) and "seed" in chosen}.pop()


def without_copies(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Streams depend on seed, image and sample alone: of rows that differ in their images only, one may hold others."""
    kept: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: -row["faithfulness"]["samples"]):
        if not any(_draws(row) == _draws(other) and set(row["names"]) <= set(other["names"]) for other in kept):
            kept.append(row)
    return [row for row in rows if any(row is one for one in kept)]


def _draws(row: dict[str, Any]) -> tuple[Any, ...]:
    """Rows that agree in this have the same samples of the same images; the prior's name tells its precision."""
    return row["problem"], row["sigma_0"], row["sampler"], row["seed"], row["prior"]["name"], row["prior"]["sha256"]


def check_weights(rows: list[dict[str, Any]]) -> None:
    """Results of earlier weights are not those of the prior that bears the name today."""
    found: dict[str, tuple[str, str]] = {}
    for row in rows:
        name, digest = row["prior"]["name"], row["prior"]["sha256"]
        first, experiment = found.setdefault(name, (digest, row["experiment"]))
        if first != digest:
            raise ValueError(
                f"`{experiment}` and `{row['experiment']}` were run with different weights of `{name}`: run the older "
                "one again with --force"
            )


def pool(found: list[dict[str, Any]]) -> dict[str, Any]:
    samples = sum(f["samples"] for f in found)
    normal, uncorrelated = zip(*(shares for f in found for shares in f["shares_of_each_image"]), strict=True)
    return {
        "samples": samples,
        "std_ratio": sum(f["std_ratio"] * f["samples"] for f in found) / samples,
        "std_ratio_range": [min(f["std_ratio_range"][0] for f in found), max(f["std_ratio_range"][1] for f in found)],
        "normal": mean_and_error(list(normal)),
        "uncorrelated": mean_and_error(list(uncorrelated)),
    }


def describe(results: dict[str, Any]) -> str:
    columns = ["experiment", "sampler", "problem", "σ₀", "samples", *FAITHFULNESS_COLUMNS]
    rows = []
    for sampler, pooled in results["pooled"].items():
        for row in results["rows"]:
            if row["sampler"] == sampler:
                name = row["group"] + row["problem"]
                cells = [row["experiment"], sampler, name, f"{row['sigma_0']:g}"]
                rows.append([*cells, *_cells(pool([row["faithfulness"]]))])
        rows.append(["**all**", f"**{sampler}**", "", "", *_cells(pooled)])
    if results["truth"]:
        rows.append(["the true images", "", "those of table1", "", *_cells(results["truth"])])
    paper = ["1", f"{100 * SHARE_NORMAL:.0f} %", f"{100 * SHARE_UNCORRELATED:.0f} %"]
    rows.append(["the paper", "", "", "", "", *(f"about {value}" for value in paper[:2]), paper[2]])
    note = (
        "Samples that several experiments share are counted once. Errors are standard errors over images and problems. "
        "The residuals of the true images are the noise itself, so they fail a test by chance alone.\n\n"
    )
    ranges = ((name, pooled["std_ratio_range"]) for name, pooled in results["pooled"].items())
    extremes = "; ".join(f"`{name}` {low:.3f} to {high:.3f}" for name, (low, high) in ranges)
    doubt = "**Some of these were quick runs, whose figures mean nothing.**\n\n" if results["quick"] else ""
    return doubt + note + table(columns, rows) + f"\nResidual std / σ₀ of single samples: {extremes}.\n"


def _cells(pooled: dict[str, Any]) -> list[str]:
    shares = [percent(pooled[name]) for name in ("normal", "uncorrelated")]
    return [str(pooled["samples"]), f"{pooled['std_ratio']:.3f}", *shares]


FAITHFULNESS = Experiment("Faithfulness: residuals over all experiments in the folder", prepare, describe, takes=())
