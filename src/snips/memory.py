"""How much memory is free, and a clear line where something needs more."""

from __future__ import annotations

import os
from pathlib import Path


def check_memory(needed: int, what: str, advice: str = "use a structured operator or a smaller image") -> None:
    """Refuse with a clear line what would not fit, before anything is allocated."""
    available = available_memory()
    if needed > available:
        raise ValueError(f"{what} needs {needed / 2**30:.1f} GiB, but {available / 2**30:.1f} GiB are free: {advice}")


def available_memory() -> int:
    """Free main memory in bytes, of the machine or the container; 8 GiB where the system does not tell."""
    limit = _container_memory()
    return _machine_memory() if limit is None else min(_machine_memory(), limit)


def _container_memory() -> int | None:
    """What the control group (version 2) of this process leaves; None where there is no limit."""
    group = Path("/sys/fs/cgroup")
    try:
        return int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
    except (OSError, ValueError):  # "max", or no such group
        return None


def _machine_memory() -> int:
    try:
        with open("/proc/meminfo") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 8 * 2**30
