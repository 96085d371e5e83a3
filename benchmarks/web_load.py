"""Many visitors of the web page at once: does each get their own result, and does memory stay bounded?

    python benchmarks/web_load.py [--visitors 24] [--rounds 3] [--waiting 8]

Starts `snips web` on this machine and speaks to it as a browser does: each visitor keeps a page
open, uploads a picture of their own, has it restored with the Gaussian prior, and downloads the archive. Who is refused
because the queue is full tries again. The samples in the archive must be those of the same task here, bit for bit.
Exits with 1 where a result is lost or another's, where a folder of a visitor is left after all are gone, or where
memory grew by more than the limit after the first round.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import safetensors.torch
import torch

from measure import print_table, store
from snips.priors.choice import GAUSSIAN
from snips.web.layout import SIMULATE
from snips.web.limits import Limits
from snips.web.task import Task, build_problem, run
from web_pages import Server, photo

PROBLEM, SIGMA, SAMPLES, CALLS = "sr2", 0.1, 2, 20
LIMIT_MIB = 64.0  # of growth between the first round and the last
PATIENCE = 600.0  # seconds
FULL = "try again later"


@dataclass
class Tally:
    """What happened to the visitors of a round."""

    own: int = 0
    wrong: int = 0
    lost: int = 0
    refused: int = 0  # and then tried again


class Visitor:
    """One open page."""

    def __init__(self, server: Server, functions: dict[str, int], number: int, folder: Path) -> None:
        self.client = httpx.Client(base_url=server.address + "gradio_api/", timeout=PATIENCE)
        self.functions, self.session, self.number = functions, uuid.uuid4().hex, number
        self.picture = photo(folder / f"{self.session}.png", seed=number)

    @contextmanager
    def page(self) -> Iterator[None]:
        """Open as long as the connection that a browser keeps; the server deletes a visitor's files when it ends."""
        with self.client, self.client.stream("GET", f"heartbeat/{self.session}"):
            yield

    def call(self, name: str, data: list[Any]) -> list[Any]:
        """What a handler of the page returns at its end."""
        body = {"data": data, "fn_index": self.functions[name], "session_hash": self.session}
        self.client.post("queue/join", json=body).raise_for_status()
        with self.client.stream("GET", "queue/data", params={"session_hash": self.session}) as events:
            for line in events.iter_lines():
                event = json.loads(line.removeprefix("data:")) if line else {}
                if event.get("msg") == "process_completed":
                    if not event["success"]:
                        raise RuntimeError(f"{name}: {event['output']}")
                    return event["output"]["data"]
        raise RuntimeError("the page said nothing more")

    def restore(self, tally: Tally, lock: threading.Lock) -> None:
        with self.page():
            files = {"files": (self.picture.name, self.picture.read_bytes())}
            (path,) = self.client.post("upload", files=files).json()
            self.call("on_upload", [{"path": path, "meta": {"_type": "gradio.FileData"}}])
            while True:
                numbers = [SIGMA, False, SAMPLES, CALLS, GAUSSIAN, self.number]
                said = self.call("on_restore", [SIMULATE, PROBLEM, PROBLEM, *numbers])
                if FULL not in json.dumps(said):
                    break
                with lock:
                    tally.refused += 1
                time.sleep(0.5)
            archive = self.client.get(said[3]["value"]["url"]).content
        own = self.is_own(archive)
        with lock:
            tally.own, tally.wrong = tally.own + own, tally.wrong + (not own)

    def is_own(self, archive: bytes) -> bool:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            (name,) = (name for name in files.namelist() if name.endswith("samples.safetensors"))
            found = safetensors.torch.load(files.read(name))["samples"]
        task = Task(self.picture, True, PROBLEM, SIGMA, SAMPLES, CALLS, GAUSSIAN, self.number)
        return torch.equal(found, run(task, build_problem(task, Limits()), lambda progress: None).samples)


def one_round(server: Server, functions: dict[str, int], visitors: int, first: int, folder: Path) -> Tally:
    tally, lock = Tally(), threading.Lock()
    everybody = [Visitor(server, functions, first + number, folder) for number in range(visitors)]
    with ThreadPoolExecutor(visitors) as pool:
        ends = [pool.submit(visitor.restore, tally, lock) for visitor in everybody]
    for end in ends:
        if error := end.exception():
            print(f"lost: {error!r}")
            tally.lost += 1
    return tally


def memory_mib(server: Server, name: str) -> float:
    with open(f"/proc/{server.process.pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def folders_left(server: Server, seconds: float = 60) -> int:
    """Visitors' folders that are still there when all pages have been closed for a while."""
    end = time.monotonic() + seconds
    while server.visitor_folders() and time.monotonic() < end:
        time.sleep(0.5)
    return len(server.visitor_folders())


def measure(visitors: int, rounds: int, waiting: int, folder: Path) -> dict[str, Any]:
    (folder / "server").mkdir()
    server, tallies, memory = Server(folder / "server", "--waiting", str(waiting)), [], []
    try:
        config = httpx.get(server.address + "config").json()
        functions = {entry["api_name"]: entry["id"] for entry in config["dependencies"]}
        started = time.monotonic()
        for number in range(rounds):
            tallies.append(one_round(server, functions, visitors, number * visitors, folder))
            memory.append(memory_mib(server, "VmRSS"))
        seconds, left = time.monotonic() - started, folders_left(server)
        peak = memory_mib(server, "VmHWM")
    finally:
        code = server.stop()
    total = {name: sum(getattr(tally, name) for tally in tallies) for name in vars(Tally())}
    settings = {
        "visitors_at_once": visitors,
        "rounds": rounds,
        "waiting": waiting,
        "seconds": seconds,
        "exit_code": code,
    }
    return {**settings, **total, "folders_left": left, "memory_mib": memory, "peak_mib": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--waiting", type=int, default=Limits().waiting, help="places in the queue")
    args = parser.parse_args()
    torch.set_num_threads(1)  # as the server has: threads decide about rounding
    with tempfile.TemporaryDirectory() as folder:
        results = measure(args.visitors, args.rounds, args.waiting, Path(folder))
    growth = results["memory_mib"][-1] - results["memory_mib"][0]
    print_table("web page", ["", ""], [[name, value] for name, value in results.items()])
    store("web_load", results)
    if results["own"] != args.visitors * args.rounds or results["folders_left"] or growth > LIMIT_MIB:
        raise SystemExit(f"results are lost or wrong, folders are left, or memory grew by {growth:.1f} MiB")


if __name__ == "__main__":
    main()
