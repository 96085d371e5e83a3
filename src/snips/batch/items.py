"""What a batch consists of: items with a key that stays the same wherever and whenever they are restored."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snips.batch import stacks
from snips.names import unknown_name
from snips.streams import checked_seed

# What may be said of an item: as the options of `snips restore`, without the dashes.
FILE_COLUMNS = ("file", "mask", "kernel", "matrix", "truth")
COLUMNS = (*FILE_COLUMNS, "key", "problem", "sigma", "factor", "shape", "range")
LISTS = ("shape", "range")
OPTION = "option."  # option.NAME is an option of the problem
OWN = "_"  # columns of the user's own begin with it
LONGEST_NAME = 80  # characters of a key that a folder's name shows
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Item:
    """One measurement: its key, and what was said of it, by column."""

    key: str
    row: dict[str, Any]  # files as absolute paths; `dataset` and `index` where the file holds many

    @property
    def name(self) -> str:
        """The key as a folder's name; with a part of its hash where it must be changed for that."""
        if PLAIN_NAME.fullmatch(self.key) and len(self.key) <= LONGEST_NAME:
            return self.key
        readable = re.sub(r"[^A-Za-z0-9._-]+", "_", self.key)[-LONGEST_NAME:].lstrip("._-")
        return f"{readable or 'item'}-{hashlib.sha256(self.key.encode()).hexdigest()[:10]}"

    def seed(self, run_seed: int) -> int:
        """A matter of the run's seed and the key alone, never of order, place or time."""
        hashed = hashlib.sha256(f"{checked_seed(run_seed)}:{self.key}".encode()).digest()
        return int.from_bytes(hashed[:8], "big") >> 1

    def options_digest(self) -> str:
        """A hash of what was said of the item, without the files themselves."""
        said = {name: name if name in FILE_COLUMNS else value for name, value in self.row.items()}
        return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()

    def digest(self) -> str:
        """A hash of all that the result depends on; of files, their content, so that they may be moved."""
        hashed = hashlib.sha256(self.options_digest().encode())
        for column in (name for name in FILE_COLUMNS if name in self.row):
            hashed.update(column.encode() + self._content(column))
        return hashed.hexdigest()

    def _content(self, column: str) -> bytes:
        if column == "file" and "index" in self.row:
            values = stacks.read(Path(self.row["file"]), self.row["dataset"], self.row["index"])
            return hashlib.sha256(f"{values.dtype} {values.shape}".encode() + values.tobytes()).digest()
        path = Path(self.row[column])
        try:
            return _sha(path)
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error


def _sha(path: Path) -> bytes:
    """`hashlib.file_digest` came with Python 3.11."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            hashed.update(block)
    return hashed.digest()


def item_from(cells: dict[str, Any], said: dict[str, Any], base: Path, where: str) -> Item:
    """An item from the cells of a manifest, with paths relative to it; what they leave open is as said of all."""
    own = {name: _checked(name, value, where) for name, value in cells.items() if value is not None and value != ""}
    if "file" not in own:
        raise ValueError(f"{where} names no file: each row needs one")
    key = str(own.pop("key", own["file"]))
    for column in (column for column in FILE_COLUMNS if column in own):
        own[column] = str((base / own[column]).resolve())
    return Item(key, {**said, **own})


def _checked(column: str, value: Any, where: str) -> Any:
    """A cell of a type that its column may have: Parquet has all kinds. A list of numbers becomes text, as in CSV."""
    if column in LISTS and isinstance(value, list) and value and all(map(_is_number, value)):
        value = ",".join(map(str, value))
    wrong = not _fits(column, value)
    if wrong or (isinstance(value, str) and "\0" in value):
        raise ValueError(f"{where}: {column} cannot be {value!r}: it takes {_wanted(column)}")
    return value


def _fits(column: str, value: Any) -> bool:
    if column == "factor":
        return _is_whole(value)
    if column in ("key", "sigma"):
        return isinstance(value, str) or _is_number(value)
    if column.startswith(OPTION):
        return _is_plain(value)
    return isinstance(value, str)


def _wanted(column: str) -> str:
    known = {"factor": "a whole number", "key": "text or a number", "sigma": "a number or auto"}
    known |= dict.fromkeys(FILE_COLUMNS, "a path") | dict.fromkeys(LISTS, "numbers with commas between them")
    return known.get(column, "text, numbers or lists of them" if column.startswith(OPTION) else "text")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    """2, "2", and 2.0, which tables make of 2 where another row has none."""
    if isinstance(value, str):
        return value.strip().removeprefix("-").isdecimal()
    return _is_number(value) and value == value // 1


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, str | bool | int | float)


def check_columns(names: list[str], source: Path) -> list[str]:
    """The columns to read. One that is not known may be a slip, and a slip may be a wrong picture: it is refused."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{source} has several columns {name!r}: which of them holds? Remove the others")
        if name not in COLUMNS and not name.startswith((OPTION, OWN)):
            hint = f"{unknown_name('column', name, list(COLUMNS))}, or {OPTION}NAME; begin your own with {OWN}"
            raise ValueError(f"{source}: {hint}")
    if "file" not in names:
        raise ValueError(f"{source} has no column `file`: it must name the measurements")
    return [name for name in names if not name.startswith(OWN)]


def checked_items(items: list[Item], source: Path) -> list[Item]:
    """Items whose folders differ, also where a disk does not tell capitals from small letters."""
    if not items:
        raise ValueError(f"{source} holds no measurements")
    seen: dict[str, str] = {}
    for item in items:
        _check_text(item.key, source)
        folded = item.name.casefold()
        if folded in seen:
            raise ValueError(
                f"{source}: the keys {seen[folded]!r} and {item.key!r} are the same: rename a file, or tell them apart "
                "by the column key of a table"
            )
        seen[folded] = item.key
    return items


def _check_text(key: str, source: Path) -> None:
    """Names of files may be any bytes, but no table could hold them."""
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{source}: the name {key!a} is not UTF-8: rename it") from error
