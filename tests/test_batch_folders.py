"""The folder of a batch: what is ours in it, what is not, and what is damaged."""

from __future__ import annotations

import json

import pytest

from batch_cases import SETTINGS, assert_same_bits, command, items_of, pictures, run
from snips.batch import RunFolder, run_batch


@pytest.fixture
def source(tmp_path):
    return pictures(tmp_path / "in")


@pytest.mark.parametrize("record", ["[1]", '{"lr": 0.1}', '{"seed'])
@pytest.mark.parametrize("force", [False, True])
def test_somebody_elses_run_is_left_alone(record, force, source, tmp_path):
    """Other programs write a run.json, too; --force would remove the items beside it."""
    thesis = tmp_path / "out" / "items" / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("mine")
    (tmp_path / "out" / "run.json").write_text(record)
    told = command(source, *["--force"][: int(force)])
    assert told.exit_code == 2, told.output
    assert "run.json is damaged, or of something else: choose another folder" in told.stderr
    assert thesis.read_text() == "mine"


def test_a_file_is_no_folder(source, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ValueError, match="is a file, not a folder: choose another with --out"):
        run(source, tmp_path / "out")


@pytest.mark.parametrize("damage", ["[]", "{}", '{"settings', None])
def test_a_damaged_result_can_be_removed_and_comes_again(damage, source, tmp_path):
    """What the line says to do helps, and nothing else is restored again."""
    run(source, tmp_path / "calm")
    run(source, tmp_path / "out")
    place = tmp_path / "out" / "items" / "picture_1.png"
    (place / "result.json").unlink() if damage is None else (place / "result.json").write_text(damage)
    with pytest.raises(ValueError, match=r"result.json is damaged or gone: remove the folder .*picture_1.png"):
        run(source, tmp_path / "out")
    for file in place.iterdir():
        file.unlink()
    place.rmdir()
    done = []
    run(source, tmp_path / "out", progress=lambda standing, outcome: done.append(outcome and outcome.key))
    assert done == [None, "picture_1.png"]
    assert_same_bits(tmp_path / "calm", tmp_path / "out")


def test_a_result_of_another_command_is_not_taken_for_an_item(source, tmp_path):
    run(source, tmp_path / "out")
    file = tmp_path / "out" / "items" / "picture_1.png" / "result.json"
    result = json.loads(file.read_text())
    del result["settings"]["item"]  # as `snips restore` writes it
    file.write_text(json.dumps(result))
    with pytest.raises(ValueError, match="other options"):
        run(source, tmp_path / "out")


def test_stray_files_are_no_lost_items(source, tmp_path):
    run(source, tmp_path / "out")
    (tmp_path / "out" / "items" / ".DS_Store").write_text("")
    scores = run_batch(items_of(source, tmp_path / "out"), RunFolder(tmp_path / "out", 0), SETTINGS)
    assert not scores.warnings
