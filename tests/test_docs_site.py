"""The documentation's own tools: formulas become MathML, nothing comes from elsewhere, tables match stored values."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def load(path: Path):
    """A script outside the package, as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def mathml():
    pytest.importorskip("latex2mathml")
    return load(DOCS / "hooks" / "mathml.py")


def test_formulas_become_mathml(mathml):
    page = '<p>a <span class="arithmatex">\\(x &lt; y\\)</span></p><div class="arithmatex">\\[\\frac{a}{b}\\]</div>'
    made = mathml.on_page_content(page)
    assert "arithmatex" not in made
    assert made.count("<math") == 2
    assert 'display="inline"' in made
    assert "<mfrac>" in made
    assert "&lt;" in made or "&#x0003C;" in made


def test_other_text_is_left_alone(mathml):
    assert mathml.on_page_content("<code>\\(x\\)</code> costs $5") == "<code>\\(x\\)</code> costs $5"


def test_an_unknown_command_stops_the_build(mathml):
    with pytest.raises(ValueError, match="cannot show: .nosuchcommand"):
        mathml.on_page_content('<span class="arithmatex">\\(\\nosuchcommand\\)</span>')


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//fonts.example/css">'),
        ("a.html", "<img alt='x' src='http://images.example/x.png'>"),
        ("a.html", "<style>@import url(https://fonts.example/x.css)</style>"),
        ("a.css", "body { background: url('https://images.example/x.png') }"),
    ],
)
def test_what_comes_from_elsewhere_is_found(file, text, tmp_path):
    pytest.importorskip("mkdocs")
    (tmp_path / file).write_text(text)
    assert len(load(DOCS / "hooks" / "nothing_external.py").external_references(tmp_path)) >= 1


def test_links_and_local_files_are_allowed(tmp_path):
    pytest.importorskip("mkdocs")
    text = '<a href="https://arxiv.org/abs/2105.14951">paper</a><img src="images/x.png"><link href="x.css">'
    (tmp_path / "a.html").write_text(text)
    assert load(DOCS / "hooks" / "nothing_external.py").external_references(tmp_path) == []


def test_every_public_module_and_command_has_a_page():
    pytest.importorskip("mkdocs")
    reference = load(DOCS / "hooks" / "reference.py")
    parts = reference.public_parts()
    assert {"operators", "priors", "samplers", "problems", "restoration", "metrics"} <= set(parts)
    assert "snips.samplers.conditional" in parts["samplers"]
    assert not {"cli", "web"} & set(parts)
    page = reference.commands_page()
    assert "## snips restore" in page
    assert "`--problem`, `-p`" in page
    assert "## snips doctor" in page
    assert "| `--seed` | `0` |" in page


def test_the_table_of_problems_is_what_was_measured(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "path", [str(DOCS / "figures"), *sys.path])
    problems = load(DOCS / "figures" / "problems.py")
    stored = json.loads((DOCS / "figures" / "problems.json").read_text())
    assert set(stored["results"]) == set(problems.CASES)
    assert (DOCS / "figures" / "problems_table.md").read_text() == problems.table(stored["results"])
    assert all((DOCS / "images" / "problems" / f"{name}.webp").is_file() for name in problems.CASES)
