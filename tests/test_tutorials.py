"""The tutorials run from top to bottom, and their pages show the scripts as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import load_script

DOCS = Path(__file__).parents[1] / "docs"
SCRIPTS = sorted((DOCS / "tutorials").glob("*.py"))
NUMBERS = re.compile(r"[+-]?\d[\d.,]*(?:e[+-]?\d+)?%?")


@pytest.fixture
def tutorials():
    pytest.importorskip("matplotlib")
    module = load_script(DOCS / "figures" / "tutorials.py")
    yield module
    module.plt.close("all")


def words(text: str) -> list[str]:
    """A printed text without its numbers, whose last digits differ between machines."""
    return NUMBERS.sub("#", text).split()


def test_there_are_four():
    assert len(SCRIPTS) == 4


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_tutorial_runs_and_its_page_is_up_to_date(script, tutorials, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tutorials, "PICTURES", tmp_path)
    fresh, stored = tutorials.render(script), script.with_suffix(".md").read_text(encoding="utf-8")
    assert words(fresh) == words(stored)
    shown = re.findall(r"\((\.\./images/[^)]+)\)", stored)
    assert len(shown) == len(list(tmp_path.glob("*.webp")))
    assert all((script.parent / picture).is_file() for picture in shown)


def test_cells_are_found(tutorials):
    script = '"""Title."""\n\n# %% [markdown]\n# # Head\n#\n# text\n\n# %%\nx = 1  # %%\n\n# %%\nprint(x)\n'
    found = tutorials.cells(script)
    assert [cell.is_code for cell in found] == [False, True, True]
    assert [cell.text for cell in found] == ["# Head\n\ntext", "x = 1  # %%", "print(x)"]


def test_a_cell_shows_what_it_printed_and_drew(tutorials):
    names = {}
    first = tutorials.run_cell("from PIL import Image\nprint(1)\nImage.new('L', (3, 2))", names)
    assert first.printed == "1\n"
    assert [picture.size for picture in first.pictures] == [(3, 2)]
    second = tutorials.run_cell("import matplotlib.pyplot as plt\nplt.figure(figsize=(1, 1))\n7", names)
    assert (second.printed, len(second.pictures)) == ("", 1)
    assert tutorials.open_figures() == []
