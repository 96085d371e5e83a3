"""Documented commands that do not end by themselves: started as they are written, and stopped once they work."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import snips
from documented import ENDLESS
from documented_files import fill_folder
from snips.training.checkpoint import read_checkpoint
from snips.web.server import LOCALHOST, PORT
from web_pages import heed_interrupts

PATIENCE = 600  # seconds, on a busy machine
WEB, TORCHRUN = ENDLESS
BROWSER = """#!/bin/sh
echo "$1" > opened
"""


@contextmanager
def started(command: str, folder: Path, **variables: str) -> Iterator[subprocess.Popen]:
    """The command in the folder, with the programs of this Python and this snips."""
    own = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(snips.__file__).parents[1]),
        "TMPDIR": str(folder),
        "OMP_NUM_THREADS": "1",
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            shlex.split(command), cwd=folder, env={**os.environ, **own, **variables},
            stdout=log, stderr=log, preexec_fn=heed_interrupts,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(works: Callable[[], bool], process: subprocess.Popen, folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not works():
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < end, f"after {PATIENCE} s: {(folder / 'log').read_text()}"
        time.sleep(0.1)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOCALHOST, port)) != 0


def test_the_web_page_opens_in_a_browser(tmp_path):
    pytest.importorskip("gradio", reason="the web page needs the extra `web`")
    if not is_free(PORT):
        pytest.skip(f"another program has port {PORT}")
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o755)
    with started(WEB, tmp_path, BROWSER=str(browser)) as server:
        wait_until((tmp_path / "opened").is_file, server, tmp_path)
        wait_until(lambda: "stop with Ctrl-C" in (tmp_path / "log").read_text(), server, tmp_path)
        address = (tmp_path / "opened").read_text().strip()
        assert address == f"http://{LOCALHOST}:{PORT}/"
        with urllib.request.urlopen(address, timeout=60) as page:
            assert "snips" in page.read().decode()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0, (tmp_path / "log").read_text()


@pytest.mark.slow
def test_torchrun_trains_until_it_is_stopped(tmp_path):
    fill_folder(tmp_path)
    log, checkpoint = tmp_path / "shared" / "log.jsonl", tmp_path / "shared" / "checkpoint.pt"
    with started(TORCHRUN, tmp_path) as run:
        wait_until(lambda: log.is_file() and log.read_text().endswith("\n"), run, tmp_path)
        time.sleep(1)
        run.terminate()
        run.wait(PATIENCE)
    assert read_checkpoint(checkpoint)["step"] > 0
