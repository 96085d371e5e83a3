"""The blocks of code in the README and the documentation, and what it takes to run them as a reader would."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"  # run by tests/test_tutorials.py
GUIDES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent != TUTORIALS]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *GUIDES]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Commands and blocks that no test runs here, by how they begin, with the reason.
NOT_RUN = {
    "make": "sets up an environment; `make demo` and `make test` are themselves run for every change",
    "pip install": "changes the environment",
    "git": "needs the repository",
    "snips --install-completion": "changes the shell's start file; tests/test_doctor.py completes a command",
    "snips batch manifest.csv --engine ray": "needs a cluster; tests/test_batch_ray.py runs one",
    "snips web": "serves until it is stopped; tests/test_web_browser.py runs it",
    "snips train": "trains until it is stopped; tests/test_training.py runs it",
    "SNIPS_SCREENSHOTS=1 python -m pytest": "is a test itself",
    "python benchmarks/": "takes minutes",
    "from diffusers import": "needs a folder with a model",
    "from snips.integrations.deepinv import": "continues a program with deepinv; tests/test_deepinv_model.py runs it",
}

# Commands that only the slow tests run.
LONG = ("snips experiment",)


@dataclass(frozen=True)
class Step:
    """One command, or one block of Python."""

    language: str
    text: str

    @property
    def reason_not_to_run(self) -> str | None:
        return next((reason for start, reason in NOT_RUN.items() if self.text.startswith(start)), None)

    @property
    def is_long(self) -> bool:
        return self.text.startswith(LONG)


def steps(page: str) -> list[Step]:
    """What a reader of a page runs, in order; a line that ends with a backslash goes on."""
    found = []
    for language, text in BLOCK.findall(page):
        if language == "python":
            found.append(Step("python", text))
            continue
        lines = text.replace("\\\n", " ").splitlines()
        found += [Step("sh", line.strip()) for line in lines if shlex.split(line, comments=True)]
    return found


def inline_commands(page: str) -> list[list[str]]:
    """The words of commands that stand in a line of text, between backquotes."""
    without_blocks = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    found = re.findall(r"`(snips [^`]*|(?:\S+=\S+ )?python \S+\.py[^`]*)`", without_blocks)
    indented = re.findall(r"^    (python \S+\.py.*)$", without_blocks, re.MULTILINE)
    return [shlex.split(command.replace("\n", " ")) for command in (*found, *indented)]


def fill_folder(folder: Path) -> None:
    """The files that the commands name, small ones; and the bundled example where it lies in the repository."""
    example = ROOT / "src" / "snips" / "assets" / "example.png"
    copied = folder / example.relative_to(ROOT)
    copied.parent.mkdir(parents=True)
    shutil.copy(example, copied)
    with Image.open(example) as picture:
        small = picture.reduce(4)
        for name in ("small.png", "face.png", "photo.png", "scratched.png", "blurred.tif"):
            small.save(folder / name)
        (folder / "measurements").mkdir()
        for name in ("first.png", "second.png"):
            small.save(folder / "measurements" / name)
        (folder / "photos").mkdir()
        for name in ("clean.png", "photos/first.png", "photos/second.png"):
            picture.save(folder / name)
    mask = np.full((16, 16), 255, np.uint8)
    mask[4:8, 4:12] = 0
    Image.fromarray(mask).save(folder / "mask.png")
    Image.fromarray(np.full((3, 3), 28, np.uint8)).save(folder / "kernel.png")
