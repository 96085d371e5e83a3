"""Links to lines of code: [`a part of the line`](../src/snips/FILE.py) leads to that line in a copy of the file.

On other viewers of Markdown it is an ordinary link to the file. A part that stands on no line of the file, or on
several, stops the build: a formula cannot outlive its code.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[`(?P<part>[^`]+)`\]\((?:\.\./)+(?P<file>src/snips/[\w/]+\.py)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a copy of each file that a page leads to."""
    texts = [file.content_string for file in files.documentation_pages()]
    for name in sorted({found["file"] for text in texts for found in LINK.finditer(text)}):
        page = File.generated(config, copy_of(name), content=listing(name), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn the links of a page into links to lines."""

    def linked(found: re.Match[str]) -> str:
        number = line_number(found["file"], found["part"])
        target = posixpath.relpath(copy_of(found["file"]), posixpath.dirname(page.file.src_uri))
        return f'[`{found["part"]}`]({target}#L-{number} "{found["file"]}, line {number}")'

    return LINK.sub(linked, markdown)


def copy_of(name: str) -> str:
    return name.removesuffix(".py").replace("src/snips", "source") + ".md"


def line_number(name: str, part: str) -> int:
    """The line of a file that has the part; an error where it is not exactly one."""
    file = ROOT / name
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    numbers = [number for number, line in enumerate(lines, start=1) if part in line]
    if len(numbers) != 1:
        raise PluginError(f"the documentation names `{part}` in {name}, where it stands on {len(numbers)} lines")
    return numbers[0]


def listing(name: str) -> str:
    """The file with numbered lines."""
    style: HtmlFormatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, cssclass="highlight")
    code = (ROOT / name).read_text(encoding="utf-8")
    return f"---\nsearch:\n  exclude: true\n---\n\n# `{name}`\n\n{highlight(code, PythonLexer(), style)}\n"
