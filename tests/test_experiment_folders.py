"""Folders of experiments: they go on after any stop, and nothing foreign is touched or believed."""

from __future__ import annotations

import json

import pytest
import torch
from PIL import Image

from snips import files
from snips.experiments import Request, run, runs
from snips.experiments.base import Experiment, Measured, Outcome, Part, Study


def silent(*_):
    pass


class Counting:
    """Three parts that count how often they are computed; the part `fails` stops the run."""

    def __init__(self, settings=None, fails: str = "") -> None:
        self.settings, self.fails, self.computed = settings or {"version": 1}, fails, []
        self.experiment = Experiment("counts", self.prepare, lambda results: f"total {results['total']}\n")

    def prepare(self, request: Request) -> Study:
        parts = [Part(key, key, lambda on_step, key=key: self.compute(key)) for key in ("a", "b", "c")]
        return Study(self.settings, parts, self.conclude)

    def compute(self, key: str) -> Measured:
        if key == self.fails:
            raise KeyboardInterrupt
        self.computed.append(key)
        return Measured({"value": ord(key)}, {"x": torch.full((2,), float(ord(key)))})

    def conclude(self, measured: list[Measured]) -> Outcome:
        total = sum(m.facts["value"] for m in measured)
        assert total == sum(int(m.tensors["x"][0]) for m in measured)
        return Outcome({"total": total}, {"picture": Image.new("RGB", (2, 2))})


def test_a_stopped_run_goes_on_after_the_last_finished_part(tmp_path):
    first = Counting(fails="c")
    with pytest.raises(KeyboardInterrupt):
        run("counting", first.experiment, Request(tmp_path), silent)
    assert first.computed == ["a", "b"]
    assert not (tmp_path / "counting" / "result.json").exists()
    second = Counting()
    record = run("counting", second.experiment, Request(tmp_path), silent)
    assert second.computed == ["c"]
    assert record["results"] == {"total": 294}
    stored = tmp_path / "counting"
    assert json.loads((stored / "result.json").read_text()) == record
    assert "total 294" in (stored / "result.md").read_text(encoding="utf-8")
    assert (stored / "picture.png").is_file()


def test_other_settings_are_refused_and_begin_again_when_forced(tmp_path):
    run("counting", Counting().experiment, Request(tmp_path), silent)
    other = Counting({"version": 2})
    with pytest.raises(ValueError, match="version differ.*--force"):
        run("counting", other.experiment, Request(tmp_path), silent)
    assert other.computed == []
    run("counting", other.experiment, Request(tmp_path), silent, force=True)
    assert other.computed == ["a", "b", "c"]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "counting").mkdir()
    (tmp_path / "counting" / "notes.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(ValueError, match="something else"):
            run("counting", Counting().experiment, Request(tmp_path), silent, force)
    assert [f.name for f in (tmp_path / "counting").iterdir()] == ["notes.txt"]


def test_a_damaged_part_is_named(tmp_path):
    run("counting", Counting().experiment, Request(tmp_path), silent)
    (tmp_path / "counting" / "parts" / "b.json").write_text("{")
    with pytest.raises(ValueError, match="b.json is damaged"):
        run("counting", Counting().experiment, Request(tmp_path), silent)


def test_a_part_whose_tensors_are_gone_is_computed_again(tmp_path):
    run("counting", Counting().experiment, Request(tmp_path), silent)
    (tmp_path / "counting" / "parts" / "b.safetensors").unlink()
    again = Counting()
    assert run("counting", again.experiment, Request(tmp_path), silent)["results"] == {"total": 294}
    assert again.computed == ["b"]
    (tmp_path / "counting" / "parts" / "c.safetensors").write_bytes(b"{")
    with pytest.raises(ValueError, match="c.safetensors is damaged"):
        run("counting", Counting().experiment, Request(tmp_path), silent)


def cloned(folder):
    """As git keeps a finished experiment: without settings.json, parts and pictures."""
    run("counting", Counting().experiment, Request(folder), silent)
    for file in (*(folder / "counting" / "parts").iterdir(), folder / "counting" / "settings.json"):
        file.unlink()
    (folder / "counting" / "parts").rmdir()
    (folder / "counting" / "picture.png").unlink()


def test_a_finished_experiment_of_a_clone_is_its_own(tmp_path):
    cloned(tmp_path)
    with pytest.raises(ValueError, match="version differ.*--force"):
        run("counting", Counting({"version": 2}).experiment, Request(tmp_path), silent)
    again = Counting()
    run("counting", again.experiment, Request(tmp_path), silent)
    assert again.computed == ["a", "b", "c"]


def test_a_finished_experiment_of_a_clone_can_be_forced(tmp_path):
    cloned(tmp_path)
    other = Counting({"version": 2})
    assert run("counting", other.experiment, Request(tmp_path), silent, force=True)["settings"] == {"version": 2}
    assert other.computed == ["a", "b", "c"]


@pytest.mark.parametrize("content", ['{"experiment": "other", "settings": {}}', '{"experiment": "counting"}', "[]"])
def test_a_result_of_something_else_is_left_alone(content, tmp_path):
    (tmp_path / "counting").mkdir()
    (tmp_path / "counting" / "result.json").write_text(content)
    for force in (False, True):
        with pytest.raises(ValueError, match="something else"):
            run("counting", Counting().experiment, Request(tmp_path), silent, force)
    assert (tmp_path / "counting" / "result.json").read_text() == content


def test_what_a_kill_left_at_the_start_blocks_nothing(tmp_path):
    (tmp_path / "counting" / "parts").mkdir(parents=True)
    (tmp_path / "counting" / ".settings-4711.json").write_text("{")
    assert run("counting", Counting().experiment, Request(tmp_path), silent)["results"] == {"total": 294}


@pytest.mark.parametrize("written", [False, True])
def test_old_parts_are_never_taken_for_those_of_new_settings(written, tmp_path, monkeypatch):
    """A forced run that is killed before or after it writes its settings."""
    run("counting", Counting().experiment, Request(tmp_path), silent)

    def kill(file, settings):
        if written:
            files.write_json(file, settings)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_json", kill)
        with pytest.raises(KeyboardInterrupt):
            run("counting", Counting({"version": 2}).experiment, Request(tmp_path), silent, force=True)
    again = Counting({"version": 2 if written else 1})
    run("counting", again.experiment, Request(tmp_path), silent)
    assert again.computed == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("settings.json", "[]", "settings.json is damaged .*: begin again with --force"),
        ("parts/b.json", "[]", "b.json is damaged .*: remove it, and the same command goes on"),
        ("parts/b.json", "{}", "b.json is damaged"),
    ],
)
def test_json_of_another_kind_is_named(file, content, message, tmp_path):
    run("counting", Counting().experiment, Request(tmp_path), silent)
    (tmp_path / "counting" / file).write_text(content)
    with pytest.raises(ValueError, match=message):
        run("counting", Counting().experiment, Request(tmp_path), silent)
