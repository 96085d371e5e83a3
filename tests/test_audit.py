"""The audit of dependencies: what is wrong is seen, and what was not checked is not called clean."""

from __future__ import annotations

import base64
import hashlib
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from scripts import ROOT, load_script

audit = load_script(ROOT / "tools" / "audit.py")


@pytest.fixture
def installed(tmp_path) -> Distribution:
    """A distribution of one module, as pip leaves it."""
    (tmp_path / "thing.py").write_text("value = 1\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"value = 1\n").digest()).rstrip(b"=").decode()
    info = tmp_path / "thing-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: thing\nVersion: 1.2+cpu\nLicense-Expression: MIT\n"
        'Requires-Dist: Other_One>=1\nRequires-Dist: extra; extra == "more"\n'
    )
    (info / "WHEEL").write_text("Wheel-Version: 1.0\n")
    (info / "RECORD").write_text(f"thing.py,sha256={digest},10\nthing.pyc,,\nthing-1.2.dist-info/RECORD,,\n")
    return Distribution.at(info)


def test_an_installed_wheel_is_as_it_was(installed):
    assert audit.altered(installed) == []
    assert audit.origin(installed) is None
    assert audit.licence(installed) == "MIT"
    assert audit.dependencies(installed) == {"other-one"}


@pytest.mark.parametrize("change", [lambda file: file.write_text("value = 2\n"), Path.unlink])
def test_altered_and_missing_files_are_seen(change, installed, tmp_path):
    change(tmp_path / "thing.py")
    assert audit.altered(installed) == ["thing.py"]


def test_what_is_no_wheel_is_seen(installed, tmp_path):
    (tmp_path / "thing-1.2.dist-info" / "WHEEL").unlink()
    assert audit.origin(installed) == "no wheel"
    (tmp_path / "thing-1.2.dist-info" / "direct_url.json").write_text('{"url": "file:///somewhere"}')
    assert audit.origin(installed) == "file:///somewhere"


@pytest.mark.parametrize(
    ("line", "pinned", "fits"),
    [("thing==1.2", True, True), ("thing==1.3", True, False), ("thing>=1", False, True), ("thing==1.*", False, True)],
)
def test_pins(line, pinned, fits, installed):
    assert audit.is_pinned(Requirement(line)) == pinned
    assert audit.is_of_version(installed, Requirement(line)) == fits


def test_what_was_skipped_is_not_called_clean():
    skipped, clean = {"name": "a", "skip_reason": "unknown"}, {"name": "b", "vulns": []}
    bad = {"name": "c", "vulns": [{"id": "X-1"}]}
    assert audit.told([skipped, skipped])["asked"] is False
    assert audit.told([skipped, clean, bad]) == {
        "asked": True,
        "checked": 2,
        "skipped": ["a"],
        "vulnerable": {"c": ["X-1"]},
    }


def test_our_own_constraints_are_pins():
    assert all(audit.is_pinned(requirement) for requirement in audit.constraints().values())
