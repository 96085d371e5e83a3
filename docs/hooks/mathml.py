"""Formulas as MathML, made while the site is built: readers need no script, and what fails stops the build."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves for formulas, in the line and set apart.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of each page."""
    content = DISPLAY.sub(lambda found: f'<div class="formula">{_mathml(found[1], "block")}</div>', content)
    return INLINE.sub(lambda found: _mathml(found[1], "inline"), content)


def _mathml(escaped: str, display: str) -> str:
    formula = html.unescape(escaped).strip()
    result = convert(formula, display=display)
    if "\\" in result:  # latex2mathml shows the name of a command that it does not know
        raise ValueError(f"a formula has a command that MathML cannot show: {formula}")
    return result
