"""Where to compute: chosen by the programs, never below `restore()`.

Only the CPU is tested. CUDA and MPS are written for but were never run: random numbers are drawn on the CPU and
everything that needs float64 stays there, since MPS has none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from snips.inverse_problem import InverseProblem
from snips.names import unknown_name
from snips.posing.pictures import PhotoProblem
from snips.priors.base import Prior
from snips.restoration import Broken, Interrupted, Restoration, restore

AUTO, DEVICES = "auto", ("cpu", "cuda", "mps")


def pick_device(name: str) -> torch.device:
    """A device by name, such as cuda:1; "auto" is the first graphics processor, else the CPU."""
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == AUTO:
        return torch.device(next((kind for kind in ("cuda", "mps") if present[kind]), "cpu"))
    kind, _, index = name.partition(":")
    if kind not in DEVICES or (index and not index.isdigit()):
        raise ValueError(unknown_name("device", name, [AUTO, *DEVICES]))
    if not present[kind]:
        raise ValueError(f"PyTorch finds no device {kind} here: choose --device auto, or install a build with {kind}")
    return torch.device(name)


def moved(problem: InverseProblem, device: torch.device) -> InverseProblem:
    """The problem on a device."""
    truth = None if problem.truth is None else problem.truth.to(device)
    return replace(problem, y=problem.y.to(device), truth=truth)


def restore_on(device: torch.device, posed: PhotoProblem, prior: Prior, **options: Any) -> Restoration:
    """`restore()` on a device; what it returns, or what was finished when it was stopped, is on the CPU again."""

    def returned(result: Restoration) -> Restoration:
        settings = {**result.settings, "device": str(device)}
        return replace(result, problem=posed.problem, samples=result.samples.cpu(), settings=settings)

    try:
        there = replace(posed, problem=moved(posed.problem, device))
        return returned(restore(there, prior.to(device), **options))
    except Interrupted as stop:
        raise Interrupted(None if stop.finished is None else returned(stop.finished)) from stop
    except Broken as failure:
        raise Broken(str(failure), None if failure.finished is None else returned(failure.finished)) from failure
