"""Computed decompositions on disk, so that an operator is decomposed once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from snips.buffers import in_own_memory
from snips.files import cache_folder, new_file

log = logging.getLogger("snips")


def cached(key: str, shapes: dict[str, tuple[int, ...] | None], compute: Callable[[], dict[str, Tensor]]) -> dict:
    """The tensors stored under `key`, or computed and stored now.

    Args:
        shapes: names and shapes that a stored file must have (None = any); another one is computed again.
    """
    path = cache_folder() / "svd" / f"{key}.safetensors"
    found = _read(path, shapes)
    if found is not None:
        return found
    tensors = {name: in_own_memory(value) for name, value in compute().items()}  # as they are when they are read
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as work:
            save_file(tensors, work)
    except (OSError, SafetensorError) as error:  # a full or read-only disk costs time next time, nothing else
        log.warning("the decomposition could not be stored in %s: %s", path, error)
    return tensors


def _read(path: Path, shapes: dict[str, tuple[int, ...] | None]) -> dict[str, Tensor] | None:
    try:
        stored = {name: in_own_memory(value) for name, value in load_file(path).items()}
    except (OSError, SafetensorError):
        return None
    sound = stored.keys() == shapes.keys() and all(v.isfinite().all() for v in stored.values())
    fitting = sound and all(shape is None or stored[name].shape == shape for name, shape in shapes.items())
    return stored if fitting else None
