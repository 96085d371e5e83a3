"""`snips degrade`, the files it writes, and what `snips restore` makes of them, damaged ones too."""

from __future__ import annotations

import json

import numpy as np
import pytest

from command_line import QUICK, refused, run, size_and_mode
from photo_files import saved_photo


@pytest.fixture
def image(tmp_path):
    return saved_photo(tmp_path / "photo.png", 16, 16)


def test_degrade_then_restore(image, tmp_path):
    measured = tmp_path / "measured.npz"
    result = run("degrade", image, "-p", "cs4", "-s", "0.05", "-o", "seed=3", "--out", measured, "--json")
    assert json.loads(result.stdout)["measurement_shape"] == [3, 64]
    result = run("restore", measured, "--out", tmp_path / "out", "--json", *QUICK)
    assert result.exit_code == 0, result.output
    description = json.loads(result.stdout)
    assert description["operator"] == {"problem": "cs4", "image_shape": [3, 16, 16], "options": {"seed": 3}}
    assert description["sigma_0"] == 0.05


def test_degrade_to_a_picture(image, tmp_path):
    assert run("degrade", image, "-p", "sr4", "--out", tmp_path / "small.png").exit_code == 0
    assert size_and_mode(tmp_path / "small.png")[0] == (4, 4)
    assert "ends in .npz" in refused(run("degrade", image, "-p", "cs4", "--out", tmp_path / "y.png"))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x93NUMPY"])
def test_broken_measurement_files(content, tmp_path):  # and see the fuzz test below
    (tmp_path / "y.npz").write_bytes(content)
    assert "cannot be read as an archive of arrays" in refused(
        run("restore", tmp_path / "y.npz", "--out", tmp_path / "out")
    )


@pytest.mark.parametrize(
    "description",
    [
        "[]",
        "{}",
        '{"operator": {}, "sigma_0": 0.1}',
        '{"operator": "sr2", "sigma_0": 0.1}',
        '{"operator": {"problem": "sr2", "image_shape": null, "options": {}}, "sigma_0": 0.1}',
        '{"operator": {"problem": "sr2", "image_shape": [1000000000, 1000000000, 2], "options": {}}, "sigma_0": 0.1}',
        '{"operator": {"problem": ["sr2"], "image_shape": [1, 4, 4], "options": {}}, "sigma_0": 0.1}',
        '{"operator": {"problem": "sr2", "image_shape": [1, 4, 4], "options": null}, "sigma_0": 0.1}',
        '{"operator": {"problem": "sr2", "image_shape": [1, 4, 4], "options": {}}, "sigma_0": null}',
        "[" * 100_000,
    ],
)
def test_measurements_with_a_damaged_description(description, tmp_path):
    np.savez(tmp_path / "y.npz", y=np.zeros((1, 1, 2, 2), np.float32), description=np.array(description))
    refused(run("restore", tmp_path / "y.npz", "--out", tmp_path / "out"))


def test_damaged_archives_are_refused(image, tmp_path):
    run("degrade", image, "-p", "cs4", "--out", tmp_path / "y.npz")
    whole, random = np.frombuffer((tmp_path / "y.npz").read_bytes(), np.uint8), np.random.default_rng(0)
    for _ in range(60):
        damaged = whole.copy()
        damaged[random.integers(0, len(whole), 20)] = random.integers(0, 256, 20)
        (tmp_path / "bad.npz").write_bytes(damaged.tobytes())
        result = run("restore", tmp_path / "bad.npz", "--out", tmp_path / "out", "--force", "--nfe", "8", "-k", "1")
        assert result.exit_code in (0, 2), result.output


def test_a_measurement_file_knows_its_problem(image, tmp_path):
    run("degrade", image, "-p", "sr2", "--out", tmp_path / "y.npz")
    assert "leave out" in refused(run("restore", tmp_path / "y.npz", "-p", "sr2", "--out", tmp_path / "out"))


def test_endings_of_measurements_in_capitals(image, tmp_path):
    for name in ("y.NPZ", "y.PNG"):
        assert run("degrade", image, "-p", "sr2", "--out", tmp_path / name).exit_code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["photo.png", "y.NPZ", "y.PNG"]
    result = run("restore", tmp_path / "y.NPZ", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", ["new/y", "new/y.foo", "new/y.psd"])
def test_an_ending_that_says_nothing_is_refused_with_those_that_do(name, image, tmp_path):
    line = refused(run("degrade", image, "-p", "sr2", "--out", tmp_path / name))
    assert ".npz keeps the measurement exactly" in line
    assert not (tmp_path / "new").exists()


def test_brackets_in_names_are_only_names(image, tmp_path):
    result = run("degrade", image, "--out", tmp_path / "y[/b].npz")
    assert result.exit_code == 0, result.output
    assert "y[/b].npz" in result.output


def test_frequencies_are_not_a_picture(image, tmp_path):
    assert "ends in .npz" in refused(run("degrade", image, "-p", "mri", "--out", tmp_path / "y.png"))
