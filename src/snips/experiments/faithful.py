"""The faithfulness section: do the samples of all experiments explain their measurements?

It computes nothing itself, but pools what the other experiments in the same folder stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from snips.experiments.base import Experiment, Measured, Outcome, Request, Study
from snips.experiments.markdown import FAITHFULNESS_COLUMNS, faithfulness_cells, table
from snips.experiments.published import SHARE_NORMAL, SHARE_UNCORRELATED
from snips.files import read_json

SAMPLING = ("table1", "red", "figures", "strip", "lsun")  # the experiments that draw posterior samples


def prepare(request: Request) -> Study:
    rows = stored_rows(request.out)
    if not rows:
        raise ValueError(f"{request.out} holds no results with samples yet: run `snips experiment table1` first")

    def conclude(measured: list[Measured]) -> Outcome:
        return Outcome({"rows": rows, "all": pool([row["faithfulness"] for row in rows])})

    return Study({}, [], conclude)


def stored_rows(folder: Path) -> list[dict[str, Any]]:
    """What each experiment says about the residuals of each problem."""
    rows = []
    for file in sorted(folder.glob("*/result.json")):
        record = read_json(file)
        if record.get("experiment") not in SAMPLING:
            continue
        for row in record["results"]["rows"]:
            if row.get("faithfulness"):
                kept = {
                    name: row[name] for name in ("group", "problem", "sampler", "sigma_0", "images", "faithfulness")
                }
                rows.append({"experiment": record["experiment"], **kept})
    return rows


def pool(found: list[dict[str, Any]]) -> dict[str, Any]:
    samples = sum(f["samples"] for f in found)
    return {
        "samples": samples,
        "std_ratio": sum(f["std_ratio"] * f["samples"] for f in found) / samples,
        "std_ratio_range": [min(f["std_ratio_range"][0] for f in found), max(f["std_ratio_range"][1] for f in found)],
        "normal": sum(f["normal"] for f in found),
        "uncorrelated": sum(f["uncorrelated"] for f in found),
    }


def describe(results: dict[str, Any]) -> str:
    columns = ["experiment", "problem", "sampler", "σ₀", "samples", *FAITHFULNESS_COLUMNS]
    rows = [
        [
            row["experiment"],
            row["group"] + row["problem"],
            row["sampler"],
            f"{row['sigma_0']:g}",
            str(row["faithfulness"]["samples"]),
            *faithfulness_cells(row["faithfulness"]),
        ]
        for row in results["rows"]
    ]
    total = results["all"]
    rows.append(["**all**", "", "", "", str(total["samples"]), *faithfulness_cells(total)])
    paper = ["1", f"{100 * SHARE_NORMAL:.0f} %", f"{100 * SHARE_UNCORRELATED:.0f} %"]
    rows.append(["the paper", "", "", "", "", *(f"about {value}" for value in paper[:2]), paper[2]])
    low, high = total["std_ratio_range"]
    return table(columns, rows) + f"\nResidual std / σ₀ of single samples: from {low:.3f} to {high:.3f}.\n"


FAITHFULNESS = Experiment("Faithfulness: residuals over all experiments in the folder", prepare, describe)
