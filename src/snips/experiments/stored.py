"""What experiments wrote earlier, read again: somebody may have changed it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from snips.files import read_json


@contextmanager
def stored_record(file: Path, name: str) -> Iterator[dict[str, Any]]:
    """The result.json of an experiment; what is missing in it, or is of another kind, ends the block with one line."""
    record = read_json(file)
    try:
        if record["experiment"] != name:
            raise KeyError(name)
        yield record
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is not what `snips experiment {name}` writes: remove it, and run that again"
        ) from error
