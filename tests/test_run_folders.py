"""Folders of long runs: one run at a time, and nobody else's file is replaced."""

import errno
import fcntl

import pytest

from snips.experiments import Request, run
from snips.experiments.base import Experiment, Outcome, Study
from snips.files import locked
from snips.training import train
from training_cases import small_settings


def empty_experiment(out):
    study = Study({}, [], lambda measured: Outcome({}))
    return run("empty", Experiment("", lambda request: study, lambda results: ""), Request(out), lambda *_: None)


def test_a_folder_belongs_to_one_run_and_is_free_after_it(tmp_path):
    with locked(tmp_path / "run"):
        with pytest.raises(ValueError, match="another run is at work in .*run: wait"), locked(tmp_path / "run"):
            pass
        with locked(tmp_path / "other"):
            pass
    with locked(tmp_path / "run"):
        pass


def test_an_error_inside_is_not_taken_for_another_run(tmp_path):
    with pytest.raises(BlockingIOError), locked(tmp_path):
        raise BlockingIOError


def test_a_file_in_its_place_stays(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(ValueError, match="is a file, not a folder"), locked(tmp_path / "run"):
        pass
    assert (tmp_path / "run").read_text() == "mine"


def test_a_drive_without_locks_is_no_hindrance(tmp_path, monkeypatch):
    def none(handle, operation):
        raise OSError(errno.EBADF, "Bad file descriptor")  # what NFS says of a folder

    monkeypatch.setattr(fcntl, "flock", none)
    with locked(tmp_path / "run"):
        assert (tmp_path / "run").is_dir()


def test_trainings_and_experiments_wait_for_nobody(tmp_path):
    settings = small_settings(tmp_path)
    with locked(tmp_path / "run"), pytest.raises(ValueError, match="another run"):
        train(settings)
    assert not list((tmp_path / "run").iterdir())
    assert train(settings).step == settings.steps
    with locked(tmp_path / "out" / "empty"), pytest.raises(ValueError, match="another run"):
        empty_experiment(tmp_path / "out")
    assert empty_experiment(tmp_path / "out")["results"] == {}
