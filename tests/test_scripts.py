"""Every script that no command runs still starts: its imports are there."""

from __future__ import annotations

import pytest

from scripts import ROOT, load_script

SCRIPTS = [file for folder in ("benchmarks", "experiments", "tools") for file in sorted((ROOT / folder).glob("*.py"))]
OPTIONAL = {"gradio", "httpx", "matplotlib", "packaging", "ray"}  # in no environment but that of `make test`


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}")
def test_script_starts(script):
    try:
        load_script(script)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"needs {error.name}")
    except SystemExit as end:
        assert not end.code, "a script that is skipped has not failed"
        pytest.skip("it says what it needs")
