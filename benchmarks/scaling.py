"""How time and memory grow with the image: the `natural` prior alone, and with the fast sampler around it.

    python benchmarks/scaling.py [--sides 64 128 256 512 1024] [--calls 8] [--problems sr4 deblur_uniform inpaint cs4]

Each row is a process of its own. Time is that of the processor with one thread, so that other work on the machine does
not count: a step of the sampler against a bare call of the denoiser, and the set-up that comes once. Memory is the peak
of the process beyond the imports, weights included, for one bare call and for the whole run.
"""

from __future__ import annotations

import argparse
import math

from measure import in_fresh_process, print_table, store

PROBLEMS = ("sr4", "deblur_uniform", "inpaint", "cs4")
SIDES = (64, 128, 256, 512, 1024)
LARGEST_RATIO = 6.0  # of the run's memory over the bare call's

COMMON = """
import time
from snips.allocator import keep_freed_memory
torch.set_num_threads(1)
keep_freed_memory()  # as the command line does
prior, side = snips.load_prior("natural"), {side}
x = torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(0))
def timed(function):
    started = time.process_time()
    result = function()
    return time.process_time() - started, result
"""

BARE = """
def call():
    with torch.no_grad():
        prior.denoise(x, 1.0)
times = [timed(call)[0] for _ in range(3)]
measured = {{"call": min(times)}}
"""

SAMPLED = """
from snips.samplers import fast_steps
from snips.streams import Chain
def begin():
    problem = snips.InverseProblem.simulate(snips.make_operator("{problem}", (3, side, side)), x, 0.1, seed=0)
    steps = fast_steps(problem, prior, [Chain(0, 0)], nfe={calls})
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
"""


def measure(side: int, problems: list[str], calls: int) -> list[dict[str, object]]:
    """The bare call, and each problem beside it."""
    bare = in_fresh_process((COMMON + BARE).format(side=side))
    rows = []
    for problem in problems:
        run = in_fresh_process((COMMON + SAMPLED).format(side=side, problem=problem, calls=calls))
        row = {"problem": problem, "side": side, "bare_call": bare["call"], "bare_mib": bare["peak_mib"]}
        row |= {"step": run["step"], "set_up": run["set_up"], "run_mib": run["peak_mib"]}
        row |= {"time_ratio": run["step"] / bare["call"], "memory_ratio": run["peak_mib"] / bare["peak_mib"]}
        print(row, flush=True)  # the largest take minutes
        rows.append(row)
    return rows


def growth(rows: list[dict], problem: str, name: str) -> float | None:
    """The exponent p of time ~ pixels^p between the two largest sizes; 1 is linear."""
    own = sorted((row for row in rows if row["problem"] == problem), key=lambda row: row["side"])[-2:]
    if len(own) < 2:
        return None
    small, large = own
    return math.log(large[name] / small[name]) / math.log((large["side"] / small["side"]) ** 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=list(SIDES))
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--calls", type=int, default=8)
    args = parser.parse_args()
    rows = [row for side in args.sides for row in measure(side, args.problems, args.calls)]
    columns = ["problem", "side", "bare_call", "step", "time_ratio", "set_up", "bare_mib", "run_mib", "memory_ratio"]
    print_table("one chain, one thread; seconds and MiB", columns, [[row[name] for name in columns] for row in rows])
    exponents = {
        problem: {"step": growth(rows, problem, "step"), "memory": growth(rows, problem, "run_mib")}
        for problem in args.problems
    }
    print(exponents)
    store("scaling", {"rows": rows, "growth_exponents": exponents, "memory_limit": LARGEST_RATIO})
    beyond = [row for row in rows if row["memory_ratio"] >= LARGEST_RATIO]
    if beyond:
        raise SystemExit(f"more than {LARGEST_RATIO} x the memory of a bare call: {beyond}")


if __name__ == "__main__":
    main()
