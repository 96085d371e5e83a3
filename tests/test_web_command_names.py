"""The command that the web page shows is read as it is meant, whatever the upload was called."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from snips.web.task import Task


@pytest.mark.parametrize(
    ("name", "typed"), [("-odd name.png", "./-odd name.png"), ("--force", "./--force"), ("a-b.png", "a-b.png")]
)
def test_a_name_is_not_read_as_options(name, typed):
    task = Task(Path("/uploads") / name, simulate=False, problem="denoise", sigma=0.1, samples=2, calls=10)
    assert shlex.split(task.command())[:3] == ["snips", "restore", typed]
