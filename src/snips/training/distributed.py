"""Several processes, started by torchrun: each draws its own images, gradients are averaged, the first one writes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import distributed as dist
from torch import nn

T = TypeVar("T")
PARTED = re.compile("gloo|nccl|connection|peer", re.IGNORECASE)  # in what PyTorch says when a process is gone


def is_first() -> bool:
    """Whether this is the only process, or the first of those that torchrun started: the one that speaks."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def processes(device: str = "cpu") -> Iterator[None]:
    """Join the other processes if torchrun started several, and part from them at the end."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    try:
        if several:
            dist.init_process_group("cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo")
        yield
    except RuntimeError as error:
        if not several or not PARTED.search(str(error)):
            raise
        reason = str(error).splitlines()[0]
        raise ConnectionError(f"another process ended and said why, or cannot be reached ({reason})") from error
    finally:
        if dist.is_initialized() and several:
            dist.destroy_process_group()


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def own_device(name: str) -> torch.device:
    """The one of this process: of several processes, each has the graphics processor of its own number."""
    if name == "cuda" and world() > 1:
        return torch.device(name, int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device(name)


def world() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def first_alone(action: Callable[[], T]) -> T:
    """The first process acts, then the others: what it caches, they find. If it fails, they need not try."""
    if world() == 1:
        return action()
    failed = torch.ones(1)
    if rank() > 0:
        dist.broadcast(failed, 0)
        if failed:
            raise ValueError("the first process failed, and said why")
        return action()
    try:
        result = action()
        failed.zero_()
    finally:
        dist.broadcast(failed, 0)
    return result


def agreed(wish: bool) -> bool:
    """Whether any process wishes it: all hear the same answer."""
    if world() == 1:
        return wish
    wished = torch.tensor([float(wish)])
    dist.all_reduce(wished, dist.ReduceOp.MAX)
    return bool(wished)


def wait_for_all() -> None:
    """Nobody leaves while the first still writes: gloo aborts a process that does, now and then."""
    if world() > 1:
        dist.barrier()


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over all processes; one message for all of them.

    A parameter that no process used keeps no gradient, as in one process, so that the optimiser leaves it alone.
    """
    if world() == 1:
        return
    parameters = list(model.parameters())
    used = torch.tensor([float(p.grad is not None) for p in parameters])
    flat = [(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in parameters]
    message = torch.cat([*flat, used.to(flat[0])])
    dist.all_reduce(message)
    *means, used = message.split([*(f.numel() for f in flat), len(flat)])
    for p, mean, count in zip(parameters, means, used.tolist(), strict=True):
        if count:
            p.grad = torch.empty_like(p).copy_((mean / world()).view(p.shape))
