"""Every command and every block of Python in the README and the documentation runs as it is written there.

The quick tests limit the calls of the denoiser, train narrow networks and leave out what is LONG; the slow ones run
every page as it is, but for the length of a training. tests/documented.py names the commands that run elsewhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from documented import PAGES, ROOT, Step, steps
from documented_files import fill_folder, is_missing, limit_calls, limit_training, small_batches, small_networks
from snips.cli import app

WITH_STEPS = [page for page in PAGES if page.is_file() and steps(page.read_text(encoding="utf-8"))]
OPTIONAL = ("deepinv", "diffusers")  # libraries that a block may import


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # `snips check-prior` adds the folder, and imports from it
    yield tmp_path
    sys.modules.pop("my_module", None)


def run_page(page: Path, folder: Path, long_ones: bool) -> None:
    """Run everything on a page in one folder and one Python."""
    text = page.read_text(encoding="utf-8")
    fill_folder(folder, text)
    names: dict[str, Any] = {"__name__": "documented"}
    missing: set[str] = set()
    for step in steps(text):
        needed = {library for library in libraries(step) if is_missing(library)}
        if step.runs_here(long_ones) and not needed:
            RUN[step.language](step, names)
        missing |= needed
    if missing:
        pytest.skip(f"all but the blocks that need {', '.join(sorted(missing))}, which is not installed")


def libraries(step: Step) -> list[str]:
    imported = re.findall(r"^(?:from|import) (\w+)", step.text, re.M)
    return [name for name in OPTIONAL if name in imported]


def run_python(step: Step, names: dict[str, Any]) -> None:
    exec(compile(step.text, "documented", "exec"), names)


def run_command(step: Step, names: dict[str, Any]) -> None:
    words = step.words
    if words[:2] == ["python", "-c"]:
        exec(words[2], {})
        return
    assert words[0] == "snips", f"nothing here can run `{step.text}`: teach it, or name it in tests/documented.py"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{step.text}\n{result.output}"


RUN: dict[str, Callable[[Step, dict[str, Any]], None]] = {"python": run_python, "sh": run_command}


@pytest.mark.parametrize("page", WITH_STEPS, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs_with_few_calls(page, folder, monkeypatch):
    limit_calls(monkeypatch)
    limit_training(monkeypatch, small_networks)
    run_page(page, folder, long_ones=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_STEPS, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs_as_written(page, folder, monkeypatch):
    limit_training(monkeypatch, small_batches)
    run_page(page, folder, long_ones=True)


def test_steps_are_found_in_order():
    page = "```sh\nsnips a  # first\n\n# nothing\nsnips b \\\n  --c\n```\n```python\nprint(1)\n```\n```toml\nx\n```\n"
    found = steps(page)
    assert [step.language for step in found] == ["sh", "sh", "python"]
    assert [step.words for step in found[:2]] == [["snips", "a"], ["snips", "b", "--c"]]


def test_a_command_that_fails_is_noticed(folder):
    page = folder / "page.md"
    page.write_text("```sh\nsnips restore absent.png\n```\n")
    with pytest.raises(AssertionError, match="absent.png"):
        run_page(page, folder / "first", long_ones=False)
    page.write_text("```sh\nrm -rf something\n```\n")
    with pytest.raises(AssertionError, match="nothing here can run"):
        run_page(page, folder / "second", long_ones=False)


def test_a_library_that_is_missing_is_told(folder, monkeypatch):
    page = folder / "page.md"
    page.write_text("```python\nimport absent_library\n```\n```sh\nsnips restore absent.png\n```\n")
    monkeypatch.setattr("test_documented.OPTIONAL", ("absent_library",))
    with pytest.raises(AssertionError, match="absent.png"):  # the rest of the page runs
        run_page(page, folder / "first", long_ones=False)
    page.write_text("```python\nimport absent_library\n```\n")
    with pytest.raises(pytest.skip.Exception, match="absent_library"):
        run_page(page, folder / "second", long_ones=False)
