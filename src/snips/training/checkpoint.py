"""Checkpoints that are whole or absent: written aside, flushed to disk, then renamed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import torch

from snips.files import flush, new_file


def write_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Replace the checkpoint; the one before stays beside it as `.previous`, and survives a failed write."""
    with new_file(path) as work:
        with open(work, "wb") as file:
            torch.save(state, file)
        flush(work)  # only a new one that is on the disk lets go of the one before the last
        if path.exists():
            _link(path, path.with_suffix(".previous"))


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
