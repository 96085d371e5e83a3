"""Small tools shared by the benchmarks: repeated timing, peak memory in a fresh process, tables, stored results."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

import torch
from rich.console import Console
from rich.table import Table

from snips.priors import Prior
from snips.priors.digest import weights_digest

RESULTS = Path(__file__).parent / "results"
sys.path.append(str(Path(__file__).parents[1] / "tests"))  # whose files and servers some benchmarks use, too


def seconds(function: Callable[[], object], repeat: int = 5, warm_up: int = 1) -> float:
    """The median time of one call."""
    times = []
    for i in range(warm_up + repeat):
        started = time.perf_counter()
        function()
        if i >= warm_up:
            times.append(time.perf_counter() - started)
    return median(times)


def in_fresh_process(code: str) -> dict:
    """Run code that defines `measured`; returns it with `peak_mib`, the memory it needed beyond the imports."""
    script = f"""
import json, resource
import torch, scipy.linalg, snips
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{code}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({{**measured, "peak_mib": (peak - base) / 1024}}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def print_table(title: str, columns: list[str], rows: list[list[object]]) -> None:
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=120).print(table)


PLACES = ("--data", "--cache")  # options whose folders are this machine's own


def command() -> str:
    """The one that runs, with FOLDER for places on this machine."""
    words = pairwise(["", "python", *sys.argv])
    return " ".join("FOLDER" if before in PLACES else word for before, word in words)


def store(name: str, results: object, prior: Prior | None = None, steps: int | None = None) -> None:
    """Keep results as JSON with the command and the machine that made them, and the weights of a prior.

    `steps` is the version of the fast sampler's steps, STEPS_VERSION, where samples of it were measured.
    """
    RESULTS.mkdir(exist_ok=True)
    record = {
        "command": command(),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
        **({} if prior is None else {"weights": weights_digest(prior)}),
        **({} if steps is None else {"steps": steps}),
        "results": results,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
