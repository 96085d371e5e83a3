"""Set-up time, peak memory and transform time of every structured operator, beside a dense SVD.

python benchmarks/operators.py [--sizes 64 128 256 512 1024] [--dense 32 64]
"""

from __future__ import annotations

import argparse

from measure import in_fresh_process, print_table, store
from snips import PROBLEMS

OPTIONS = {"deblur_kernel": {"kernel": "torch.rand(15, 15)"}}

STRUCTURED = """
import time
started = time.perf_counter()
operator = snips.make_operator({name!r}, (3, {size}, {size}){options})
setup = time.perf_counter() - started
x = torch.rand(1, 3, {size}, {size})
def best(function, argument):
    times = []
    for _ in range(5):
        started = time.perf_counter()
        function(argument)
        times.append(time.perf_counter() - started)
    return min(times)
x_bar = operator.Vt(x)
measured = dict(setup=setup, Vt=best(operator.Vt, x), V=best(operator.V, x_bar))
"""

# One channel's H, N = size^2: the cheapest thing a dense method can do.
DENSE = """
import time
matrix = snips.make_operator({name!r}, (1, {size}, {size})).as_matrix()
started = time.perf_counter()
torch.linalg.svd(matrix)
measured = dict(setup=time.perf_counter() - started)
"""


def measure_structured(name: str, size: int) -> dict:
    options = "".join(f", {key}={value}" for key, value in OPTIONS.get(name, {}).items())
    return in_fresh_process(STRUCTURED.format(name=name, size=size, options=options))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 128, 256, 512, 1024])
    parser.add_argument("--dense", type=int, nargs="*", default=[32, 64], help="sizes for the dense SVD")
    args = parser.parse_args()
    results = []
    for name in [name for name in PROBLEMS if name != "matrix"]:  # measured below, as dense
        for size in args.sizes:
            results.append({"problem": name, "size": size, **measure_structured(name, size)})
    rows = [[r["problem"], r["size"], 1e3 * r["setup"], r["peak_mib"], 1e3 * r["Vt"], 1e3 * r["V"]] for r in results]
    print_table("3 channels", ["problem", "size", "set-up ms", "peak MiB", "Vt ms", "V ms"], rows)
    dense = []
    for size in args.dense:
        svd = in_fresh_process(DENSE.format(name="deblur_uniform", size=size))
        ours = measure_structured("deblur_uniform", size)
        dense.append({"size": size, "dense": svd, "ratio": svd["setup"] / ours["setup"]})
    print_table(
        "deblur_uniform beside torch.linalg.svd of one channel's dense H",
        ["size", "dense SVD s", "peak MiB", "times slower than ours"],
        [[d["size"], d["dense"]["setup"], d["dense"]["peak_mib"], d["ratio"]] for d in dense],
    )
    store("operators", {"structured": results, "dense": dense})


if __name__ == "__main__":
    main()
