"""What people type, names and counts: what to say when it cannot be."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np


def unknown_name(kind: str, name: str, known: list[str]) -> str:
    """One line that lists the names and suggests the nearest."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown {kind} {name!r}{hint}; choose one of: {', '.join(known)}"


def is_whole(value: Any) -> bool:
    """A whole number; True and False are none, though Python counts with them."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_count(name: str, value: int) -> None:
    if not is_whole(value) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, but is {value!r}")


def check_switch(name: str, value: bool) -> None:
    """Without this, the text "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, but is {value!r}")


def printable(text: str) -> str:
    """The text with what is no Unicode, as parts of names of files may be, written out as escapes."""
    return text.encode(errors="backslashreplace").decode()
