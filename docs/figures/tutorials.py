"""The pages of docs/tutorials: each script there is run cell by cell, and written down with what it printed and drew.

    python docs/figures/tutorials.py [NAME ...]

A script is a notebook in plain text: `# %% [markdown]` begins a cell of prose, `# %%` one of code. Writes
docs/tutorials/NAME.md and docs/images/tutorials/NAME_*.webp.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drawing import DOCS, IMAGES, plt
from PIL import Image

TUTORIALS = DOCS / "tutorials"
MARK = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)
PICTURES = IMAGES / "tutorials"


@dataclass(frozen=True)
class Cell:
    """Prose as Markdown, or code."""

    is_code: bool
    text: str


@dataclass(frozen=True)
class Output:
    """What a cell printed, and the pictures it made."""

    printed: str
    pictures: list[Image.Image]


def scripts() -> list[Path]:
    return sorted(TUTORIALS.glob("*.py"))


def cells(script: str) -> list[Cell]:
    """The cells of a script; what stands before the first mark is left out."""
    _, *pieces = MARK.split(script)
    found = zip(pieces[::2], pieces[1::2], strict=True)
    return [Cell(mark is None, text.strip() if mark is None else prose(text)) for mark, text in found]


def prose(comments: str) -> str:
    return re.sub(r"^# ?", "", comments, flags=re.MULTILINE).strip()


def run(script: Path) -> Iterator[tuple[Cell, Output]]:
    """Run the cells one after the other, as a notebook does."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(script.read_text(encoding="utf-8")):
        yield cell, run_cell(cell.text, names) if cell.is_code else Output("", [])


def run_cell(code: str, names: dict[str, Any]) -> Output:
    """Run code; a last line that is a picture is shown, and so are all open figures."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "tutorial", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "tutorial", "eval"), names)
    pictures = [value] if isinstance(value, Image.Image) else []
    return Output(printed.getvalue(), [*pictures, *open_figures()])


def open_figures() -> list[Image.Image]:
    """matplotlib's figures, which are closed."""
    pictures = []
    for number in plt.get_fignums():
        stream = io.BytesIO()
        plt.figure(number).savefig(stream, format="png", dpi=110)
        pictures.append(Image.open(stream))
        plt.close(number)
    return pictures


def render(script: Path) -> str:
    """The page; its pictures are written beside those of the other pages."""
    name = script.name
    page, number = [f"<!-- made of {name} by python docs/figures/tutorials.py -->"], 0
    for cell, output in run(script):
        page.append(f"```python\n{cell.text}\n```" if cell.is_code else cell.text)
        if output.printed:
            page.append(f"```text\n{output.printed.rstrip()}\n```")
        for picture in output.pictures:
            number += 1
            page.append(f"![picture {number}](../images/tutorials/{keep(picture, f'{script.stem}_{number}')})")
    page.append(f"The script: [`docs/tutorials/{name}`]({name}).")
    return "\n\n".join(page) + "\n"


def keep(picture: Image.Image, name: str) -> str:
    PICTURES.mkdir(parents=True, exist_ok=True)
    picture.convert("RGB").save(PICTURES / f"{name}.webp", quality=85, method=6)
    return f"{name}.webp"


def main(names: list[str]) -> None:
    for script in scripts():
        if not names or script.stem in names:
            script.with_suffix(".md").write_text(render(script), encoding="utf-8")
            print(script.with_suffix(".md").relative_to(DOCS.parent), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
