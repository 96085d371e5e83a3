"""Documented benchmarks run, with options that make them shorter, and show figures."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import snips
from documented import RECORDED, ROOT, SHORTER

NEEDS = {"peers": "deepinv", "kills": "ray", "web_load": "gradio", "exactness": "matplotlib"}


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """A copy of the benchmarks beside the tests and the documentation: what they store replaces no record."""
    folder = tmp_path_factory.mktemp("copied")
    for name in ("benchmarks", "docs", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", SHORTER)
def test_benchmark_runs(command, copied):
    name = Path(shlex.split(command)[1]).stem
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    if command in RECORDED and not (ROOT / "benchmarks" / "results" / RECORDED[command]).is_file():
        pytest.skip(f"would take long: {RECORDED[command]} is not stored")
    words = [sys.executable, *shlex.split(f"{command} {SHORTER[command]}")[1:]]
    environment = {**os.environ, "PYTHONPATH": str(Path(snips.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=copied, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert any(character.isdigit() for character in done.stdout)
