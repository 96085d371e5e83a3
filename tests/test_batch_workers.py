"""What a worker of a cluster finds when it takes over an item: results, leftovers, other versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batch_cases import SETTINGS, assert_same_bits, items_of, pictures, run
from batch_kills import nothing_left
from snips.batch import RunFolder, run_batch
from snips.batch.engines import on_node
from snips.files import read_json, write_json


@pytest.fixture
def finished(tmp_path):
    """A run's folder, its items, and what the first of them looks like on the disk."""
    source, out = pictures(tmp_path / "in"), tmp_path / "out"
    run(source, out)
    return source, RunFolder(out, 0), items_of(source, out)


def test_a_result_whose_worker_died_before_it_answered_is_kept(finished):
    """Ray runs the task again: the result is there already, and writing it again would be an error."""
    _, folder, items = finished
    before = {path: path.stat().st_mtime_ns for path in folder.place(items[0]).rglob("*")}
    assert before
    outcome = on_node(folder, SETTINGS, items[0])
    assert (outcome.key, outcome.error) == (items[0].key, None)
    assert before == {path: path.stat().st_mtime_ns for path in folder.place(items[0]).rglob("*")}


@pytest.mark.parametrize("name", ["torch", "snips", "python"])
def test_a_node_with_other_versions_is_refused(name, finished):
    """A worker would go on with an item that others began, and the bits would differ without a word."""
    _, folder, items = finished
    record = read_json(folder.path / "run.json")
    write_json(folder.path / "run.json", {**record, "versions": {**record["versions"], name: "0.0.1"}})
    with pytest.raises(OSError, match=f"has {name} .*the run began with 0.0.1: install the same"):
        on_node(folder, SETTINGS, items[0])


def test_what_dead_workers_left_is_gone_when_the_run_ends(finished, tmp_path, monkeypatch):
    """Not only when the next one begins: a run whose workers were replaced may be the last."""
    from snips.batch import engines

    source, _, _ = finished
    restore_item = engines.restore_item

    def with_leftovers(folder, settings, item):
        outcome = restore_item(folder, settings, item)
        (folder.path / "items" / f".{item.name}-dead").mkdir()
        (folder.path / "states" / item.name).mkdir()
        return outcome

    monkeypatch.setattr(engines, "restore_item", with_leftovers)
    run(source, tmp_path / "again")
    nothing_left(tmp_path / "again")
    assert_same_bits(tmp_path / "out", tmp_path / "again")


def test_more_threads_than_cores_are_refused(tmp_path, monkeypatch):
    """Ray would wait for ever for a machine that is large enough."""
    from snips.batch import engines

    stopped = []

    class Ray:
        init = staticmethod(lambda **options: None)
        is_initialized = staticmethod(lambda: False)
        cluster_resources = staticmethod(lambda: {"CPU": 2.0})
        shutdown = staticmethod(lambda: stopped.append(True))

    monkeypatch.setattr(engines, "_ray", lambda: Ray)
    source = pictures(tmp_path / "in")
    with pytest.raises(ValueError, match="3 threads never starts on 2 cores"):
        run_batch(items_of(source, tmp_path), RunFolder(tmp_path / "out"), replace(SETTINGS, threads=3), engine="ray")
    assert stopped == [True]
    assert not (tmp_path / "out").exists()  # where a run.json would keep the threads


def test_an_address_where_nobody_answers_is_one_line(monkeypatch):
    """Ray would try again for minutes."""
    from snips.batch import engines

    class Ray:
        init = staticmethod(lambda **options: pytest.fail("there is nobody to connect to"))
        is_initialized = staticmethod(lambda: False)

    monkeypatch.setattr(engines, "_ray", lambda: Ray)
    with (
        pytest.raises(ValueError, match="no Ray cluster answers at 127.0.0.1:1: .*refused"),
        engines.on_ray(SETTINGS, "127.0.0.1:1"),
    ):
        pass
