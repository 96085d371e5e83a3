"""Where the items come from: a folder, a manifest as CSV or Parquet, a stack as Zarr or HDF5."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from snips.batch import stacks
from snips.batch.items import Item, check_columns, checked_items, item_from

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".npy", ".npz")
OTHER_MARKS = (";", "\t", "|")  # that programs put between columns instead of a comma
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
    base = folder.resolve()
    paths = sorted(path.relative_to(base) for path in _pictures(base, out.resolve()))
    return [Item(path.as_posix(), {**said, "file": str(base / path)}) for path in paths]


def _pictures(folder: Path, out: Path) -> Iterator[Path]:
    """A folder that must not be read is an error, and a link to nothing is an item that fails: both would be missed."""
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if not (path.is_symlink() or path == out or _is_result(path)):
                yield from _pictures(path, out)
        elif path.suffix.lower() in PICTURES and (path.is_file() or path.is_symlink()):
            yield path


def _is_result(folder: Path) -> bool:
    """Of another batch, or of `snips restore` beside its photo: its samples are no measurements."""
    return all((folder / name).is_file() for name in ("result.json", "samples.safetensors"))


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
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read as CSV ({error}): save it as UTF-8") from error
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from error
    if not names:
        raise ValueError(f"{path} is empty: its first line must name the columns")
    if other := next((mark for mark in OTHER_MARKS if len(names) == 1 and mark in names[0]), None):
        raise ValueError(f"{path} has {other!r} between its columns: save it with commas, and numbers with points")
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
