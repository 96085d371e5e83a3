"""Files of weights: opened as a stranger's, and checked against what they tell about themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from snips.files import new_file
from snips.priors.digest import tensors_digest

StrPath = str | os.PathLike[str]
DIGEST = "sha256"  # in the metadata: of the tensors, and of all else that the metadata tells but the note
NOTE = "note"


@contextmanager
def opened(path: StrPath) -> Iterator[Any]:
    """A safetensors file; whatever is wrong with it is one line that names it."""
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder, not a file of weights")
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a readable safetensors file ({error}): fetch or make it again") from None


def read_weights(path: StrPath) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors; those of earlier versions do not tell their digest."""
    with opened(path) as file:
        told = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if DIGEST in told and _digest(told, tensors) != told[DIGEST]:
        raise ValueError(f"{path} is damaged: its weights are not those that were written; fetch or make it again")
    return told, tensors


def write_weights(path: StrPath, told: dict[str, str], tensors: dict[str, Tensor], note: dict[str, Any] | None) -> None:
    """Whole or not at all; weights that no prior can have replace nothing."""
    if not all(value.isfinite().all() for value in tensors.values()):
        raise FloatingPointError(f"weights are no finite numbers, or too large: {path} is not written; lower --lr")
    content = save(tensors, {**told, NOTE: json.dumps(note or {}), DIGEST: _digest(told, tensors)})
    with new_file(Path(path)) as work:
        work.write_bytes(content)  # unlike `save_file`, which makes a file that only its owner may read


def read_note(path: StrPath) -> dict[str, Any]:
    """What `write_weights` was told about the training, if anything."""
    with opened(path) as file:
        note = json.loads((file.metadata() or {}).get(NOTE, "{}"))
    return note if isinstance(note, dict) else {}


def _digest(told: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    facts = {name: text for name, text in sorted(told.items()) if name not in (NOTE, DIGEST)}
    return tensors_digest(tensors, json.dumps(facts))
