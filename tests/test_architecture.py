"""The shape of the source tree: imports go one way, files stay short."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from snips.version import __version__

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "snips"

# Lowest first: a module imports from its own layer's package or from layers before it.
LAYERS = [
    {"version", "names", "extras", "memory", "allocator", "buffers", "files", "streams", "solvers", "plugins"},
    {"photos", "operators", "schedules"},
    {"inverse_problem"},
    {"images", "priors", "problems"},
    {"samplers", "metrics", "integrations", "whitening"},
    {"conversion", "report", "training"},
    {"results"},
    {"posing"},
    {"restoration"},
    {"deepinv", "experiments", "running"},
    {"batch", "web"},
    {"cli"},
]
WHOLE = "snips"  # the package itself, which imports from every layer: no part may need it
HEIGHT = {name: height for height, layer in enumerate([*LAYERS, {WHOLE}]) for name in layer}
READ = ("src", "tests", "benchmarks", "experiments", "examples", "docs", "tools")
FILES = [f for f in sorted(SOURCE.rglob("*.py")) if f.parent != SOURCE or f.stem not in ("__init__", "__main__")]


def part_of(file: Path) -> str:
    """The module or package right below snips; of integrations, the model for deepinv stands on everything else."""
    if file == SOURCE / "integrations" / "deepinv.py":
        return "deepinv"
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def needed(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that runs when a module is imported: no functions, and nothing for type checkers alone.

    A function may import what is above it where that asks for an optional library.
    """
    yield node
    for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if not for_types and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for child in ast.iter_child_nodes(node):
            yield from needed(child)


def imported(file: Path) -> set[str]:
    """The parts of snips that a file needs when it is imported."""
    names = set()
    for node in needed(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
        else:
            continue
        names |= {part for name in whole if (part := part_named(name)) is not None}
    return names


def part_named(name: str) -> str | None:
    """Of `snips.priors.base` it is priors; `import snips` and `from snips import restore` need all of it."""
    first, part = (*name.split("."), WHOLE)[:2]
    if first != "snips":
        return None
    return part if part in HEIGHT else WHOLE


def test_every_part_has_its_layer():
    assert {part_of(file) for file in FILES} == set(HEIGHT) - {WHOLE}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_go_one_way(file):
    part = part_of(file)
    sideways = {other for other in imported(file) if other != part and HEIGHT[other] >= HEIGHT[part]}
    assert not sideways


def test_the_check_sees_imports(tmp_path):
    file = tmp_path / "x.py"
    file.write_text(
        "from snips import cli\nimport snips.priors.base\nfrom snips.samplers.base import run\nimport os\n"
        "if TYPE_CHECKING:\n    from snips import restoration\n"
        "def f():\n    from snips import web\n"
    )
    assert imported(file) == {"cli", "priors", "samplers"}


@pytest.mark.parametrize("line", ["import snips", "import snips as s", "from snips import __version__"])
def test_the_check_sees_the_whole_package(tmp_path, line):
    file = tmp_path / "x.py"
    file.write_text(line)
    assert imported(file) == {WHOLE}


def test_files_are_short():
    """Those of the package, and all others that people read."""
    files = [file for name in READ for file in (ROOT / name).rglob("*.py")]
    assert len(files) > 300
    assert [file.name for file in files if len(file.read_text(encoding="utf-8").splitlines()) > 250] == []


def test_the_source_archive_is_complete_in_itself():
    """The tests stay out: they run scripts, examples and pages of documentation that a source archive lacks."""
    build = pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    included = build["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (ROOT / name).exists()] == []
    assert "src" in included
    assert "tests" not in included
    assert f'__version__ = "{__version__}"' in (ROOT / build["version"]["path"]).read_text(encoding="utf-8")
