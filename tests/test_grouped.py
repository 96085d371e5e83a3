"""Options in groups: Typer sees each of them, the command takes the dataclass."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from snips.cli.grouped import grouped


@dataclass(frozen=True)
class Colour:
    """Two options, of which one has a name of its own."""

    hue: Annotated[str, typer.Option("--hue", "-u", help="The name of the colour.")] = "red"
    is_dark: Annotated[bool, typer.Option(help="Less light.")] = False

    def named(self) -> str:
        return f"dark {self.hue}" if self.is_dark else self.hue


@dataclass(frozen=True, kw_only=True)
class Paint(Colour):
    """All of Colour, with another default, and an option that has none."""

    litres: Annotated[float, typer.Option(min=0, help="How much.")]
    hue: Annotated[str, typer.Option("--hue", "-u", help="What to mix.")] = "white"


@dataclass(frozen=True)
class Wall:
    """Its options share no name with those of Colour."""

    sizes: Annotated[list[int] | None, typer.Option("--size", help="In metres; repeatable.")] = None
    folder: Annotated[Path, typer.Option("--out", help="Where it stands.")] = Path("house")


def app_of(command) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(grouped(command))
    return app


def typed(command, *arguments: str):
    return CliRunner().invoke(app_of(command), list(arguments), env={"COLUMNS": "200", "TERM": "dumb"})


def taken(command, *arguments: str):
    """What the command returns."""
    return CliRunner().invoke(app_of(command), list(arguments), standalone_mode=False).return_value


def paint(ctx: typer.Context, name: str, colour: Colour, wall: Wall, coats: int = 2):
    """Paint a wall."""
    return ctx.info_name, name, colour, wall, coats


def order(paint: Paint, *, urgent: Annotated[bool, typer.Option("--urgent")] = False, wall: Wall):
    return paint, urgent, wall


def parameters(command) -> dict[str, list[str]]:
    return {parameter.name: parameter.opts for parameter in typer.main.get_command(app_of(command)).params}


def test_every_option_of_a_group_appears_in_its_place():
    assert parameters(paint) == {
        "name": ["name"],
        "hue": ["--hue", "-u"],
        "is_dark": ["--is-dark"],
        "sizes": ["--size"],
        "folder": ["--out"],
        "coats": ["--coats"],
    }
    assert list(parameters(order)) == ["hue", "is_dark", "litres", "urgent", "sizes", "folder"]


def test_the_help_is_that_of_the_command_and_of_the_options():
    told = typed(paint, "--help").output
    for text in ("Paint a wall.", "The name of the colour.", "[default: red]", "Less light.", "[default: house]"):
        assert text in told


def test_defaults_hold():
    assert taken(paint, "kitchen") == ("paint", "kitchen", Colour(), Wall(), 2)


def test_values_arrive():
    arguments = ("-u", "blue", "--is-dark", "--size", "3", "--size", "4", "--out", "hut", "--coats", "1")
    _, name, colour, wall, coats = taken(paint, "kitchen", *arguments)
    assert (name, coats) == ("kitchen", 1)
    assert colour == Colour("blue", True)
    assert colour.named() == "dark blue"
    assert wall == Wall([3, 4], Path("hut"))
    with pytest.raises(FrozenInstanceError):
        wall.sizes = [5]


def test_a_group_may_inherit_and_override_options():
    assert taken(order, "--litres", "2.5", "--urgent") == (Paint(hue="white", litres=2.5), True, Wall())
    told = typed(order, "--help").output
    assert "What to mix." in told
    assert "The name of the colour." not in told


@pytest.mark.parametrize(
    ("arguments", "named"), [([], "--litres"), (["--litres", "-1"], "--litres"), (["--blue"], "--blue")]
)
def test_typer_checks_the_options_of_a_group(arguments, named):
    result = typed(order, *arguments)
    assert result.exit_code == 2
    assert named in result.stderr


def test_a_command_can_be_called_from_python():
    """With the values that Typer would give, or with those that differ from the defaults."""
    assert grouped(order)(litres=1.0, folder=Path("hut")) == (Paint(litres=1.0), False, Wall(folder=Path("hut")))
    with pytest.raises(TypeError, match="length"):
        grouped(order)(litres=1.0, length=3)


def test_two_groups_with_the_same_option_are_refused():
    def command(first: Colour, second: Paint):
        pass

    with pytest.raises(ValueError, match="command takes --hue twice, in first and in second: rename or leave out"):
        grouped(command)


OutOption = Annotated[str, typer.Option("--out")]
ShortOption = Annotated[str, typer.Option("--user", "-u")]
SwitchOption = Annotated[bool, typer.Option("--lit/--is-dark")]


def test_an_option_beside_a_group_is_compared_as_well():
    """By what is typed, long or short, and by the name of the parameter."""

    def long(wall: Wall, output: OutOption = ""):
        pass

    def short(colour: Colour, user: ShortOption = ""):
        pass

    def switched(colour: Colour, lit: SwitchOption = False):
        pass

    def argument(folder: str, wall: Wall):
        pass

    for command, name in ((long, "--out"), (short, "-u"), (switched, "--is-dark"), (argument, "folder")):
        with pytest.raises(ValueError, match=f"{command.__name__} takes {name} twice"):
            grouped(command)


def test_an_argument_may_be_called_as_an_option_is_typed():
    def command(out: Annotated[str, typer.Argument()], wall: Wall):
        return out, wall.folder

    assert taken(command, "door", "--out", "hut") == ("door", Path("hut"))
