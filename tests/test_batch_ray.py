"""Batches on Ray: the same bits as in one process, also when workers are killed."""

from __future__ import annotations

import pytest

from batch_cases import assert_same_bits, pictures, run
from batch_kills import survive_worker_kills

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray leaves sockets and files open
    pytest.mark.usefixtures("cluster"),
]


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_ray_gives_the_same_bits(tmp_path):
    source = pictures(tmp_path / "in", 6)
    run(source, tmp_path / "calm")
    rows = run(source, tmp_path / "out", engine="ray")
    assert all(row["error"] is None for row in rows)
    assert_same_bits(tmp_path / "calm", tmp_path / "out")


@pytest.mark.parametrize("round_", range(3))
def test_killed_workers_are_replaced(round_, tmp_path):
    assert survive_worker_kills(pictures(tmp_path / "in", 6), tmp_path)["worker_kills"] >= 2
