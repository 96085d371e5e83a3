"""How time and memory grow with the image: the `natural` prior alone, and with the fast sampler around it.

    python benchmarks/scaling.py [--parts memory time] [--sides 64 128 256 512 1024] [--problems sr4 ...] [--again]

Each row is a process of its own and is stored at once; the same command again measures only rows that are missing.

memory  The peak of the process beyond the imports, weights included: one bare call of the denoiser, against a whole
        `restore` of two samples, one chain at a time, that is also saved with its pictures. Other work on the machine
        does not change it.
time    Seconds of the processor with one thread: a step of the sampler against a bare call, and the set-up that comes
        once. For a machine that does nothing else: others would share its caches.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

from measure import RESULTS, command, in_fresh_process, print_table, store

PROBLEMS = ("sr4", "deblur_uniform", "inpaint", "cs4")
SIDES = (64, 128, 256, 512, 1024)
LARGEST_RATIO = 6.0  # of the run's memory over the bare call's, at the largest side
CALLS = {"memory": 4, "time": 8}  # of the denoiser in each chain

COMMON = """
import tempfile, time
from pathlib import Path
from snips.allocator import keep_freed_memory
torch.set_num_threads(1)
keep_freed_memory()  # as the command line does
prior, side = snips.load_prior("natural"), {side}
x = torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(0))
def timed(function):
    started = time.process_time()
    result = function()
    return time.process_time() - started, result
def posed():
    return snips.InverseProblem.simulate(snips.make_operator("{problem}", (3, side, side)), x, 0.1, seed=0)
def bare():
    with torch.no_grad():
        prior.denoise(x, 1.0)
"""

CODE = {
    ("memory", "bare"): """
bare()
measured = {{}}
""",
    ("memory", "run"): """
with tempfile.TemporaryDirectory() as folder:
    snips.restore(posed(), prior, samples=2, chunk=1, nfe={calls}).save(Path(folder) / "result")
measured = {{}}
""",
    ("time", "bare"): """
measured = {{"call": min(timed(bare)[0] for _ in range(3))}}
""",
    ("time", "run"): """
from snips.samplers import fast_steps
from snips.streams import Chain
def begin():
    steps = fast_steps(posed(), prior, [Chain(0, 0)], nfe={calls})
    return steps, next(steps)
first, (steps, _) = timed(begin)
times = []
while True:
    seconds, info = timed(lambda: next(steps, None))
    if info is None:
        break
    times.append(seconds)
step = sum(times) / len(times)
measured = {{"set_up": first - step, "step": step}}
""",
}
COLUMNS = {
    "memory": ("problem", "side", "bare_mib", "run_mib", "memory_ratio"),
    "time": ("problem", "side", "bare_call", "step", "time_ratio", "set_up"),
}
GROWING = {"memory": "run_mib", "time": "step"}  # what is compared between sides

Rows = list[dict[str, Any]]


def measure(part: str, kind: str, side: int, problem: str = "") -> dict[str, Any]:
    return in_fresh_process((COMMON + CODE[part, kind]).format(side=side, problem=problem, calls=CALLS[part]))


def row_of(part: str, problem: str, side: int, bare: dict[str, Any]) -> dict[str, Any]:
    run, row = measure(part, "run", side, problem), {"problem": problem, "side": side}
    if part == "memory":
        ratio = run["peak_mib"] / bare["peak_mib"]
        return row | {"bare_mib": bare["peak_mib"], "run_mib": run["peak_mib"], "memory_ratio": ratio}
    return row | {
        "bare_call": bare["call"],
        "step": run["step"],
        "set_up": run["set_up"],
        "time_ratio": run["step"] / bare["call"],
    }


def growth(rows: Rows, name: str) -> dict[str, dict[str, float]]:
    """The exponent p of quantity ~ pixels^p; 1 is linear. Over all sides of a problem, and over its two largest."""
    found = {}
    for problem in dict.fromkeys(row["problem"] for row in rows):
        own = sorted((row for row in rows if row["problem"] == problem), key=lambda row: row["side"])
        if len(own) > 1:
            found[problem] = {
                "all": exponent(own[0], own[-1], name),
                "largest_two": exponent(own[-2], own[-1], name),
            }
    return found


def exponent(small: dict[str, Any], large: dict[str, Any], name: str) -> float:
    return math.log(large[name] / small[name]) / math.log((large["side"] / small["side"]) ** 2)


def stored() -> dict[str, Any]:
    """What earlier runs measured."""
    file = RESULTS / "scaling.json"
    return json.loads(file.read_text())["results"] if file.is_file() else {}


def keep(part: str, rows: Rows) -> None:
    """Store the rows of one part; those of the other stay as they are."""
    ordered = sorted(rows, key=lambda row: (row["side"], PROBLEMS.index(row["problem"])))
    measured = {"command": command(), "rows": ordered, "calls": CALLS[part]}
    measured["growth_exponents"] = growth(ordered, GROWING[part])
    store("scaling", {**stored(), part: measured, "memory_limit": LARGEST_RATIO})


def run_part(part: str, sides: list[int], problems: list[str], again: bool) -> None:
    for side in sides:
        rows: Rows = stored().get(part, {}).get("rows", [])
        known = set() if again else {row["problem"] for row in rows if row["side"] == side}
        wanted = [problem for problem in problems if problem not in known]
        bare = measure(part, "bare", side) if wanted else {}
        for problem in wanted:
            row = row_of(part, problem, side, bare)
            print(row, flush=True)  # the largest take minutes
            rows = [old for old in rows if (old["problem"], old["side"]) != (problem, side)]
            rows.append(row)
            keep(part, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(COLUMNS), default=list(COLUMNS))
    parser.add_argument("--sides", type=int, nargs="+", default=list(SIDES))
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--again", action="store_true", help="measure also what is stored")
    args = parser.parse_args()
    for part in args.parts:
        run_part(part, args.sides, args.problems, args.again)
        rows = stored()[part]["rows"]
        print_table(f"{part}; seconds and MiB", list(COLUMNS[part]), [[row[c] for c in COLUMNS[part]] for row in rows])
        print(stored()[part]["growth_exponents"])
    beyond = [r for r in stored().get("memory", {}).get("rows", []) if r["memory_ratio"] >= LARGEST_RATIO]
    beyond = [row for row in beyond if row["side"] == max(SIDES)]
    if beyond:
        raise SystemExit(f"more than {LARGEST_RATIO} x the memory of a bare call: {beyond}")


if __name__ == "__main__":
    main()
