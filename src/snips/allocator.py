"""Freed memory: one setting of the C library makes PyTorch on Linux CPUs two to four times faster for large tensors."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # from malloc.h
LARGEST_INT = 2**31 - 1


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed memory for the next tensor; returns whether it agreed.

    By default every large tensor is given back to the system when it is freed, and each page of the next one costs a
    page fault. M_MMAP_MAX = 0 says that none is to be (M_MMAP_THRESHOLD would, but only up to 32 MiB, and one of 1024
    squared pixels has more). The setting holds for the whole process, so programs make it (the command line does), not
    the library.
    """
    mallopt = _glibc("mallopt")
    return bool(mallopt and mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, LARGEST_INT))


def give_back_freed_memory() -> None:
    """All of it, once, whatever was asked for: so that memory which is taken next can be seen to be taken."""
    if trim := _glibc("malloc_trim"):
        trim(0)


def _glibc(function: str) -> Any | None:
    """None where there is another C library."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return getattr(ctypes.CDLL(None), function)
    except (OSError, AttributeError):
        return None
