"""Checkpoints that are whole or absent: written aside, flushed to disk, then renamed."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from snips.files import damaged_entry, flush, new_file

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class NotWritten(OSError):
    """A run could not be written; the message says all."""


@contextmanager
def writing(run: Path) -> Iterator[None]:
    """Say which run a full disk or a forbidden folder stopped, and that nothing is lost."""
    try:
        yield
    except NotWritten:
        raise
    except OSError as error:
        advice = "make space" if error.errno in FULL else "see whether it may be written"
        kept = ", and the same command goes on from its last checkpoint, which is whole"
        reason = f"the run in {run} cannot be written ({error.strerror or error}): {advice}"
        raise NotWritten(reason + (kept if (run / "checkpoint.pt").exists() else "")) from error


def write_checkpoint(state: dict[str, Any], path: Path) -> None:
    """Replace the checkpoint; the one before stays beside it as `.previous`, and survives a failed write."""
    content = io.BytesIO()  # on a full disk PyTorch's own writing ends in words that nobody understands
    torch.save(state, content)
    with new_file(path) as work:
        work.write_bytes(content.getbuffer())
        flush(work)  # only a new one that is on the disk lets go of the one before the last
        if path.exists():
            _keep(path, previous(path))


def previous(path: Path) -> Path:
    """Where the checkpoint before the last one is."""
    return path.with_suffix(".previous")


def _keep(path: Path, name: Path) -> None:
    """The same file under a second name, or a copy where the file system knows no links."""
    name.unlink(missing_ok=True)
    try:
        os.link(path, name)
    except OSError:
        shutil.copyfile(path, name)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What `write_checkpoint` wrote."""
    try:
        stored = None if damaged_entry(path) else torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # bytes of another kind make the unpickler raise almost anything
        stored = None
    if not isinstance(stored, dict):
        raise ValueError(
            f"{path} is not a readable checkpoint: it is damaged, incomplete, or of another kind; {what_to_do(path)}"
        )
    return stored


def what_to_do(path: Path) -> str:
    """Without a checkpoint."""
    if previous(path).exists():
        return f"move {previous(path)} in its place"
    weights = path.with_name("weights.safetensors")
    go_on = f", and go on from its weights with --init {weights}" if weights.exists() else ""
    return f"choose another --out{go_on}"
