"""What must hold for every sampler."""

from __future__ import annotations

import torch


def check_resumed_run(steps, stop: int, total: int) -> None:
    """`steps(resume)` yields all steps, or those after a stored state: stopped and resumed, the end is the same."""
    whole = list(steps(None))[-1].state.x
    stored = next(info.state.tensors() for info in steps(None) if info.step == stop)
    rest = list(steps(stored))
    assert len(rest) == total - stop
    assert torch.equal(rest[-1].state.x, whole)
