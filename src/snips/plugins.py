"""Problems, priors and operators of other packages, found through their entry points.

A package names them in its pyproject.toml, for example

    [project.entry-points."snips.problems"]
    lensless = "my_package.snips_plugin:lensless"

Groups: `snips.problems` (a ProblemEntry, or build(image_shape, **options) -> LinearOperator), `snips.priors` (load() ->
Prior), `snips.operators` (convert(obj, image_shape) -> LinearOperator, or None where it does not know the object).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Container
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any


@dataclass(frozen=True)
class Plugin:
    """One thing that another package offers."""

    name: str
    value: Any
    origin: str  # the package and its version

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return (inspect.getdoc(self.value) or "").partition("\n")[0]


def plugins(group: str, taken: Container[str] = ()) -> dict[str, Plugin]:
    """What other packages offer in a group; a broken one, or a name that is taken, is left out with a warning."""
    found: dict[str, Plugin] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        origin = _origin(entry)
        try:
            value = entry.load()
            if not callable(value):
                raise TypeError(f"{entry.value} is a {type(value).__name__}, which cannot be called")
        except Exception as error:  # whatever is wrong with a stranger's package must not stop this one
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            warnings.warn(f"the plug-in {entry.name} of {origin} is left out ({reason})", PluginWarning, stacklevel=2)
            continue
        if entry.name in taken or entry.name in found:
            first = found[entry.name].origin if entry.name in found else "snips"
            warnings.warn(f"{origin} also offers {entry.name}; that of {first} is used", PluginWarning, stacklevel=2)
            continue
        found[entry.name] = Plugin(entry.name, value, origin)
    return found


class PluginWarning(UserWarning):
    """A plug-in that does not work."""


def converters() -> list[Callable[..., Any]]:
    """What `as_operator` asks before it looks at an object itself."""
    return [plugin.value for plugin in plugins("snips.operators").values()]


def _origin(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
