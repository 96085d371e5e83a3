"""`snips doctor`, `snips --version` and the Tab key, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import snips
from snips.cli import app, doctor
from snips.priors import registry
from snips.priors.unet import UNet, UNetConfig, save_unet


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


def report(*arguments) -> dict:
    return json.loads(run("doctor", "--json", *arguments).stdout)


def by_name(findings: list[dict]) -> dict[str, dict]:
    return {finding["name"]: finding for finding in findings}


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """An installation with one small bundled prior."""
    monkeypatch.setattr(registry, "WEIGHTS", tmp_path)
    save_unet(UNet(UNetConfig(widths=(8, 8), encoder=(1, 1), decoder=(1, 1))), tmp_path / "faces.safetensors")
    return tmp_path


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.strip() == snips.__version__


def test_the_shell_completes_commands():
    """What a shell asks after `snips --install-completion` when Tab is pressed."""
    asked = {"_SNIPS_COMPLETE": "complete_bash", "COMP_WORDS": "snips res", "COMP_CWORD": "1"}
    program = "from snips.cli import app; app(prog_name='snips')"
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True)
    assert done.stdout.split() == ["restore"]


def test_a_healthy_installation(weights):
    result = run("doctor")
    assert result.exit_code == 0, result.output
    assert "All that is needed is here." in result.stdout
    assert torch.__version__ in result.stdout
    found = report()
    assert found["healthy"]
    assert found["environment"]["snips"] == snips.__version__
    assert found["environment"]["devices"].startswith("cpu")
    assert by_name(found["needed"])["prior faces"]["state"] == "loads"
    assert by_name(found["needed"])["torch"]["state"] == torch.__version__


def test_missing_weights_are_a_fault(weights):
    (weights / "faces.safetensors").unlink()
    result = run("doctor")
    assert result.exit_code == 1
    assert "install snips again" in result.stdout


def test_damaged_weights_are_a_fault(weights):
    (weights / "faces.safetensors").write_bytes(b"not safetensors")
    result = run("doctor", "--json")
    assert result.exit_code == 1
    finding = by_name(json.loads(result.stdout)["needed"])["prior faces"]
    assert not finding["ok"]
    assert "not a readable safetensors file" in finding["state"]


def without(monkeypatch, *absent: str) -> None:
    """An environment that lacks some packages."""
    known = doctor.version

    def version(package: str) -> str:
        if package in absent:
            raise PackageNotFoundError(package)
        return known(package)

    monkeypatch.setattr(doctor, "version", version)


def test_a_missing_optional_part_is_named_with_its_remedy(weights, monkeypatch):
    without(monkeypatch, "gradio")
    result = run("doctor")
    assert result.exit_code == 0, result.output
    assert "gradio is missing: pip install '.[web]' in the folder of the sources" in result.stdout.splitlines()


def test_a_missing_dependency_is_a_fault(weights, monkeypatch):
    without(monkeypatch, "rich")
    found = json.loads(run("doctor", "--json").stdout)
    assert not found["healthy"]
    assert [finding["name"] for finding in found["needed"] if not finding["ok"]] == ["rich"]


@pytest.fixture
def project() -> dict:
    """What pyproject.toml says of the package; Python can read it from 3.11 on."""
    tomllib = pytest.importorskip("tomllib")
    return tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def test_every_dependency_is_looked_for(project):
    assert set(doctor.REQUIRED) == {entry.split(">")[0] for entry in project["dependencies"]}


def test_every_extra_is_offered(project):
    advice = " ".join(part.advice for part in doctor.OPTIONAL)
    extras = set(project["optional-dependencies"]) - {"dev", "docs"}
    assert {extra for extra in extras if f"'.[{extra}]'" not in advice} == set()
