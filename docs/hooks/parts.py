"""The table of all parts of the package, for docs/architecture.md: their order is the one that a test enforces."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from snips.experiments.markdown import table

ROOT = Path(__file__).parents[2]
SOURCE, ORDER = ROOT / "src" / "snips", ROOT / "tests" / "test_architecture.py"
MARK = "<!-- the table of parts -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the table where a page asks for it."""
    return markdown.replace(MARK, parts_table()) if MARK in markdown else markdown


def parts_table() -> str:
    return table(
        ["layer", "part", "what it is"],
        [row for number, layer in enumerate(layers(), 1) for row in rows(number, layer)],
    )


def layers() -> list[set[str]]:
    """LAYERS of the test, lowest first."""
    assigned = [node for node in ast.parse(ORDER.read_text(encoding="utf-8")).body if isinstance(node, ast.Assign)]
    return next(ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "LAYERS")


def rows(number: int, layer: set[str]) -> list[list[str]]:
    return [[str(number), f"`{part}`", summary(part)] for part in sorted(layer)]


def summary(part: str) -> str:
    """The first line of the docstring of a module or package."""
    places = (SOURCE / f"{part}.py", SOURCE / part / "__init__.py", SOURCE / "integrations" / f"{part}.py")
    text = ast.get_docstring(ast.parse(next(file for file in places if file.is_file()).read_text(encoding="utf-8")))
    assert text, f"{part} says what it is"
    return text.splitlines()[0].replace("|", "\\|")
