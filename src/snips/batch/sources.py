"""Where the items come from: a folder, a manifest as CSV or Parquet, a stack as Zarr or HDF5."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from snips.batch import stacks
from snips.batch.items import Item, check_columns, checked_items, item_from

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".npy", ".npz")
DIGITS = 6  # of an index as a key


def read_items(source: Path, said: dict[str, Any], out: Path, dataset: str | None = None) -> list[Item]:
    """All items of a source. `said` holds for those that say nothing else; what lies in `out` is no item."""
    if not source.exists():
        raise ValueError(f"there is no {source}")
    for column in ("mask", "kernel", "matrix"):
        if column in said:
            said = {**said, column: str(Path(said[column]).resolve())}
    if stacks.is_stack(source):
        return checked_items(_stack(source, said, dataset), source)
    if dataset is not None:
        raise ValueError(f"--dataset names an array in a Zarr or HDF5 file, but {source} is none")
    if source.is_dir():
        return checked_items(_folder(source, said, out), source)
    if source.suffix.lower() not in MANIFESTS:
        raise ValueError(f"{source} is no folder, and no file that ends in {', '.join((*MANIFESTS, *stacks.HDF5))}")
    names, rows = MANIFESTS[source.suffix.lower()](source)
    known, base = check_columns(names, source), source.resolve().parent
    cells = ((where, {name: row.get(name) for name in known}) for where, row in rows)
    return checked_items([item_from(row, said, base, f"{source}, {where}") for where, row in cells], source)


def _folder(folder: Path, said: dict[str, Any], out: Path) -> list[Item]:
    """Every picture and array in it, at any depth, by its path; nothing hidden, and no results of ours."""
    base, results = folder.resolve(), out.resolve()
    found = sorted(path for path in base.rglob("*") if path.suffix.lower() in PICTURES and path.is_file())
    inside = results != base and results.is_relative_to(base)
    paths = [path.relative_to(base) for path in found if not (inside and path.is_relative_to(results))]
    shown = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    return [Item(path.as_posix(), {**said, "file": str(base / path)}) for path in shown]


def _stack(path: Path, said: dict[str, Any], dataset: str | None) -> list[Item]:
    name, count = stacks.dataset_of(path, dataset)
    place = {**said, "file": str(path.resolve()), "dataset": name}
    return [Item(f"{index:0{DIGITS}d}", {**place, "index": index}) for index in range(count)]


Rows = list[tuple[str, dict[str, Any]]]  # each with its place in the file, for people


def _csv(path: Path) -> tuple[list[str], Rows]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True, restkey="", strict=True)
            names = list(reader.fieldnames or [])
            rows = [(f"line {reader.line_num}", row) for row in reader]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from error
    if not names:
        raise ValueError(f"{path} is empty: its first line must name the columns")
    longer = next((where for where, row in rows if "" in row and "" not in names), None)
    if longer is not None:
        raise ValueError(f"{path}: {longer} has more cells than the header has names")
    return names, rows


def _parquet(path: Path) -> tuple[list[str], Rows]:
    arrow = stacks.optional("pyarrow", "a Parquet manifest")
    parquet = stacks.optional("pyarrow.parquet", "a Parquet manifest")
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {' '.join(str(error).split())[:200]}") from error
    return table.column_names, [(f"row {number}", row) for number, row in enumerate(table.to_pylist(), 1)]


MANIFESTS = {".csv": _csv, ".parquet": _parquet}
