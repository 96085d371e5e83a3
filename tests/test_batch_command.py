"""`snips batch` as it is typed: what is chosen, what is said, what is refused before anything is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from batch_cases import command, pictures
from snips import Restoration
from snips.batch.runs import Standing
from snips.cli import app
from snips.cli import batch as commands
from snips.running import costs


@pytest.fixture
def source(tmp_path):
    return pictures(tmp_path / "in")


def test_the_chunk_is_chosen_once(source, tmp_path, monkeypatch):
    """What fits when the run begins holds for all of it, and is recorded."""
    for pixels in (256, 10**6):
        monkeypatch.setattr(commands, "fitting_pixels", lambda pixels=pixels: pixels)
        assert command(source).exit_code == 0
        results = list((tmp_path / "out" / "items").glob("*/result.json"))
        chunks = {json.loads(file.read_text())["settings"]["sampler_options"]["chunk"] for file in results}
        assert chunks == {1}
        assert json.loads((tmp_path / "out" / "run.json").read_text())["chunk_pixels"] == 256
        (source / "later.png").write_bytes((source / "picture_0.png").read_bytes())
    assert len(results) == 4


def test_little_memory_means_few_chains(monkeypatch):
    assert costs.chosen_chunk((3, 16, 16), 1000) == 3
    assert costs.chosen_chunk((3, 64, 64), 1000) == 1
    monkeypatch.setattr(costs, "available_memory", lambda: 2**23)
    few = costs.fitting_pixels()
    monkeypatch.setattr(costs, "available_memory", lambda: 2**50)
    assert 1 <= few < costs.fitting_pixels() == costs.CHUNK_PIXELS


def test_command(source, tmp_path):
    result = command(source, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"folder": str(tmp_path / "out"), "items": 3, "failed": 0, "warnings": 0}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["threads"] == torch.get_num_threads()
    other = command(source, "--seed", "1")
    assert other.exit_code == 2
    assert len(other.stderr.strip().splitlines()) == 1
    (source / "bad.png").write_bytes(b"nothing")
    worse = command(source)
    assert worse.exit_code == 1
    assert "3 of 4 restored, 1 failed" in worse.stdout


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["-p", "dnoise"], "did you mean denoise"),
        (["--precision", "float8"], "unknown precision 'float8'"),
        (["--precision", "bfloat16"], "gaussian cannot be used in lower precision"),
        (["--engine", "spark"], "unknown engine 'spark'"),
        (["--address", "auto"], "add --engine ray"),
        (["--device", "tpu"], "unknown device 'tpu'"),
        (["--sigma", "loud"], "loud"),
        (["--chunk", "0"], "chunk"),
        (["--samples", "0"], "samples"),
        (["--nfe", "1"], "at least nfe=4"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(wrong, told, source, tmp_path):
    """Not item by item, ten thousand times."""
    result = command(source, *wrong)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        (Standing(4, 0, 0, 0), "an unknown time left"),
        (Standing(10, 3, 2, 0), "2 minutes left"),  # 5 to go, at 25 seconds each
        (Standing(4, 1, 3, 1), "50 seconds in all"),
    ],
)
def test_the_time_that_is_left(standing, told):
    assert commands._left(standing, 50.0) == told


def test_another_source_is_refused(source, tmp_path):
    """Its measurements may have the same names, and their results would be taken for finished."""
    assert command(source).exit_code == 0
    other = pictures(tmp_path / "other")
    arguments = ["batch", other, "--out", tmp_path / "out", "-p", "sr2", "-s", "0.1", "-k", "2", "--nfe", "12"]
    refused = CliRunner().invoke(app, [*map(str, arguments), "--prior", "gaussian"])
    assert refused.exit_code == 2
    assert "source differ" in refused.stderr


def test_source_and_results_may_be_moved_together(tmp_path):
    source = pictures(tmp_path / "here" / "in")
    assert command(source).exit_code == 0
    (tmp_path / "here").rename(tmp_path / "there")
    again = command(tmp_path / "there" / "in")
    assert again.exit_code == 0, again.output
    assert "warning" not in again.stderr


def test_a_guessed_noise_is_said_and_stored(source, tmp_path):
    with Image.open(source / "picture_0.png") as picture:
        picture.save(source / "compressed.jpg")
    told = command(source, "-s", "auto")
    assert told.exit_code == 0, told.output
    assert "of 4 items is a guess" in told.stderr
    table = pyarrow.parquet.read_table(tmp_path / "out" / "scores.parquet").to_pylist()
    row = next(row for row in table if row["key"] == "compressed.jpg")
    assert row["noise"].startswith("sigma_0 = ")
    assert "JPEG" in row["noise_doubt"]


def test_too_few_levels_of_the_papers_sampler_are_said_before_the_run(source):
    told = command(source, "--sampler", "langevin", "--levels", "8")
    assert told.exit_code == 0, told.output
    assert "warning: 8 levels are too few: noise of about 16 stays in the samples" in told.stderr


def test_a_given_noise_is_no_estimate(source, tmp_path):
    assert command(source).exit_code == 0
    table = pyarrow.parquet.read_table(tmp_path / "out" / "scores.parquet")
    assert table["noise"].null_count == table["noise_doubt"].null_count == 3


def test_folders_whose_names_are_no_unicode(tmp_path):
    """Linux lets a name be any bytes: the night's work has its table and its page all the same."""
    home = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    try:
        source = pictures(home / "in", 1)
    except OSError:
        pytest.skip("this system takes only Unicode")
    (source / "bad.png").write_bytes(b"nothing")
    told = command(source)
    assert told.exit_code == 1, told.output
    assert (home / "out" / "summary.html").is_file()
    with (home / "out" / "scores.parquet").open("rb") as file:  # of paths Arrow takes only Unicode
        errors = pyarrow.parquet.read_table(file)["error"].to_pylist()
    assert r"caf\udce9/in/bad.png cannot be read" in errors[0]


def test_grey_pictures_with_three_channels_are_grey_as_in_restore(source, tmp_path):
    with Image.open(source / "picture_0.png") as picture:
        picture.convert("L").convert("RGB").save(source / "picture_0.png")
    assert command(source).exit_code == 0
    shapes = {item.samples.shape[-3] for item in map(Restoration.load, (tmp_path / "out" / "items").iterdir())}
    assert shapes == {1, 3}
    assert Restoration.load(tmp_path / "out" / "items" / "picture_0.png").samples.shape[-3] == 1


def test_workers_share_the_memory(monkeypatch):
    """On Ray as many items are under way as the cores hold."""
    monkeypatch.setattr(costs, "available_memory", lambda: 2**34)
    monkeypatch.setattr(costs, "pixel_bytes", lambda prior, channels: 1024)
    monkeypatch.setattr(commands.os, "cpu_count", lambda: 8)
    chosen = {engine: commands._machine({}, "natural", 2, torch.device("cpu"), engine) for engine in ("local", "ray")}
    alone, shared = (chosen[engine]["untiled_pixels"] for engine in ("local", "ray"))
    assert (alone, shared) == (2**23, 2**21)
