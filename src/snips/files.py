"""Files that appear whole or not at all: written aside, flushed to the disk, then renamed."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """$SNIPS_CACHE, or `snips` in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache)."""
    if own := os.environ.get("SNIPS_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "snips"


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary file name with the same ending that becomes `path` when the block ends well."""
    work = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield work
        flush(work)
        work.replace(path)
        flush(path.parent)
    finally:
        work.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Of earlier processes that were killed while they wrote this file."""
    for work in path.parent.glob(f".{path.stem}-*{path.suffix}"):
        owner = work.stem.rpartition("-")[2]
        if owner.isdigit() and not _is_running(int(owner)):
            work.unlink(missing_ok=True)


def is_leftover(path: Path) -> bool:
    """Whether the name is one that `new_file` gives, be it of a process that was killed or of one at work."""
    return path.name.startswith(".") and path.stem.rpartition("-")[2].isdigit()


def _is_running(process: int) -> bool:
    if os.name != "posix":  # elsewhere the question itself may end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        pass
    return True


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A run's folder, made where it is missing, for one run at a time; a process that dies lets go of it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, not a folder: choose another with --out")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise ValueError(f"another run is at work in {folder}: wait for it, or choose another folder") from error
    except OSError:  # a network drive may have no such locks
        pass
    try:
        yield
    finally:
        os.close(handle)


def flush(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk: a rename alone does not promise it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """Flush all files and folders in a folder, then the folder."""
    for path in folder.rglob("*"):
        flush(path)
    flush(folder)


def damaged_entry(path: Path) -> str | None:
    """The first part of a zip archive whose checksum is wrong, such as of a file of PyTorch, which does not look."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}): remove it") from error


def write_json(path: Path, value: Any) -> None:
    with new_file(path) as work:
        work.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def check_settings(folder: Path, kept: dict[str, Any], wanted: dict[str, Any]) -> None:
    """A run goes on in its folder only with the settings that it began with."""
    differing = sorted(key for key in kept.keys() | wanted.keys() if kept.get(key) != wanted.get(key))
    if differing:
        raise ValueError(
            f"{folder} holds a run with other settings ({', '.join(differing)} differ): choose another folder with "
            "--out, or begin again with --force"
        )
