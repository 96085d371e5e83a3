"""A served page and a real browser for the tests of `snips web`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
START_SECONDS = 180  # importing torch and Gradio on a busy machine
PATIENCE = 60_000  # milliseconds for anything the page does
MAX_PIXELS, MAX_MB = 128 * 128, 1  # what the server of the tests takes
LONG = {"samples": 16, "calls": 200}  # with the network: minutes
SHORT = {"samples": 2, "calls": 10}


def heed_interrupts() -> None:
    """Where the tests run in the background SIGINT is ignored, and a child process would inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Server:
    """`snips web` as a user starts it, with a temporary folder of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.port = folder, free_port()
        self.address = f"http://127.0.0.1:{self.port}/"
        command = [sys.executable, "-m", "snips", "web", "--port", str(self.port), *options]
        environment = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
        self.log = folder.parent / f"{folder.name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, preexec_fn=heed_interrupts
            )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while self.address not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.2)

    def visitor_folders(self) -> list[Path]:
        return list(self.folder.glob("snips-web-*/served/visitor-*"))

    def stop(self) -> int:
        """Ctrl-C, as a user stops it."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()


class Visit:
    """One visitor: a browser context of their own, whose requests to other machines are blocked and remembered."""

    def __init__(self, browser, server: Server) -> None:
        self.outside: list[str] = []
        self.context = browser.new_context(viewport={"width": 1280, "height": 860}, accept_downloads=True)
        self.context.route(lambda url: not is_local(url), self._refuse)
        self.context.on("request", self._notice)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.on("websocket", lambda opened: self._remember(opened.url))
        self.page.goto(server.address)
        self.button("Restore").wait_for()

    def _refuse(self, route) -> None:
        route.abort()

    def _notice(self, request) -> None:
        self._remember(request.url)

    def _remember(self, url: str) -> None:
        if not is_local(url):
            self.outside.append(url)

    def button(self, name: str):
        return self.page.get_by_role("button", name=name, exact=True)

    def set(self, **numbers: float) -> None:
        labels = {"sigma": "Noise", "samples": "Samples", "calls": "Denoiser calls"}
        for name, value in numbers.items():
            field = self.page.get_by_label(f"number input for {labels[name]}")
            field.fill(str(value))
            field.press("Tab")

    def choose(self, label: str, option: str) -> None:
        self.page.get_by_label(label).click()
        self.page.get_by_role("option", name=option).click()

    def upload(self, path: Path) -> None:
        self.page.locator("#upload input[type=file]").set_input_files(path)

    def status(self, words: str, timeout: float = PATIENCE) -> str:
        """Wait until the status line holds these words, and return all of it."""
        line = self.page.locator("#status").get_by_text(words)
        line.wait_for(timeout=timeout)
        return line.inner_text()

    def caption(self, words: str) -> None:
        self.page.locator("#picture figcaption").get_by_text(words).wait_for()

    def captions(self) -> list[str]:
        """Of the results, once they are there."""
        self.page.locator("#gallery .gallery-item").first.wait_for()
        return self.page.locator("#gallery .caption-label").all_inner_texts()

    def download(self, target: Path) -> Path:
        with self.page.expect_download() as waiting:
            self.page.locator("#download").click()
        waiting.value.save_as(target)
        return target


def is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob", "about") or parts.hostname == "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def photo(path: Path, height: int = 32, width: int = 32, seed: int = 0) -> Path:
    """Smooth enough for the Gaussian prior: random colours, enlarged."""
    colours = np.random.default_rng(seed).integers(60, 200, (4, 4, 3), dtype=np.uint8)
    Image.fromarray(colours).resize((width, height), Image.Resampling.BICUBIC).save(path)
    return path


def bomb(path: Path, side: int = 30_000) -> Path:
    """A PNG of a few hundred bytes that says it has 900 million pixels."""

    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = part(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    data = part(b"IDAT", zlib.compress(bytes(1000)))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + data + part(b"IEND", b""))
    return path
