"""All scores of a batch in one table, a row for each item: read again from the results on the disk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snips.batch import stacks
from snips.batch.folders import RunFolder
from snips.batch.items import Item
from snips.files import new_file

FAITHFULNESS = ("residual_std", "std_ratio", "p_value", "rho_x", "rho_y", "faithful")
# Lists have an entry for each sample. The types are Arrow's.
COLUMNS: dict[str, str] = {
    "key": "string",
    "folder": "string",
    "error": "string",
    "problem": "string",
    "sigma_0": "float64",
    "noise": "string",  # how sigma_0 was estimated, where it was
    "noise_doubt": "string",  # why it is a guess, where it is
    "tile": "int64",  # the side of the tiles that the denoiser saw, where there were any
    "tile_deviation": "float64",  # what they change at most, on a crop
    "prior": "string",
    "prior_doubt": "string",  # what to expect where it was made for images of another size
    "seed": "int64",
    "seconds": "float64",
    "psnr_mean": "float64",
    "ssim_mean": "float64",
    "psnr": "floats",
    "ssim": "floats",
    **{name: "bools" if name == "faithful" else "floats" for name in FAITHFULNESS},
}


@dataclass(frozen=True)
class Scores:
    """The rows of the table, in the order of the items."""

    rows: list[dict[str, Any]]
    warnings: list[str]  # results whose sources changed, guessed noise, priors that do not fit

    @classmethod
    def of(cls, folder: RunFolder, items: Sequence[Item], warnings: list[str]) -> Scores:
        rows = [_row(folder, item) for item in items]
        return cls(rows, [*warnings, *_guesses(rows), *_misfits(rows)])

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["error"] is not None]

    def mean(self, name: str) -> float | None:
        """The mean of a column, over all items and samples that have it."""
        found = [number for row in self.rows for number in _numbers(row[name])]
        return math.fsum(found) / len(found) if found else None


def _guesses(rows: list[dict[str, Any]]) -> list[str]:
    """One line for all items whose noise is a guess, and with it their uncertainty."""
    guessed = [row for row in rows if row["noise_doubt"]]
    if not guessed:
        return []
    first = f"{guessed[0]['key']}: {guessed[0]['noise_doubt']}"
    return [f"sigma_0 of {len(guessed)} of {len(rows)} items is a guess ({first}): give it with --sigma if you know it"]


def _misfits(rows: list[dict[str, Any]]) -> list[str]:
    """One line for all items whose prior was made for other images."""
    doubted = [row for row in rows if row["prior_doubt"]]
    first = f"{doubted[0]['key']}: {doubted[0]['prior_doubt']}" if doubted else ""
    return [f"the prior does not fit {len(doubted)} of {len(rows)} items ({first})"] if doubted else []


def _numbers(value: Any) -> list[float]:
    values = value if isinstance(value, list) else [value]
    return [float(number) for number in values if number is not None]


def _row(folder: RunFolder, item: Item) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS) | {"key": item.key}
    result = folder.result(item)
    if result is None:
        return row | {"error": folder.failure(item) or "not restored yet"}
    settings, recipe = result["settings"], result["operator"]
    row |= {"folder": f"items/{item.name}", "sigma_0": result["sigma_0"]}
    row |= {name: settings[name] for name in ("prior", "seed", "seconds")}
    row |= {name: settings.get(name) for name in ("noise", "noise_doubt", "prior_doubt")}
    if tiles := settings.get("tiles"):
        row |= {"tile": tiles["side"], "tile_deviation": max(tiles["deviation"].values())}
    row["problem"] = None if recipe is None else recipe["problem"]
    for name in ("psnr", "ssim"):
        if result[name] is not None:
            row |= {name: _samples(result[name]["samples"]), f"{name}_mean": result[name]["mean"][0]}
    return row | {name: _samples(result["faithfulness"][name]) for name in FAITHFULNESS}


def _samples(values: list[list[Any]] | None) -> list[Any] | None:
    """(K, 1) -> K: an item is one image."""
    return None if values is None else [value[0] for value in values]


def write_table(scores: Scores, path: Path) -> None:
    arrow = stacks.optional("pyarrow", "the table of scores")
    parquet = stacks.optional("pyarrow.parquet", "the table of scores")
    types = {
        "string": arrow.string(),
        "float64": arrow.float64(),
        "int64": arrow.int64(),
        "floats": arrow.list_(arrow.float64()),
        "bools": arrow.list_(arrow.bool_()),
    }
    schema = arrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    with new_file(path) as work, work.open("wb") as file:  # as a path it would have to be Unicode
        parquet.write_table(arrow.Table.from_pylist(scores.rows, schema=schema), file)
