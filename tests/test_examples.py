"""Every script in examples/ runs and says what it should."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, capsys, tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    return capsys.readouterr().out


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_all_examples_are_tested():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {name.removeprefix("test_") for name in globals() if name.startswith("test_")} - {
        "all_examples_are_tested"
    }


def test_restore_a_photo(capsys, tmp_path, monkeypatch):
    assert "2 samples of 1 image 3x64x64" in run("restore_a_photo", capsys, tmp_path, monkeypatch)
    assert (tmp_path / "enlarged" / "report.html").is_file()


def test_unknown_noise(capsys, tmp_path, monkeypatch):
    lines = run("unknown_noise", capsys, tmp_path, monkeypatch).splitlines()
    assert numbers(lines[0])[0] == pytest.approx(0.1, rel=0.1)
    sigma_0, error = numbers(lines[1])
    assert error < 0.7 * sigma_0  # the noise was 0.1: denoising must help


def test_fill_a_hole(capsys, tmp_path, monkeypatch):
    inside, outside = numbers(run("fill_a_hole", capsys, tmp_path, monkeypatch))
    assert inside > 2 * outside


def test_any_matrix(capsys, tmp_path, monkeypatch):
    pytest.importorskip("xarray")
    assert 0.01 < numbers(run("any_matrix", capsys, tmp_path, monkeypatch))[-1] < 0.3


def test_exact_posterior(capsys, tmp_path, monkeypatch):
    ours, true, distance = numbers(run("exact_posterior", capsys, tmp_path, monkeypatch))
    assert ours == pytest.approx(true, rel=0.1)
    assert distance < true / 2
