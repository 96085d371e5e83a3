"""The documentation's own tools: formulas become MathML, nothing comes from elsewhere, tables match stored values."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from scripts import load_script
from snips import load_prior
from snips.priors.digest import weights_digest
from snips.problems import PROBLEMS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def mathml():
    pytest.importorskip("latex2mathml")
    return load_script(DOCS / "hooks" / "mathml.py")


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
    assert len(load_script(DOCS / "hooks" / "nothing_external.py").external_references(tmp_path)) >= 1


def test_links_and_local_files_are_allowed(tmp_path):
    pytest.importorskip("mkdocs")
    text = '<a href="https://arxiv.org/abs/2105.14951">paper</a><img src="images/x.png"><link href="x.css">'
    (tmp_path / "a.html").write_text(text)
    assert load_script(DOCS / "hooks" / "nothing_external.py").external_references(tmp_path) == []


@pytest.mark.parametrize("name", ["../outside.png", "absent.html", "/absent.css"])
def test_a_file_that_the_site_lacks_is_found(name, tmp_path):
    pytest.importorskip("mkdocs")
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "outside.png").touch()
    (site / "a.html").write_text(f'<img src="{name}"><a href="a.html#part">b</a><a href="https://arxiv.org">c</a>')
    assert load_script(DOCS / "hooks" / "nothing_missing.py").missing_files(site) == [f"a.html: {name}"]


@pytest.fixture
def source_lines():
    pytest.importorskip("mkdocs")
    return load_script(DOCS / "hooks" / "source_lines.py")


def test_every_named_line_of_code_exists(source_lines):
    links = [found for page in DOCS.rglob("*.md") for found in source_lines.LINK.finditer(page.read_text())]
    assert len(links) > 10
    for found in links:
        assert source_lines.line_number(found["file"], found["part"]) > 0


@pytest.mark.parametrize(
    ("file", "part"),
    [("samplers/conditional.py", "no such code"), ("samplers/conditional.py", "self"), ("absent.py", "x")],
    ids=["gone", "ambiguous", "no file"],
)
def test_a_line_of_code_that_is_gone_stops_the_build(source_lines, file, part):
    with pytest.raises(source_lines.PluginError, match=f"names `{part}` in src/snips/{file}, where it stands on"):
        source_lines.line_number(f"src/snips/{file}", part)


def test_every_formula_of_the_method_names_its_code():
    """Between each formula that is set apart and the next one stands a line of code."""
    pieces = (DOCS / "method.md").read_text().split("$$")
    assert len(pieces) > 10
    assert [piece for piece in pieces[2::2] if "Code: [`" not in piece] == []


@pytest.fixture
def measurements():
    pytest.importorskip("mkdocs")
    return load_script(DOCS / "hooks" / "measurements.py")


def test_figures_on_a_page_are_the_stored_ones(measurements):
    tables = load_script(DOCS / "figures" / "tables.py")
    for name, titles in tables.PAGES.items():
        chosen = [each for each in measurements.MEASUREMENTS if each.title in titles]
        assert len(chosen) == len(titles)
        text = "\n".join(measurements.section(each) for each in chosen)
        rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
        assert len(rows) > 4
        page = (DOCS / name).read_text(encoding="utf-8")
        assert [row for row in rows if row not in page] == [], "python docs/figures/tables.py puts them there"


def test_the_sweep_of_other_samplers_is_made_from_stored_rows():
    """Means over the five problems in the order of their trials, the best of a method in bold, in the page's table."""
    stored, tables = (load_script(DOCS / folder) for folder in ("hooks/peers_tables.py", "figures/tables.py"))
    tried = {("DDRM", ""): 4.0, ("DPS", ""): 8.0, ("DPS", 10.0): 2.0}
    rows = [
        {"kind": "sweep", "method": m, "setting": {"weight": w} if w else {}, "nfe": nfe, "problem": p, "ratio": r + i}
        for nfe, more in ((25, 6), (50, 0), (100, -1))
        for (m, w), r in {kind: ratio + more * (kind == ("DPS", 10.0)) for kind, ratio in tried.items()}.items()
        for i, p in enumerate(stored.FIVE)
    ]
    made = stored.peers_tables({"results": rows})
    lines = [
        "| DDRM | default | **6.00** | **6.00** | **6.00** |",
        "| DPS | default | **10.00** | 10.00 | 10.00 |",
        "| DPS | weight=10.0 | **10.00** | **4.00** | **3.00** |",
    ]
    assert [line for line in made.splitlines() if line.startswith("| D")] == lines
    page = tables.with_tables((DOCS / "peers.md").read_text(encoding="utf-8"), made)
    found = [line for line in page.splitlines() if line.startswith("| D") and line.count("|") == 6]
    assert found == lines


