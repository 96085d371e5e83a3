"""Every command and every block of Python in the README and the documentation runs as it is written there.

The quick tests limit the calls of the denoiser and leave out what is LONG; the slow ones run every page as it is.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from documented import LONG, NOT_RUN, PAGES, ROOT, Step, fill_folder, inline_commands, steps
from snips import restoration
from snips.cli import app

MOST_CALLS = 5
WITH_STEPS = [page for page in PAGES if page.is_file() and steps(page.read_text(encoding="utf-8"))]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    fill_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_page(page: Path, long_ones: bool) -> None:
    """Run everything on a page in one folder and one Python."""
    names: dict[str, Any] = {"__name__": "documented"}
    for step in steps(page.read_text(encoding="utf-8")):
        if step.reason_not_to_run is None and (long_ones or not step.is_long):
            RUN[step.language](step, names)


def run_python(step: Step, names: dict[str, Any]) -> None:
    exec(compile(step.text, "documented", "exec"), names)


def run_command(step: Step, names: dict[str, Any]) -> None:
    words = shlex.split(step.text, comments=True)
    if words[:2] == ["python", "-c"]:
        exec(words[2], {})
        return
    assert words[0] == "snips", f"nothing here can run `{step.text}`: teach it, or name it in NOT_RUN"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{step.text}\n{result.output}"


RUN: dict[str, Callable[[Step, dict[str, Any]], None]] = {"python": run_python, "sh": run_command}


@pytest.mark.parametrize("page", WITH_STEPS, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs_with_few_calls(page, folder, monkeypatch):
    fast = restoration.SAMPLERS["fast"]

    @functools.wraps(fast)
    def limited(*given: Any, nfe: int = 100, **options: Any) -> Any:
        return fast(*given, nfe=min(nfe, MOST_CALLS), **options)

    monkeypatch.setitem(restoration.SAMPLERS, "fast", limited)
    run_page(page, long_ones=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_STEPS, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs_as_written(page, folder):
    run_page(page, long_ones=True)


def options_of(words: list[str]) -> set[str]:
    """What a command takes: those of our own from the application, those of a script from its text."""
    if words[0] == "snips":
        group: Any = typer.main.get_command(app)
        command = group.commands.get(words[1]) if not words[1].startswith("-") else group
        assert command is not None, f"there is no command `{' '.join(words[:2])}`"
        return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | HELP
    script = ROOT / words[1]
    assert script.is_file(), f"there is no script {words[1]}"
    imported = [script.parent / f"{name}.py" for name in re.findall(r"^from (\w+) import", script.read_text(), re.M)]
    texts = (file.read_text() for file in (script, *imported) if file.is_file())
    return {option for text in texts for option in re.findall(r"""["'](--[\w-]+)["']""", text)}


HELP = {"--help", "--version", "--install-completion"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_a_text_exist_and_have_these_options(page):
    for words in inline_commands(page.read_text(encoding="utf-8")):
        words = [word for word in words if "=" not in word]
        given = {word.split("=")[0] for word in words[1:] if word.startswith("-") and len(word) > 1}
        if len(words) > 1:
            assert given <= options_of(words), " ".join(words)


def test_a_command_within_a_text_that_does_not_exist_is_noticed():
    assert inline_commands("as `snips restor x.png` and `snips restore --colour` do") == [
        ["snips", "restor", "x.png"],
        ["snips", "restore", "--colour"],
    ]
    with pytest.raises(AssertionError, match="no command `snips restor`"):
        options_of(["snips", "restor"])
    assert "--colour" not in options_of(["snips", "restore"])
    with pytest.raises(AssertionError, match="no script"):
        options_of(["python", "benchmarks/absent.py"])


def test_every_reason_not_to_run_is_used():
    texts = [step.text for page in WITH_STEPS for step in steps(page.read_text(encoding="utf-8"))]
    unused = {start for start in (*NOT_RUN, *LONG) if not any(text.startswith(start) for text in texts)}
    assert unused == set()


def test_steps_are_found_in_order():
    page = "```sh\nsnips a  # first\n\n# nothing\nsnips b \\\n  --c\n```\n```python\nprint(1)\n```\n```toml\nx\n```\n"
    found = steps(page)
    assert [step.language for step in found] == ["sh", "sh", "python"]
    assert [shlex.split(step.text, comments=True) for step in found[:2]] == [["snips", "a"], ["snips", "b", "--c"]]


def test_a_command_that_fails_is_noticed(folder):
    page = folder / "page.md"
    page.write_text("```sh\nsnips restore absent.png\n```\n")
    with pytest.raises(AssertionError, match="absent.png"):
        run_page(page, long_ones=False)
    page.write_text("```sh\nrm -rf something\n```\n")
    with pytest.raises(AssertionError, match="nothing here can run"):
        run_page(page, long_ones=False)
