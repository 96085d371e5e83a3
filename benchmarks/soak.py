"""Does memory stay flat? Restore one problem after the other, save, load and score it, for as long as wanted.

    python benchmarks/soak.py [--minutes 30] [--prior faces]

After each round over all problems the resident memory is noted. The first third of the rounds fills caches and is left
out; of the rest a line is fitted. Exits with 1 where memory grew by more than the limit, or where a result that was
read back from the disk differs.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from measure import print_table, store
from snips import InverseProblem, Restoration, make_operator, restore
from snips.allocator import keep_freed_memory
from snips.priors.choice import prior_for

PROBLEMS = ("denoise", "inpaint", "deblur_uniform", "deblur_motion", "sr4", "cs4", "colorize", "mri")
SHAPE = (3, 64, 64)
LIMIT_MIB = 32.0  # of growth, from the first third's end to the last round
FEWEST_ROUNDS = 6


def one_round(prior, number: int, folder: Path) -> int:
    """All problems once -> how many restorations came back from the disk as they went there."""
    good = 0
    for name in PROBLEMS:
        x = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(number))
        problem = InverseProblem.simulate(make_operator(name, SHAPE), x, 0.1, seed=number)
        saved = restore(problem, prior, nfe=8, samples=2, seed=number)
        saved.save(folder / "result", force=True)
        loaded = Restoration.load(folder / "result")
        good += torch.equal(loaded.samples, saved.samples)
    return good


def resident_mib() -> float:
    gc.collect()
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def growth_mib(memory: list[float]) -> float:
    """What a line through the last two thirds rises by, from its begin to its end."""
    steady = np.array(memory[len(memory) // 3 :])
    slope = np.polyfit(np.arange(len(steady)), steady, 1)[0]
    return float(slope * (len(steady) - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--prior", default="faces")
    args = parser.parse_args()
    keep_freed_memory()  # as the command line does
    prior, memory, good, started = prior_for(args.prior, SHAPE), [], 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - started < 60 * args.minutes or len(memory) < FEWEST_ROUNDS:
            good += one_round(prior, len(memory), Path(folder))
            memory.append(resident_mib())
    total, growth = len(memory) * len(PROBLEMS), growth_mib(memory)
    minutes = (time.monotonic() - started) / 60
    rows = [["minutes", minutes], ["restorations", total], ["read back unchanged", good]]
    rows += [["memory after the first round, MiB", memory[0]], ["at the end, MiB", memory[-1]], ["growth, MiB", growth]]
    print_table("soak", ["", ""], rows)
    results = {"minutes": minutes, "restorations": total, "unchanged": good, "growth_mib": growth, "memory_mib": memory}
    store("soak", results)
    if good != total or growth > LIMIT_MIB:
        raise SystemExit(f"{total - good} results differ, memory grew by {growth:.1f} MiB")


if __name__ == "__main__":
    main()
