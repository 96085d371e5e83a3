"""Commands that take their options in groups.

Typer reads the options of a command from the parameters of its function. A group is a frozen dataclass whose fields are
such parameters. A command takes it as one, several commands share it, and its methods read and check what was typed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, TypeVar, get_args, get_type_hints

from typer.models import OptionInfo

Result = TypeVar("Result")


def grouped(command: Callable[..., Result]) -> Callable[..., Result]:
    """The command as Typer shall see it: for each parameter that is a dataclass, the fields in its place."""
    signature = inspect.signature(command, eval_str=True)
    taken = signature.parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in taken if is_dataclass(each.annotation)}
    options = {each.name: list(_options(each)) for each in taken}
    _check_names(command.__name__, options)
    flat = [option for several in options.values() for option in several]

    @wraps(command)
    def ungrouped(**values: Any) -> Result:
        built = {name: _built(group, values) for name, group in groups.items()}
        return command(**values, **built)

    ungrouped.__signature__ = signature.replace(parameters=flat)  # pyright: ignore[reportAttributeAccessIssue]
    ungrouped.__annotations__ = {option.name: option.annotation for option in flat}
    return ungrouped


def _options(parameter: Parameter) -> Iterator[Parameter]:
    """The parameter itself, or a group's fields; by keyword, as Typer calls, so that required ones may stand last."""
    group = parameter.annotation
    if not is_dataclass(group):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    annotations = get_type_hints(group, include_extras=True)  # each read where its class stands, also inherited ones
    for field in fields(group):
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field), annotation=annotations[field.name])


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default


def _built(group: Any, values: dict[str, Any]) -> Any:
    """The group from its values, which are taken out."""
    return group(**{field.name: values.pop(field.name) for field in fields(group) if field.name in values})


def _check_names(command: str, options: dict[str, list[Parameter]]) -> None:
    """Typer would let one of two options with the same name hide the other without a word."""
    found: dict[str, str] = {}
    for place, option in ((place, option) for place, several in options.items() for option in several):
        names = _names(option)
        if twice := next((name for name in names if name in found), None):
            places = f"in {found[twice]} and in {place}"
            raise ValueError(f"{command} takes {twice} twice, {places}: rename or leave out one of them")
        found |= dict.fromkeys(names, place)


def _names(option: Parameter) -> list[str]:
    """What is typed, as declared or by Typer's rule, and what the function calls it."""
    infos = [info for info in get_args(option.annotation)[1:] if isinstance(info, OptionInfo)]
    if not infos:  # an argument, or the context: its name is not typed
        return [option.name]
    declared = [name for info in infos for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    typed = [part for name in declared for part in name.split("/")]  # --on/--off
    return [*(typed or ["--" + option.name.replace("_", "-")]), option.name]
