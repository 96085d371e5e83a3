"""Build the wheel and the source archive twice, under different conditions, and keep them only where all bytes agree.

    pip install --constraint constraints.txt build
    python tools/release.py [--out dist]

What is committed is built, nothing else. The time of the commit stands for the time of the files (SOURCE_DATE_EPOCH),
the tools that build are those of constraints.txt, and folder, time zone, order of hashing and default permissions are
others for the second build. Writes the files and their hashes, SHA256SUMS, to the folder, and tools/release.json; exits
with 1 where the builds differ.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tools" / "release.json"


class Place(NamedTuple):
    """What differs between the builds and must not matter."""

    folder: str
    umask: int
    environment: dict[str, str]


PLACES = (
    Place("one", 0o022, {"TZ": "UTC", "PYTHONHASHSEED": "1"}),
    Place("another/place", 0o077, {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2"}),
)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def export(target: Path) -> None:
    """The committed files alone."""
    target.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(target)], input=packed, check=True)


def build(place: Place, work: Path, epoch: str) -> Path:
    """The folder with what was built; the build's own environment gets the pinned versions."""
    source, out = work / place.folder, work / f"built_{place.umask}"
    export(source)
    own = {"SOURCE_DATE_EPOCH": epoch, "PIP_CONSTRAINT": str(source / "constraints.txt"), **place.environment}
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(source)],
        env={**os.environ, **own}, capture_output=True, text=True, check=False, umask=place.umask,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the build failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return out


def hashes(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    args = parser.parse_args()
    if importlib.util.find_spec("build") is None:
        raise SystemExit("the package build is missing: pip install --constraint constraints.txt build")
    epoch, changed = git("log", "-1", "--format=%ct"), bool(git("status", "--porcelain", "--untracked-files=no"))
    if changed:
        print("note: there are changes that are not committed; they are not built")
    with tempfile.TemporaryDirectory() as work:
        built = [build(place, Path(work), epoch) for place in PLACES]
        found = hashes(built[0])
        if any(hashes(other) != found for other in built):
            raise SystemExit(f"the builds differ: {[hashes(folder) for folder in built]}")
        shutil.copytree(built[0], args.out, dirs_exist_ok=True)
    sums = "".join(f"{value}  {file}\n" for file, value in found.items())
    (args.out / "SHA256SUMS").write_text(sums)
    results = {"builds": len(PLACES), "equal": True, "sha256": found}
    RECORD.write_text(json.dumps({"command": "python tools/release.py", "results": results}, indent=1) + "\n")
    print(sums, end="")


if __name__ == "__main__":
    main()
