"""Names that people type: what to say when one is not known."""

from __future__ import annotations

import difflib


def unknown_name(kind: str, name: str, known: list[str]) -> str:
    """One line that lists the names and suggests the nearest."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown {kind} {name!r}{hint}; choose one of: {', '.join(known)}"
