"""How to get an optional part; the package index knows another `snips`, so extras come from the sources."""

from __future__ import annotations


def installing(extra: str) -> str:
    return f"pip install '.[{extra}]' in the folder of the sources"
