"""Where a run stands, in a file: after a crash it goes on from there, to the same bits."""

from __future__ import annotations

import glob
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from snips.buffers import contents, in_own_memory
from snips.files import new_file
from snips.inverse_problem import InverseProblem
from snips.priors.base import Prior
from snips.results import storage
from snips.samplers.base import Stored
from snips.samplers.table import sampler_entry

SECONDS = 5.0  # between two writings: what a crash may cost, beside the step that was under way


@dataclass
class Checkpoint:
    """The file of one run. It says of what run by a fingerprint, and is not believed for another."""

    path: Path
    seconds: float = SECONDS  # 0 writes after each step
    written: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    spent: float = 0.0  # seconds of earlier attempts, known when the state is loaded

    def load(self, fingerprint: str, facts: dict[str, Any] | None = None) -> Stored | None:
        """What `save` wrote last; None where there is nothing. `facts` tell what differs where it is another run's."""
        if not self.path.exists():
            return None
        metadata, tensors = self._read()
        if metadata.get("fingerprint") != fingerprint:
            differing = _differing(json.loads(metadata.get("facts", "{}")), facts or {})
            raise ValueError(
                f"{self.path} belongs to another measurement, other settings or another version ({differing}): repeat "
                "the command that began it, or remove it to begin again"
            )
        self.spent, self.began = float(metadata.get("seconds", 0)), time.monotonic()
        return tensors

    def save(self, fingerprint: str, tensors: Callable[[], Stored], facts: dict[str, Any] | None = None) -> None:
        """Write, where the last writing is long enough ago."""
        if time.monotonic() - self.written < self.seconds:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        seconds = self.spent + time.monotonic() - self.began
        metadata = {"fingerprint": fingerprint, "facts": json.dumps(facts or {}), "seconds": f"{seconds:.3f}"}
        with new_file(self.path) as work:
            stored = {name: value.detach().cpu().contiguous() for name, value in tensors().items()}
            work.write_bytes(to_bytes(stored, metadata))
        self.written = time.monotonic()

    def recorded(self) -> dict[str, Any]:
        """The fingerprint and the facts of the run that the state is of; empty without a state that can be read."""
        try:
            metadata, _ = self._read()
        except ValueError:
            return {}
        return {**json.loads(metadata.get("facts", "{}")), "fingerprint": metadata.get("fingerprint")}

    def drop_damaged(self) -> str | None:
        """Remove a state that cannot be read, so that its run begins anew -> what was wrong with it."""
        try:
            if self.path.exists():
                self._read()
        except ValueError as error:
            self.remove()
            return str(error)
        return None

    def remove(self) -> None:
        """The file and what dead writers left of it; the folder may hold other things, and stays."""
        left = self.path.parent.glob(f".{glob.escape(self.path.stem)}-[0-9]*{glob.escape(self.path.suffix)}")
        for file in (self.path, *left):
            file.unlink(missing_ok=True)

    def _read(self) -> tuple[dict[str, str], Stored]:
        try:
            with safe_open(self.path, "pt") as file:
                tensors = {name: in_own_memory(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 (it is no dict)
                return file.metadata() or {}, tensors
        except (OSError, SafetensorError) as error:
            raise ValueError(f"{self.path} is damaged ({error}): remove it to begin again") from error


def _differing(kept: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The names of what differs; where no setting does, it is what only the fingerprint knows."""
    kept, wanted = ({**facts, **facts.get("sampler_options", {})} for facts in (kept, json.loads(json.dumps(wanted))))
    names = (name for name in kept.keys() & wanted.keys() - {"sampler_options"} if kept[name] != wanted[name])
    return f"{', '.join(sorted(names)) or 'the pixels, the weights or the version'} differ"


def run_facts(problem: InverseProblem, prior: Prior, samples: int, described: dict[str, Any]) -> dict[str, Any]:
    """All of a run that has names; threads decide about rounding."""
    _, recipe = storage.recipe_to_json(problem.operator)
    return {
        **storage.plain(described),
        "samples": samples,
        "operator": recipe or repr(problem.operator),
        "noise": [problem.sigma_0, problem.first_image],
        "prior": prior.name or type(prior).__name__,
        "threads": torch.get_num_threads(),
        "device": problem.y.device.type,
        "plan": _plan(problem, described),
        "versions": storage.versions(),
    }


def _plan(problem: InverseProblem, described: dict[str, Any]) -> list[str] | None:
    """The noise levels that the sampler chooses, as another version may choose others.

    To six digits, as another rounding is no other plan.
    """
    choose = sampler_entry(described["sampler"]).planned_sigmas
    return None if choose is None else [f"{sigma:.6g}" for sigma in choose(problem, **described["sampler_options"])]


def run_fingerprint(problem: InverseProblem, prior: Prior, facts: dict[str, Any]) -> str:
    """Of the measurement, the operator, the prior and the facts of the run."""
    arrays, _ = storage.recipe_to_json(problem.operator)
    return fingerprint_of(facts, {"y": problem.y}, arrays, contents(problem.operator), contents(prior))


def fingerprint_of(facts: dict[str, Any], *tensors: dict[str, Tensor]) -> str:
    """A hash of all that decides about the samples, so that a state is never continued with something else."""
    hashed = hashlib.sha256(json.dumps({**facts, "torch": torch.__version__}, sort_keys=True).encode())
    for name, value in (pair for group in tensors for pair in group.items()):
        hashed.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        hashed.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return hashed.hexdigest()
