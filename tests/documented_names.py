"""What a documented command names (commands, options, scripts, targets, extras), and whether that exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from torch.distributed.run import get_args_parser

from documented import ROOT
from snips.cli import app

HELP = {"--help", "--version", "--install-completion", "--show-completion"}


def unknown_names(words: list[str]) -> set[str]:
    """Of one command, or of several with && between."""
    if "&&" in words:
        at = words.index("&&")
        return unknown_names(words[:at]) | unknown_names(words[at + 1 :])
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    return KINDS[words[0]](words[1:]) if words and words[0] in KINDS else set(words[:1]) - UNCHECKED


def options(words: list[str]) -> set[str]:
    return {word.split("=")[0] for word in words if word.startswith("-") and len(word) > 1}


def unknown_to_snips(words: list[str]) -> set[str]:
    group: Any = typer.main.get_command(app)
    if not words or words[0].startswith("-"):
        return options(words) - HELP
    if words[0] not in group.commands:
        return {words[0]}
    taken = group.commands[words[0]].params
    return options(words) - {name for each in taken for name in (*each.opts, *each.secondary_opts)} - HELP


def unknown_to_python(words: list[str]) -> set[str]:
    if words[0] == "-c":
        return set()
    if words[:2] == ["-m", "pytest"]:
        return unknown_to_pytest(words[2:])
    script = ROOT / words[0]
    if not script.is_file():
        return {words[0]}
    return options(words) - options_in(script)


def options_in(script: Path) -> set[str]:
    """From its text, and that of the modules beside it that it imports."""
    imported = [script.parent / f"{name}.py" for name in re.findall(r"^from (\w+) import", script.read_text(), re.M)]
    texts = (file.read_text() for file in (script, *imported) if file.is_file())
    return {option for text in texts for option in re.findall(r"""["'](--[\w-]+)["']""", text)}


def unknown_to_pytest(words: list[str]) -> set[str]:
    """The files, and what is chosen from them by a part of its name."""
    files = [word for word in words if word.endswith(".py")]
    missing = {file for file in files if not (ROOT / file).is_file()}
    chosen = {words[i + 1] for i, word in enumerate(words) if word == "-k"}
    texts = [(ROOT / file).read_text() for file in files if file not in missing]
    return missing | {name for name in chosen if not any(name in text for text in texts)}


def unknown_to_torchrun(words: list[str]) -> set[str]:
    at = words.index("-m")
    return (options(words[:at]) - set(get_args_parser()._option_string_actions)) | unknown_names(words[at + 1 :])


def unknown_to_make(words: list[str]) -> set[str]:
    return set(words) - set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))


def unknown_to_pip(words: list[str]) -> set[str]:
    """The extras of ours, and the files of constraints."""
    listed = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = set(re.findall(r"^([\w-]+) = \[", listed, re.M))
    named = {extra for word in words if word.startswith(".[") for extra in word[2:-1].split(",")}
    files = {words[i + 1] for i, word in enumerate(words) if word == "--constraint"}
    return (named - extras) | {file for file in files if not (ROOT / file).is_file()}


KINDS: dict[str, Callable[[list[str]], set[str]]] = {
    "snips": unknown_to_snips,
    "python": unknown_to_python,
    "pytest": unknown_to_pytest,
    "torchrun": unknown_to_torchrun,
    "make": unknown_to_make,
    "pip": unknown_to_pip,
}
UNCHECKED = {"git", "cd", "pre-commit"}  # programs of others, with nothing of ours in what they are told
