"""What a worker of a cluster finds when it takes over an item: results, leftovers, other versions."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from batch_cases import SETTINGS, assert_same_bits, items_of, pictures, run
from batch_kills import nothing_left
from snips.batch import RunFolder, engines, run_batch, work
from snips.batch.engines import on_node
from snips.batch.work import weights_digests
from snips.files import read_json, write_json
from snips.priors.unet import UNet, UNetConfig, save_unet
from snips.results import storage
from snips.running import costs


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

    class Ray:
        init = staticmethod(lambda **options: pytest.fail("there is nobody to connect to"))
        is_initialized = staticmethod(lambda: False)

    monkeypatch.setattr(engines, "_ray", lambda: Ray)
    with (
        pytest.raises(ValueError, match="no Ray cluster answers at 127.0.0.1:1: .*refused"),
        engines.on_ray(SETTINGS, "127.0.0.1:1"),
    ):
        pass


class EagerRay:
    """Runs each task at once, in a folder of its own, as workers of an existing cluster do."""

    class exceptions:
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            cause: BaseException

        WorkerCrashedError = OutOfMemoryError = NodeDiedError = type("Death", (RayError,), {})

    def __init__(self, home, fails=None):
        self.home, self.fails = home, fails

    def remote(self, **needs):
        return lambda function: SimpleNamespace(remote=partial(partial, function))

    def wait(self, tasks):
        return tasks[:1], tasks[1:]

    def get(self, task):
        if self.fails:
            raise self.fails
        before = os.getcwd()
        os.chdir(self.home)
        try:
            return task()
        finally:
            os.chdir(before)

    def is_initialized(self):
        return True

    def cancel(self, task, force):
        pass


def test_relative_names_hold_on_the_workers(tmp_path, monkeypatch):
    """Of the run's folder, and of a file of weights."""
    source, home = pictures(tmp_path / "in"), tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(engines, "_ray", lambda: EagerRay(home))
    monkeypatch.chdir(tmp_path)
    save_unet(UNet(UNetConfig(channels=(3,), widths=(8,), encoder=(1,), decoder=(1,))), Path("own.safetensors"))
    settings = replace(SETTINGS, prior="own.safetensors", prior_weights=weights_digests("own.safetensors"))
    for out, engine in (("calm", "local"), ("out", "ray")):
        scores = run_batch(items_of(source, Path(out)), RunFolder(Path(out)), settings, engine=engine)
        assert not scores.failed, scores.failed
        assert {row["prior"] for row in scores.rows} == {"own.safetensors"}
    assert_same_bits(tmp_path / "calm", tmp_path / "out")
    assert not list(home.iterdir())


def test_a_cluster_that_fails_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "_ray", lambda: EagerRay(tmp_path, EagerRay.exceptions.RayError("the head\nis gone")))
    with pytest.raises(OSError, match=r"could not go on with picture_0.png, but the same command does \(the head is"):
        run(pictures(tmp_path / "in"), tmp_path / "out", engine="ray")


def test_whatever_an_item_raises_ends_it_only(tmp_path, monkeypatch):
    """Also what nobody foresaw: with its type, as its words alone may say little."""
    source, restored = pictures(tmp_path / "in"), work._restored

    def unforeseen(folder, settings, item):
        if item.key == "picture_1.png":
            raise KeyError("colour")
        return restored(folder, settings, item)

    monkeypatch.setattr(work, "_restored", unforeseen)
    assert [row["error"] for row in run(source, tmp_path / "out")] == [None, "KeyError: 'colour'", None]


def test_an_item_that_does_not_fit_into_memory_ends_it_only(tmp_path, monkeypatch):
    """The system would kill the run, and each one that goes on at the same item."""
    source = pictures(tmp_path / "in")
    Image.new("RGB", (64, 64)).save(source / "huge.png")
    monkeypatch.setattr(costs, "available_memory", lambda: 2**18)
    huge, *others = run(source, tmp_path / "out")
    assert "3 samples need" in huge["error"]
    assert [row["error"] for row in others] == [None, None, None]


def test_names_of_arguments_are_no_options(tmp_path):
    """They would reach the builder twice, a TypeError."""
    pictures(tmp_path / "in")
    (tmp_path / "list.csv").write_text("file,option.image_shape\nin/picture_0.png,3\nin/picture_1.png,\n")
    wrong, right = run(tmp_path / "list.csv", tmp_path / "out")
    assert "image_shape" in wrong["error"]
    assert right["error"] is None


def test_pictures_that_cannot_be_drawn_are_a_warning(tmp_path, monkeypatch):
    """The samples are there, and the others are restored."""

    def broken(*_):
        raise ValueError("no such colour")

    monkeypatch.setattr(storage, "write_pictures", broken)
    source, folder = pictures(tmp_path / "in"), RunFolder(tmp_path / "out")
    scores = run_batch(items_of(source, folder.path), folder, SETTINGS)
    assert not scores.failed
    assert len(scores.warnings) == 3
    assert "picture_0.png: its samples are safe, but its pictures could not be drawn (no such" in scores.warnings[0]


def test_a_result_that_another_worker_wrote_meanwhile_stays(finished):
    """One that was thought to be dead; the same item has the same bits."""
    _, folder, items = finished
    before = {path: path.stat().st_mtime_ns for path in folder.place(items[0]).rglob("*")}
    assert work.restore_item(folder, SETTINGS, items[0]).error is None
    assert before == {path: path.stat().st_mtime_ns for path in folder.place(items[0]).rglob("*")}
