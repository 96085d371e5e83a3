"""Batches that are killed again and again: whole runs, and workers of Ray in the midst of one."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from batch_cases import assert_same_bits, run
from snips.batch.engines import RETRIES

WORKER = b"ray::on_node"  # Ray gives a process the name of the task that it works on


def survive_kills(source: Path, folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill a run at random moments, beginning anew when it gets through, until it was killed often enough.

    All runs are children that computed nothing before, as a command that is typed again.
    """
    calm, random, killed, finished = folder / "calm", np.random.default_rng(seed), 0, 0
    whole = _seconds(lambda: _in_child(lambda: run(source, calm)))
    out = folder / "killed"
    while killed < kills:
        if killed_after(whole * random.uniform(0.02, 0.6), lambda: run(source, out)):
            killed += 1
        else:
            finished += 1
            check(source, out, calm)
            shutil.rmtree(out)
    check(source, out, calm)
    return {"kills": killed, "finished_runs": finished + 1}


def survive_worker_kills(source: Path, folder: Path) -> dict[str, int]:
    """Kill workers of Ray in the midst of items, as often as Ray replaces them for the unluckiest item."""
    out = folder / "killed_workers"
    run(source, folder / "calm")
    with _killer(out, RETRIES) as killed:
        rows = run(source, out, engine="ray")
    assert all(row["error"] is None for row in rows), rows
    nothing_left(out)
    assert_same_bits(folder / "calm", out)
    return {"worker_kills": len(killed)}


def check(source: Path, folder: Path, calm: Path) -> None:
    """The same command once more: all results, with the bits of the calm run, and nothing else."""
    rows = run(source, folder)
    assert all(row["error"] is None for row in rows), rows
    assert_same_bits(calm, folder)
    nothing_left(folder)


def nothing_left(folder: Path) -> None:
    """No half-written file, no state."""
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]
    assert not list((folder / "states").iterdir())


def killed_after(seconds: float, work: Callable[[], object]) -> bool:
    """Run in a child process that is killed without warning; whether it was still running then."""
    child = _forked(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the run failed by itself"
    return os.WIFSIGNALED(status)


def _in_child(work: Callable[[], object]) -> None:
    _, status = os.waitpid(_forked(work), 0)
    assert status == 0, "the run failed by itself"


def _forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return child


def _seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


@contextmanager
def _killer(out: Path, most: int) -> Iterator[list[int]]:
    """Kills a worker each time that some item has come further since the last kill."""
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        seen = 0
        while len(killed) < most and not over.wait(0.05):
            newest = max(map(_written, (out / "states").glob("*/*.safetensors")), default=0)
            found = workers() if newest > seen else []
            if found:
                seen = time.time_ns()
                os.kill(found[len(killed) % len(found)], signal.SIGKILL)
                killed.append(found[0])

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # its item is finished
        return 0


def workers() -> list[int]:
    """Processes of a cluster that this one started and that are at work on an item; others are not ours to kill."""
    found = []
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            name = Path(f"/proc/{process}/cmdline").read_bytes()
            found += [process] if name.startswith(WORKER) and _is_descendant(process) else []
        except OSError:
            continue
    return found


def _is_descendant(process: int) -> bool:
    while process > 1 and process != os.getpid():
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2]
        process = int(after_name.split()[1])
    return process == os.getpid()
