"""What the documented commands name exists, also where a command stands in a line of text and no test runs it."""

from __future__ import annotations

import pytest

from documented import ELSEWHERE, LONG, PAGES, ROOT, commands, indented_commands, inline_commands
from documented_names import unknown_names


def name_of(page) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_exist_and_have_these_options(page):
    text = page.read_text(encoding="utf-8")
    for words in (*inline_commands(text), *(step.words for step in commands(text))):
        assert unknown_names(words) == set(), " ".join(words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_lines_of_their_own_have_a_fence(page):
    assert indented_commands(page.read_text(encoding="utf-8")) == []


def test_commands_within_a_text_are_found():
    page = "as `snips restor x.png` and `torchrun\n-m snips train` do, unlike `make_operator`\n```sh\n`snips no`\n```\n"
    assert inline_commands(page) == [["snips", "restor", "x.png"], ["torchrun", "-m", "snips", "train"]]
    assert indented_commands("text\n\n    python a.py --b\n") == ["python a.py --b"]


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("snips restor x.png", "restor"),
        ("snips restore x.png --colour=2", "--colour"),
        ("snips --colour", "--colour"),
        ("python benchmarks/absent.py", "benchmarks/absent.py"),
        ("python benchmarks/peers.py --absent", "--absent"),
        ("A=1 python -m pytest tests/test_web.py -k absent_name", "absent_name"),
        ("pytest tests/absent.py -m slow", "tests/absent.py"),
        ("torchrun --absent 2 -m snips train", "--absent"),
        ("torchrun --nproc-per-node 2 -m snips train --absent", "--absent"),
        ("make demo absent", "absent"),
        ("pip install .[web,absent]", "absent"),
        ("pip install --constraint absent.txt build", "absent.txt"),
        ("git clone x && snips absent", "absent"),
        ("absent x", "absent"),
    ],
)
def test_what_does_not_exist_is_noticed(command, unknown):
    assert unknown_names(command.split()) == {unknown}


def test_every_exception_is_documented():
    written = {step.command for page in PAGES for step in commands(page.read_text(encoding="utf-8"))}
    assert {*ELSEWHERE, *LONG} - written == set()
