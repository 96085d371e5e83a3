"""Free memory in a container, read from files as the kernel writes them."""

from __future__ import annotations

import pytest

from snips import memory

GIB = 2**30
VERSIONS = {
    "version 2": ("memory.max", "memory.current", "inactive_file"),
    "version 1": ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
}
NO_LIMIT = {"version 2": "max", "version 1": "9223372036854771712"}


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture(autouse=True)
def groups(tmp_path, monkeypatch):
    """A container of its own, on a machine with 64 GiB free."""
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_machine_memory", lambda: 64 * GIB)
    return tmp_path


def write(groups, version, limit, used, cached=None):
    top, current, inactive = (groups / name for name in VERSIONS[version])
    top.parent.mkdir(exist_ok=True)
    top.write_text(f"{limit}\n")
    current.write_text(f"{used}\n")
    if cached is not None:
        (top.parent / "memory.stat").write_text(f"anon 17\n{inactive.name} {cached}\nactive_file 5\n")


def test_files_in_the_cache_are_free(groups, version):
    write(groups, version, limit=4 * GIB, used=4 * GIB, cached=3 * GIB)
    assert memory.available_memory() == 3 * GIB


def test_without_statistics_all_that_is_used_counts(groups, version):
    write(groups, version, limit=4 * GIB, used=3 * GIB)
    assert memory.available_memory() == GIB


def test_an_overdrawn_container_has_nothing_left(groups, version):
    write(groups, version, limit=GIB, used=2 * GIB, cached=0)
    assert memory.available_memory() == 0


def test_no_limit_leaves_the_machine(groups, version):
    write(groups, version, limit=NO_LIMIT[version], used=GIB, cached=0)
    assert memory.available_memory() == 64 * GIB


def test_a_limit_above_the_machine_changes_nothing(groups, version):
    write(groups, version, limit=100 * GIB, used=GIB, cached=0)
    assert memory.available_memory() == 64 * GIB


def test_no_groups_leave_the_machine():
    assert memory.available_memory() == 64 * GIB
