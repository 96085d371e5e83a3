"""What a new user types first: `make demo` in a clone, then what the documentation says to install or build there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from documented import IN_A_CLONE, PAGES, ROOT, commands

HIDDEN = ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")  # of the tests' own environment
PICTURES = (*(f"sample_{i:02}.png" for i in range(8)), "mean.png", "std_map.png", "samples.webp", "grid.png")
AS_WRITTEN = {step.command: step.text for page in PAGES for step in commands(page.read_text(encoding="utf-8"))}
DEMO = "make demo"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("clean clone")]


def run(command: str, folder: Path, **variables: str) -> str:
    """In a shell; what it prints, once it has succeeded."""
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN} | variables
    shell = ["bash", "-c", f"{command}\nexit $?"]
    done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    if not (ROOT / ".git").exists():
        pytest.skip("these sources are no repository")
    folder = tmp_path_factory.mktemp("clean")
    run(f"git clone --quiet '{ROOT}' snips", folder)
    return folder / "snips"


@pytest.fixture(scope="module")
def told(clone) -> str:
    """By the demo, which sets up the environment."""
    return run(AS_WRITTEN[DEMO], clone)


def test_the_demo_restores_the_picture(told, clone):
    assert "8 samples of 1 image 3x64x64" in told
    assert IN_A_CLONE[DEMO] in told  # where the results are
    assert (clone / IN_A_CLONE[DEMO]).stat().st_size > 100_000
    for name in PICTURES:
        with Image.open(clone / "demo" / name) as picture:
            picture.verify()


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("command", [command for command in IN_A_CLONE if command != DEMO])
def test_its_environment_takes_what_is_documented(command, clone):
    home = {"HOME": str(clone)} if command.startswith("snips") else {}  # where the shell's start file is
    run(f". .venv/bin/activate\n{AS_WRITTEN[command]}", clone, **home)
    assert list(clone.glob(IN_A_CLONE[command]))
    assert "All that is needed is here." in run(". .venv/bin/activate\nsnips doctor", clone)
