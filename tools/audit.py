"""What can be said of the dependencies: against advisories where a source can be reached, and from what is installed.

    python tools/audit.py        (or `make audit`)

`pip-audit` is used where it is on the PATH and reaches its source. Everything else needs no network: are all names
pinned to one version, is that version installed, does every installed file have the hash that its wheel recorded, was
anything installed from a folder or a repository, and under which licences. Writes tools/audit.json; exits with 1 where
something is wrong. docs/reliability.md says what this cannot tell.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
CONSTRAINTS, RECORD = ROOT / "constraints.txt", ROOT / "tools" / "audit.json"
OWN, TOOLS = "snips", {"pip", "setuptools", "wheel"}  # of the environment itself
ADVISORY_SECONDS = 300


def constraints() -> dict[str, Requirement]:
    """By name, those that hold for this Python."""
    lines = (line.split("#")[0].strip() for line in CONSTRAINTS.read_text().splitlines())
    every = [Requirement(line) for line in lines if line]
    return {canonicalize_name(one.name): one for one in every if one.marker is None or one.marker.evaluate()}


def is_pinned(requirement: Requirement) -> bool:
    pins = list(requirement.specifier)
    return len(pins) == 1 and pins[0].operator == "==" and "*" not in pins[0].version


def is_of_version(found: Distribution, requirement: Requirement) -> bool:
    """Without the local part of a version: 2.13.0+cpu is a build of 2.13.0."""
    return requirement.specifier.contains(Version(found.version).public, prereleases=True)


def dependencies(found: Distribution) -> set[str]:
    """Names that a distribution needs here, without its extras."""
    every = [Requirement(line) for line in found.requires or []]
    return {canonicalize_name(one.name) for one in every if one.marker is None or one.marker.evaluate({"extra": ""})}


def licence(found: Distribution) -> str:
    """As the distribution states it: an expression, a first line, a classifier, or nothing."""
    stated, text = found.metadata.get("License-Expression"), (found.metadata.get("License") or "").strip()
    classifiers = found.metadata.get_all("Classifier") or []
    classified = [entry.split(" :: ")[-1] for entry in classifiers if entry.startswith("License")]
    return stated or ", ".join(classified) or text.partition("\n")[0][:60] or "not stated"


def origin(found: Distribution) -> str | None:
    """Where it comes from, if that is no wheel of a package index."""
    if (direct := found.read_text("direct_url.json")) is not None:
        return json.loads(direct)["url"]
    return None if found.read_text("WHEEL") is not None else "no wheel"


def altered(found: Distribution) -> list[str]:
    """Files that are missing or have another hash than the wheel's RECORD; compiled ones have none."""
    wrong = []
    for file in found.files or []:
        if file.hash is None:
            continue
        path = Path(str(file.locate()))
        digest = hashlib.new(file.hash.mode, path.read_bytes()).digest() if path.is_file() else b""
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
            wrong.append(str(file))
    return wrong


def advisories() -> dict[str, object]:
    """What pip-audit says of the constraints; or why it says nothing."""
    program = shutil.which("pip-audit")
    if program is None:
        return {"asked": False, "reason": "pip-audit is not on the PATH"}
    command = [program, "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip", "--format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ADVISORY_SECONDS, check=False)
        listed = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return {"asked": False, "reason": f"no answer within {ADVISORY_SECONDS} seconds"}
    except (ValueError, KeyError):
        return {"asked": False, "reason": "pip-audit failed: no source of advisories can be reached"}
    return told(listed)


def told(listed: list[dict[str, Any]]) -> dict[str, object]:
    """pip-audit calls it a success, too, where its source knew none of the names: what was skipped is not clean."""
    skipped = sorted(entry["name"] for entry in listed if "skip_reason" in entry)
    if len(skipped) == len(listed):
        return {"asked": False, "reason": f"the source of pip-audit answered for none of {len(listed)} dependencies"}
    vulnerable = {entry["name"]: [one["id"] for one in entry["vulns"]] for entry in listed if entry.get("vulns")}
    return {"asked": True, "checked": len(listed) - len(skipped), "skipped": skipped, "vulnerable": vulnerable}


def audit() -> dict[str, Any]:
    pins = constraints()
    installed = {canonicalize_name(found.metadata["Name"]): found for found in distributions()}
    used = {name: found for name, found in sorted(installed.items()) if name in pins}
    others = installed.keys() - pins.keys() - TOOLS - {OWN}
    needed = {name for known in (*used, OWN) if known in installed for name in dependencies(installed[known])}
    versions = {name: found.version for name, found in used.items() if not is_of_version(found, pins[name])}
    return {
        "python": sys.version.split()[0],
        "constraints": len(pins),
        "installed": len(used),
        "unpinned": sorted(name for name, pin in pins.items() if not is_pinned(pin)),
        "of_other_versions": versions,
        "needed_but_not_in_constraints": sorted(others & needed),
        "installed_beside_them": sorted(others - needed),
        "not_from_wheels": {name: place for name, found in used.items() if (place := origin(found))},
        "altered_files": {name: files for name, found in used.items() if (files := altered(found))},
        "not_installed": sorted(pins.keys() - used.keys()),
        "advisories": advisories(),
        "licences": {name: licence(found) for name, found in used.items()},
    }


WRONG = ("unpinned", "of_other_versions", "needed_but_not_in_constraints", "not_from_wheels", "altered_files")


def main() -> None:
    found = audit()
    RECORD.write_text(json.dumps({"command": "python tools/audit.py", "results": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    wrong = [name for name in WRONG if found[name]]
    wrong += ["advisories"] if found["advisories"].get("vulnerable") else []
    if wrong:
        raise SystemExit(f"look at: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
