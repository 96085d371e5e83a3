"""How malformed files end: read, refused with one line, or crashed.

    python benchmarks/malformed.py [--loaded 1000] [--restored 200]

Of each kind of file that photos may come in, a valid one is damaged in as many ways as wanted: bytes changed, the end
cut off, or nothing left but random bytes. Each goes through the loader, and the first of them through the whole of
`snips restore`. A file that is read must give finite pixels, a refusal must be one line. Exits with 1 if any crashed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from typer.testing import CliRunner

from measure import print_table, store
from photo_files import KINDS, SUFFIXES, encoded, mutations
from snips.cli import app
from snips.photos.photo import load_photo

READ, REFUSED, CRASHED = "read", "refused", "crashed"
NOISE_EVERY = 10  # files: one that is random bytes altogether
RESTORE = ("-s", "0.1", "-k", "1", "--nfe", "4", "--prior", "gaussian", "--force", "--json")


def malformed(kind: str, count: int) -> Iterator[bytes]:
    """The mutations of the tests, and among them some that keep nothing of the format but its name and its length."""
    random, length = np.random.default_rng(2), len(encoded(kind))
    for number, mutated in enumerate(mutations(kind, count)):
        yield mutated if (number + 1) % NOISE_EVERY else random.bytes(int(random.integers(0, length)))


def loaded(path: Path) -> str:
    try:
        photo = load_photo(path)
    except ValueError as error:
        return CRASHED if "\n" in str(error) else REFUSED
    except Exception as error:
        print(f"{path.name}: {error!r}")
        return CRASHED
    return READ if torch.isfinite(photo.pixels).all() else CRASHED


def restored(path: Path) -> str:
    result = CliRunner().invoke(app, ["restore", str(path), "--out", str(path.parent / "out"), *RESTORE])
    if result.exit_code == 0:
        return READ
    said = [line for line in result.stderr.strip().splitlines() if not line.startswith("snips: warning")]
    if result.exit_code == 2 and len(said) == 1:
        return REFUSED
    print(f"{path.name}: exit code {result.exit_code}, {result.exception!r}")
    return CRASHED


def outcomes(kind: str, count: int, try_file: Callable[[Path], str], folder: Path) -> dict[str, int]:
    path, found = folder / f"malformed{SUFFIXES.get(kind, '.bin')}", Counter()
    for content in malformed(kind, count):
        path.write_bytes(content)
        found[try_file(path)] += 1
    return {name: found[name] for name in (READ, REFUSED, CRASHED)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loaded", type=int, default=1000)
    parser.add_argument("--restored", type=int, default=200)
    args = parser.parse_args()
    ways = {"loader": (loaded, args.loaded), "restore": (restored, args.restored)}
    with tempfile.TemporaryDirectory() as folder:
        results = {
            way: {kind: outcomes(kind, count, try_file, Path(folder)) for kind in KINDS}
            for way, (try_file, count) in ways.items()
        }
    rows = [[way, kind, *counts.values()] for way, kinds in results.items() for kind, counts in kinds.items()]
    print_table("malformed files", ["through", "kind", READ, REFUSED, CRASHED], rows)
    every = [counts for kinds in results.values() for counts in kinds.values()]
    total = {name: sum(counts[name] for counts in every) for name in (READ, REFUSED, CRASHED)}
    store("malformed", {"total": total, **results})
    if total[CRASHED]:
        raise SystemExit(f"{total[CRASHED]} files crashed it")


if __name__ == "__main__":
    main()
