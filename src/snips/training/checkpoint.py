"""Checkpoints that are whole or absent: written aside, flushed to disk, then renamed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import torch

from snips.files import flush


def write_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Replace the checkpoint; the one before stays beside it as `.previous`, and survives a failed write."""
    partial = path.with_suffix(".partial")
    try:
        with open(partial, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if path.exists():
        _link(path, path.with_suffix(".previous"))
    partial.replace(path)
    flush(path.parent)


def _link(path: Path, name: Path) -> None:
    name.unlink(missing_ok=True)
    os.link(path, name)


def read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        previous = path.with_suffix(".previous")
        hint = f"; move {previous} in its place" if previous.exists() else "; delete it to start again"
        raise ValueError(f"{path} is not a readable checkpoint ({str(error).splitlines()[0]}){hint}") from None
