"""Several processes, started by torchrun: each draws its own images, gradients are averaged, the first one writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector

T = TypeVar("T")


@contextmanager
def processes() -> Iterator[None]:
    """Join the other processes if torchrun started several, and part from them at the end."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if several:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield
    finally:
        if several:
            dist.destroy_process_group()


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def world() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def first_alone(action: Callable[[], T]) -> T:
    """The first process acts, then the others: what it caches, they find."""
    if world() == 1:
        return action()
    if rank() > 0:
        dist.barrier()
    result = action()
    if rank() == 0:
        dist.barrier()
    return result


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over all processes; one message for all of them."""
    if world() == 1:
        return
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters()]
    whole = parameters_to_vector(gradients)
    dist.all_reduce(whole)
    parts = whole.div_(world()).split([g.numel() for g in gradients])
    for p, part in zip(model.parameters(), parts, strict=True):
        p.grad = part.view(p.shape)
