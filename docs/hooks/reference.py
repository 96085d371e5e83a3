"""Reference pages for every public module and every command, made while the site is built: none can be forgotten."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from snips.cli import app

SOURCE = Path(__file__).parents[2] / "src" / "snips"
HIDDEN = ("cli", "web")  # programs, not libraries: the commands have a page of their own
INSIDE = {  # may change between minor versions
    *("allocator", "buffers", "conversion", "extras", "files", "memory", "names", "photos", "posing"),
    *("report", "running", "solvers", "streams", "version"),
}
COMMANDS = "reference/commands.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Append the pages to the navigation."""
    assert config.nav is not None, "mkdocs.yml has a navigation"
    for_users, inside = (
        [{f"snips.{name}": _page(name)} for name in public_parts() if (name in INSIDE) is hidden]
        for hidden in (False, True)
    )
    first: list[Any] = [{"Commands": COMMANDS}, {"snips": "reference/snips.md"}]
    config.nav.append({"Reference": [*first, *for_users, {"Inside": inside}]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    files.append(File.generated(config, COMMANDS, content=commands_page()))
    files.append(File.generated(config, "reference/snips.md", content=public_names_page()))
    for name, modules in public_parts().items():
        files.append(File.generated(config, _page(name), content=_module_page(name, modules)))
    return files


def _page(part: str) -> str:
    return f"reference/{part}.md"


def public_parts() -> dict[str, list[str]]:
    """The modules and packages right below snips, each with the full names of the modules in it."""
    names = sorted(file.parent.name for file in SOURCE.glob("*/__init__.py"))
    names += sorted(file.stem for file in SOURCE.glob("*.py"))
    chosen = [name for name in names if not name.startswith("_") and name not in HIDDEN]
    return {name: _modules(SOURCE / name) if (SOURCE / name).is_dir() else [f"snips.{name}"] for name in chosen}


def _modules(package: Path) -> list[str]:
    files = sorted(file for file in package.glob("*.py") if not file.stem.startswith("_"))
    return [f"snips.{package.name}.{file.stem}" for file in files]


def _module_page(part: str, modules: list[str]) -> str:
    sections = "\n\n".join(f"::: {module}" for module in modules)
    return f"# snips.{part}\n\n{sections}\n"


def public_names_page() -> str:
    """`snips` itself: what each of its names is, and where it is defined."""
    import snips

    rows = [_public_name(name, getattr(snips, name)) for name in sorted(snips.__all__)]
    table = ["| name | what it is |", "|---|---|", *rows]
    text = (
        "What `import snips` offers. These names and the commands follow semantic versioning. Other modules are "
        "imported by name; those under *Inside* may change between minor versions."
    )
    return f"# snips\n\n{text}\n\n" + "\n".join(table) + "\n"


DESCRIBED = {  # values, which have no docstring of their own
    "PROBLEMS": ("snips.problems.PROBLEMS", "The problems that `make_operator` knows, by name."),
}


def _public_name(name: str, value: Any) -> str:
    """A row: the name, as a link where the reference has it, and the first sentence of its docstring."""
    if name in DESCRIBED:
        place, text = DESCRIBED[name]
    elif isinstance(value, ModuleType):
        place, text = None, f"A module: {(value.__doc__ or '').strip().splitlines()[0]}"
    else:
        place, text = f"{value.__module__}.{value.__name__}", (value.__doc__ or "").strip().splitlines()[0]
    shown = f"`snips.{name}`" if place is None else f"[`snips.{name}`][{place}]"
    return f"| {shown} | {text.replace('|', chr(92) + '|')} |"


def commands_page() -> str:
    """Every command with its arguments, from the command line's own help."""
    group: Any = typer.main.get_command(app)
    text = [
        "# Commands\n",
        "`snips COMMAND --help` says the same in a terminal. Bad input ends with one line and exit code 2.",
        "`snips --install-completion` teaches your shell to complete commands and options with the Tab key.\n",
    ]
    return "\n".join(text + [_command(name, group.commands[name]) for name in sorted(group.commands)])


def _command(name: str, command: Any) -> str:
    parameters = [parameter for parameter in command.params if parameter.name != "help"]
    rows = "\n".join(_parameter(parameter) for parameter in parameters)
    table = f"| | default | |\n|---|---|---|\n{rows}\n" if rows else ""
    return f"## snips {name}\n\n{command.help}\n\n{table}"


def _parameter(parameter: Any) -> str:
    option = parameter.param_type_name == "option"
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    shown = names if option else f"`{parameter.name.upper()}`"
    unset = parameter.default is None or parameter.default is False or callable(parameter.default)  # 0 is a default
    default = "" if unset else f"`{parameter.default}`"
    if not option or parameter.required:
        default = "required" if parameter.required else default
    return f"| {shown} | {default} | {(parameter.help or '').replace('|', chr(92) + '|')} |"
