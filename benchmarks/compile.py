"""Does torch.compile pay? The `faces` prior on 8 images of 64 x 64, eager against compiled, with the time to compile.

    python benchmarks/compile.py [--repeat 10]

A default restoration draws 8 samples with 100 calls each, the work of 100 such calls. Compiling pays within one run if
no more calls than that make up for the time it takes. Time is that of the processor, the compiler's processes
included, with one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Callable
from statistics import median

import torch

from measure import print_table, store
from snips import Prior, load_prior

SHAPE = (3, 64, 64)
IMAGES, CALLS = 8, 100  # of a default run
TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds; the system counts the processor's time in these


def compiled(prior: Prior) -> Callable[[torch.Tensor, float], torch.Tensor]:
    """The network proper, where nearly all the time goes, as `snips train --compile` does it."""
    prior._body = torch.compile(prior._body)
    return prior.denoise


def once(function: Callable[..., torch.Tensor], x: torch.Tensor) -> float:
    started = processor_seconds()
    with torch.no_grad():
        function(x, 1.0)
    return processor_seconds() - started


def processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=10)
    args = parser.parse_args()
    x = torch.rand(IMAGES, *SHAPE, generator=torch.Generator().manual_seed(0))
    eager, fast = load_prior("faces").denoise, compiled(load_prior("faces"))
    once(eager, x)
    first = once(fast, x)
    pairs = [(once(eager, x), once(fast, x)) for _ in range(args.repeat)]  # in turns: a busy machine slows both
    before, after = (median(times) for times in zip(*pairs, strict=True))
    compiling, saved = first - after, before - after
    needed = math.ceil(compiling / saved) if saved > TICK / 2 else None
    with torch.no_grad():
        difference = float((eager(x, 1.0) - fast(x, 1.0)).abs().max())
    results = {"eager": before, "compiled": after, "compiling": compiling, "calls_to_break_even": needed}
    results |= {"calls_of_a_default_run": CALLS, "pays": needed is not None and needed <= CALLS}
    results |= {"largest_difference": difference}
    print_table("torch.compile, seconds", ["", ""], [[name, value] for name, value in results.items()])
    store("compile", results)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:  # compiled anew each time, as for a user's first run
        os.environ |= {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        torch.set_num_threads(1)
        main()
