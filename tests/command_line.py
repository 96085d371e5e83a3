"""The command line as tests use it."""

from __future__ import annotations

from typer.testing import CliRunner

from snips.cli import app


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(result) -> str:
    """Exit code 2 and exactly one line that explains why."""
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.output
    return lines[0]
