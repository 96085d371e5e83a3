"""Serving the page: on this machine alone unless told otherwise, and without a word to any other."""

from __future__ import annotations

import ipaddress
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from snips.web.examples import EXAMPLES, FIRST_EXAMPLE, write_examples
from snips.web.jobs import Jobs
from snips.web.limits import Limits
from snips.web.visitors import Visitors

if TYPE_CHECKING:
    from snips.web.page import Page

FONT, FONT_MONO = ["system-ui", "sans-serif"], ["ui-monospace", "monospace"]  # the system's: nothing to fetch
LOCALHOST, PORT = "127.0.0.1", 7860
# Gradio reads these when it is imported, or when a page is made.
QUIET = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1"}


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server that is bound to `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def serving(limits: Limits, host: str = LOCALHOST, port: int = PORT, browser: bool = False) -> Iterator[str]:
    """The page's address, while the block runs; afterwards all jobs are stopped and all files of visitors gone."""
    with tempfile.TemporaryDirectory(prefix="snips-web-", ignore_cleanup_errors=True) as folder:
        served, examples = Path(folder, "served"), Path(folder, "examples")
        served.mkdir()
        os.environ.update(QUIET, GRADIO_TEMP_DIR=str(served))  # what is in it is served as it is, and nothing else
        from snips.web.page import Page  # imports Gradio, which takes seconds

        write_examples(examples)
        jobs = Jobs(limits.jobs, limits.waiting)
        page = Page(limits, jobs, Visitors(served, examples / EXAMPLES[FIRST_EXAMPLE].file), examples)
        try:
            yield launch(page, limits, host, port, browser)
        finally:
            jobs.close()
            page.blocks.close(verbose=False)


def launch(page: Page, limits: Limits, host: str, port: int, browser: bool) -> str:
    """Everything of Gradio that talks to others, offers more than the page, or keeps a history, is off."""
    from gradio.themes import Default

    page.blocks.queue(api_open=False, max_size=100)
    try:
        _, address, _ = page.blocks.launch(
            server_name=host,
            server_port=port,
            inbrowser=browser,
            prevent_thread_lock=True,
            quiet=True,
            share=False,
            max_file_size=limits.upload_bytes,
            enable_monitoring=False,
            run_history=False,
            footer_links=[],
            ssr_mode=False,
            mcp_server=False,
            pwa=False,
            state_session_capacity=1000,
            theme=Default(primary_hue="teal", neutral_hue="slate", font=FONT, font_mono=FONT_MONO),
            css_paths=Path(__file__).with_name("style.css"),
        )
    except OSError as error:
        raise ValueError(
            f"port {port} of {host} cannot be used (does another program listen there?): choose another with --port"
        ) from error
    return address


def serve(limits: Limits, host: str, port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Serve until interrupted."""
    with serving(limits, host, port, browser) as address:
        say(f"snips is at {address} (stop with Ctrl-C)")
        wait_for_interrupt()


def wait_for_interrupt() -> None:
    """Ctrl-C, or the signal that service managers send."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        stop.wait()
    except KeyboardInterrupt:
        return
