"""Tensors that are the same wherever and whenever: exact when a module is cast, and with memory of their own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

ALIGNMENT = 64  # bytes: where PyTorch lets a tensor on the CPU begin


def in_own_memory(x: Tensor) -> Tensor:
    """The same values, row by row from a place where PyTorch itself would put them; a copy where they are not there.

    Products may round otherwise by where in memory a tensor begins and in which order it lies. Arrays of NumPy begin at
    multiples of 16 bytes and parts of files at multiples of 8, now here, now there, so that a run would not repeat.
    """
    settled = x.is_contiguous() and (x.device.type != "cpu" or x.data_ptr() % ALIGNMENT == 0)
    return x if settled else x.clone(memory_format=torch.contiguous_format)


class ExactBuffers(nn.Module):
    """A module that works in PyTorch's default precision, float32, and in full float64 precision after `.double()`.

    A plain buffer that was rounded to float32 would keep its rounding errors when cast back.
    """

    def __init__(self) -> None:
        super().__init__()
        self._exact: dict[str, Tensor] = {}

    def register_exact(self, name: str, value: Tensor) -> None:
        self._exact[name] = value.detach().to(device="cpu", dtype=torch.float64)
        self.register_buffer(name, value.detach().to(torch.get_default_dtype()), persistent=False)

    def follow(self, like: Tensor) -> None:
        """Take the precision and the device of a tensor; nothing is lost on the way down and up again."""
        if not self._exact:
            return
        buffer, dtype = getattr(self, next(iter(self._exact))), like.dtype.to_real()
        if buffer.dtype != dtype or buffer.device != like.device:
            self.to(device=like.device, dtype=dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> ExactBuffers:
        super()._apply(fn, recurse)
        for name, exact in self._exact.items():
            moved = getattr(self, name)
            setattr(self, name, exact.to(dtype=moved.dtype, device=moved.device))
        return self


def contents(module: nn.Module) -> dict[str, Tensor]:
    """All parameters and buffers, those that are known exactly in float64 whatever precision they are used in now."""
    found = dict(module.named_parameters()) | dict(module.named_buffers())
    for path, part in module.named_modules():
        if isinstance(part, ExactBuffers):
            found |= {f"{path}.{name}".lstrip("."): value for name, value in part._exact.items()}
    return found
