"""Batches on Ray: the same bits as in one process, also when workers are killed."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from batch_cases import SETTINGS, assert_same_bits, items_of, pictures, run
from snips.batch import RunFolder, run_batch

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray leaves sockets and files open


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_ray_gives_the_same_bits(tmp_path):
    source = pictures(tmp_path / "in", 6)
    run(source, tmp_path / "calm")
    rows = run(source, tmp_path / "out", engine="ray")
    assert all(row["error"] is None for row in rows)
    assert_same_bits(tmp_path / "calm", tmp_path / "out")


@pytest.mark.usefixtures("cluster")
def test_killed_workers_are_replaced(tmp_path):
    source = pictures(tmp_path / "in", 6)
    run(source, tmp_path / "calm")
    killed: list[int] = []

    def kill() -> None:
        while len(killed) < 3 and not over.is_set():
            states = list((tmp_path / "out" / "states").glob("*/*.safetensors"))
            for worker in workers() if states else []:
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
                break
            time.sleep(0.3)

    over, killer = threading.Event(), threading.Thread(target=kill)
    killer.start()
    try:
        scores = run_batch(items_of(source, tmp_path / "out"), RunFolder(tmp_path / "out", 0), SETTINGS, engine="ray")
    finally:
        over.set()
        killer.join()
    assert killed
    assert not scores.failed, scores.failed
    assert_same_bits(tmp_path / "calm", tmp_path / "out")


def workers() -> list[int]:
    """Processes of this cluster that are at work on an item: Ray gives them the name of their task."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                found += [int(process)] if file.read().startswith(b"ray::on_node") else []
        except OSError:
            continue
    return found
