"""Where a run stands, in a file: after a crash it goes on from there, to the same bits."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from snips.buffers import in_own_memory
from snips.files import new_file
from snips.samplers.base import Stored

SECONDS = 5.0  # between two writings: what a crash may cost, beside the step that was under way


@dataclass
class Checkpoint:
    """The file of one run. It says of what run by a fingerprint, and is not believed for another."""

    path: Path
    seconds: float = SECONDS  # 0 writes after each step
    written: float = field(default_factory=time.monotonic)

    def load(self, fingerprint: str) -> Stored | None:
        """What `save` wrote last; None where there is nothing."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "pt") as file:
                stored = (file.metadata() or {}).get("fingerprint")
                tensors = {name: in_own_memory(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        except (OSError, SafetensorError) as error:
            raise ValueError(f"{self.path} is damaged ({error}): remove it to begin again") from error
        if stored != fingerprint:
            raise ValueError(
                f"{self.path} belongs to another measurement, other settings or another version: repeat the command "
                "that began it, or remove it to begin again"
            )
        return tensors

    def save(self, fingerprint: str, tensors: Callable[[], Stored]) -> None:
        """Write, where the last writing is long enough ago."""
        if time.monotonic() - self.written < self.seconds:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(self.path) as work:
            stored = {name: value.detach().cpu().contiguous() for name, value in tensors().items()}
            work.write_bytes(to_bytes(stored, {"fingerprint": fingerprint}))
        self.written = time.monotonic()

    def remove(self) -> None:
        """Its folder with it: nothing else belongs there."""
        shutil.rmtree(self.path.parent, ignore_errors=True)


def fingerprint_of(facts: dict[str, Any], *tensors: dict[str, Tensor]) -> str:
    """A hash of all that decides about the samples, so that a state is never continued with something else."""
    hashed = hashlib.sha256(json.dumps({**facts, "torch": torch.__version__}, sort_keys=True).encode())
    for name, value in (pair for group in tensors for pair in group.items()):
        hashed.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        hashed.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return hashed.hexdigest()
