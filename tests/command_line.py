"""The command line as tests use it."""

from __future__ import annotations

from pathlib import Path

from PIL import Image
from typer.testing import CliRunner

from snips.cli import app

QUICK = ["--nfe", "10", "--samples", "2"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def restored(tmp_path: Path, *arguments):
    """Run `snips restore`, which must work; its results are in `out`."""
    result = run("restore", *arguments, "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    return result


def refused(result) -> str:
    """Exit code 2 and exactly one line that explains why."""
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.output
    return lines[0]


def size_and_mode(path: Path) -> tuple[tuple[int, int], str]:
    with Image.open(path) as picture:
        return picture.size, picture.mode