def test_tables_find_their_places_by_their_heads():
    tables = load_script(DOCS / "figures" / "tables.py")
    page = "one\n\n| a |\n|---|\n| 1 |\n\ntwo\n\n| a |\n|---|\n| 2 |\n\n| b |\n|---|\n| 3 |\n"
    measured = "| a |\n|---|\n| 4 |\n\n| a |\n|---|\n| 5 |\n| 6 |\n"
    expected = page.replace("| 1 |", "| 4 |").replace("| 2 |", "| 5 |\n| 6 |")
    assert tables.with_tables(page, measured) == expected


def test_the_architecture_names_every_part():
    parts = load_script(DOCS / "hooks" / "parts.py")
    listed = parts.on_page_markdown((DOCS / "architecture.md").read_text())
    assert parts.MARK not in listed
    below_snips = {file.parent.name for file in parts.SOURCE.glob("*/__init__.py")}
    below_snips |= {file.stem for file in parts.SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert [part for part in sorted(below_snips) if f"| `{part}` | " not in listed] == []
    assert listed.index("| `operators` |") < listed.index("| `samplers` |") < listed.index("| `cli` |")


def test_what_was_not_measured_is_said(measurements, tmp_path):
    absent = dataclasses.replace(measurements.MEASUREMENTS[0], file=tmp_path / "absent.json")
    assert measurements.page([absent]).endswith("Not run yet: `python benchmarks/exactness.py`.\n")


def test_every_stored_result_has_its_place(measurements):
    beside = {"exactness_langevin"}  # rows of the first section
    stored = {
        file.stem for folder in ("BENCHMARKS", "EXPERIMENTS") for file in getattr(measurements, folder).glob("*.json")
    }
    assert stored - {each.file.stem for each in measurements.MEASUREMENTS} == beside


def test_every_public_module_and_command_has_a_page():
    pytest.importorskip("mkdocs")
    reference = load_script(DOCS / "hooks" / "reference.py")
    parts = reference.public_parts()
    assert {"operators", "priors", "samplers", "problems", "restoration", "metrics"} <= set(parts)
    assert "snips.samplers.conditional" in parts["samplers"]
    assert not {"cli", "web"} & set(parts)
    page = reference.commands_page()
    assert "## snips restore" in page
    assert "`--problem`, `-p`" in page
    assert "## snips doctor" in page
    assert "| `--seed` | `0` |" in page


def test_the_table_of_problems_is_what_was_measured():
    pytest.importorskip("matplotlib")
    problems = load_script(DOCS / "figures" / "problems.py")
    stored = json.loads((DOCS / "figures" / "problems.json").read_text())
    assert set(stored["results"]) == set(problems.CASES)
    assert {name for name, _, _ in problems.CASES.values()} == set(PROBLEMS)
    assert (DOCS / "figures" / "problems_table.md").read_text() == problems.table(stored["results"])
    assert all((DOCS / "images" / "problems" / f"{name}.webp").is_file() for name in problems.CASES)


def test_pictures_are_of_the_weights_that_are_bundled():
    """After new weights the figures must be drawn again: `make figures`."""
    records = {file.name: json.loads(file.read_text()) for file in (DOCS / "figures").glob("*.json")}
    used = {name: record["weights"] for name, record in records.items() if "weights" in record}
    assert set(used) == {"demo.json", "problems.json"}
    for name, weights in used.items():
        assert weights == {prior: weights_digest(load_prior(prior)) for prior in weights}, name
