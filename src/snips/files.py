"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_file(path: Path):
    """A temporary file name with the same ending that becomes `path` when the block ends well."""
    work = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield work
        work.replace(path)
    finally:
        work.unlink(missing_ok=True)
