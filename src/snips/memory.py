"""How much memory is free, and a clear line where something needs more."""

from __future__ import annotations

import os
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
# For both versions of control groups: the folder, its limit, what is used, and which part of that are files in the
# cache, which the kernel gives up as soon as memory is asked for.
CONTROLLERS = (
    (".", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def check_memory(needed: int, what: str, advice: str = "use a structured operator or a smaller image") -> None:
    """Refuse with a clear line what would not fit, before anything is allocated."""
    available = available_memory()
    if needed > available:
        raise ValueError(f"{what} needs {needed / 2**30:.1f} GiB, but {available / 2**30:.1f} GiB are free: {advice}")


def is_out_of_memory(error: Exception) -> bool:
    """Whether PyTorch says so, in its words for main memory or with its class for a graphics processor's."""
    return "can't allocate memory" in str(error) or type(error).__name__ == "OutOfMemoryError"


def available_memory() -> int:
    """Free main memory in bytes, of the machine or the container; 8 GiB where the system does not tell."""
    limit = _container_memory()
    return _machine_memory() if limit is None else min(_machine_memory(), limit)


def _container_memory() -> int | None:
    """What the control group of this process leaves; None where there is no limit."""
    for group, limit, usage, reclaimable in CONTROLLERS:
        try:
            used = int((GROUPS / group / usage).read_text()) - _counted(GROUPS / group / "memory.stat", reclaimable)
            return max(0, int((GROUPS / group / limit).read_text()) - used)
        except (OSError, ValueError):  # "max", or no such group
            continue
    return None


def _counted(file: Path, name: str) -> int:
    """The number behind a name in a file of lines `name number`; 0 where it is missing."""
    try:
        return int(dict(line.split() for line in file.read_text().splitlines())[name])
    except (OSError, KeyError, ValueError):
        return 0


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
