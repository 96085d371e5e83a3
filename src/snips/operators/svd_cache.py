"""Computed decompositions on disk, so that an operator is decomposed once; those used last, up to a limit."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from snips.buffers import in_own_memory
from snips.files import cache_folder, new_file

log = logging.getLogger("snips")
FORMAT = 1  # of the tensors and what they mean; files of another one are not read
USUAL_MB = 4096


def cached(key: str, shapes: dict[str, tuple[int, ...] | None], compute: Callable[[], dict[str, Tensor]]) -> dict:
    """The tensors stored under `key`, or computed and stored now.

    Args:
        shapes: names and shapes that a stored file must have (None = any); another one is computed again.
    """
    path, limit = cache_folder() / "svd" / f"v{FORMAT}-{key}.safetensors", cache_limit()
    found = _read(path, shapes)
    if found is not None:
        _touch(path)
        return found
    tensors = {name: in_own_memory(value) for name, value in compute().items()}  # as they are when they are read
    if sum(value.nbytes for value in tensors.values()) > limit:
        return tensors
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as work:
            save_file(tensors, work)
        _prune(path.parent, limit)
    except (OSError, SafetensorError) as error:  # a full or read-only disk costs time next time, nothing else
        log.warning("the decomposition could not be stored in %s: %s", path, error)
    return tensors


def cache_limit() -> int:
    """Bytes that all stored decompositions may take: $SNIPS_CACHE_MB, 0 to store none."""
    given = os.environ.get("SNIPS_CACHE_MB") or str(USUAL_MB)
    if not given.isascii() or not given.isdigit():
        raise ValueError(f"SNIPS_CACHE_MB must be a whole number of megabytes, but is {given!r}")
    return int(given) * 2**20


def _touch(path: Path) -> None:
    """The time of a file is that of its last use."""
    try:
        os.utime(path)
    except OSError:  # somebody else's, or gone by now
        log.debug("the last use of %s could not be noted", path)


def _prune(folder: Path, limit: int) -> None:
    """Remove the files that were used least recently; another process may do the same at the same time."""
    used = []
    for path in folder.glob("*.safetensors"):
        try:
            state = path.stat()
        except FileNotFoundError:
            continue
        used.append((state.st_mtime_ns, state.st_size, path))
    total = sum(size for _, size, _ in used)
    for _, size, path in sorted(used):
        if total <= limit:
            return
        path.unlink(missing_ok=True)
        total -= size


def _read(path: Path, shapes: dict[str, tuple[int, ...] | None]) -> dict[str, Tensor] | None:
    try:
        stored = {name: in_own_memory(value) for name, value in load_file(path).items()}
    except (OSError, SafetensorError):
        return None
    sound = stored.keys() == shapes.keys() and all(v.isfinite().all() for v in stored.values())
    fitting = sound and all(shape is None or stored[name].shape == shape for name, shape in shapes.items())
    return stored if fitting else None
