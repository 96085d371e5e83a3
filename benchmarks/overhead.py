"""What a sampler costs beyond its denoiser calls: 8 samples of 3x64x64.

    python benchmarks/overhead.py [--milliseconds 20] [--prior faces]

The denoiser is a stack of convolutions, sized until one batched call takes the wanted time, or a bundled prior. Bare
calls and sampler steps alternate in the same process, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import time
from statistics import mean

import torch
from torch import nn

from measure import print_table, seconds, store
from snips import PROBLEMS, InverseProblem, Prior, load_prior, make_operator
from snips.allocator import keep_freed_memory
from snips.samplers import fast_steps, langevin_steps
from snips.schedules import geometric
from snips.streams import Chain

SHAPE, SAMPLES = (3, 64, 64), 8


class Convolutions(Prior):
    """Something of a chosen cost that returns numbers of the right size."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        middle = [nn.Conv2d(32, 32, 3, padding=1) for _ in range(layers)]
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *middle, nn.Conv2d(32, 3, 3, padding=1))
        self.to(memory_format=torch.channels_last)

    def denoise(self, x, sigma):
        return self.layers(x.contiguous(memory_format=torch.channels_last)).contiguous().clamp(0, 1)


def build_prior(wanted: float) -> Convolutions:
    x, layers = torch.rand(SAMPLES, *SHAPE), 1
    with torch.no_grad():
        while True:
            prior = Convolutions(layers)
            if seconds(lambda: prior.denoise(x, 1.0), repeat=9, warm_up=2) >= wanted:  # noqa: B023
                return prior
            layers += 1


def overhead(name: str, sampler: str, prior: Prior, steps: int = 60) -> dict[str, float]:
    """Alternate a sampler step with a bare call. Means, not medians: the set-up of a level is rare but counts."""
    options = {"kernel": torch.rand(5, 5)} if name == "deblur_kernel" else {}
    problem = InverseProblem.simulate(make_operator(name, SHAPE, **options), torch.rand(1, *SHAPE), 0.1, seed=0)
    chains = [Chain(0, sample) for sample in range(SAMPLES)]
    if sampler == "fast":
        generator = fast_steps(problem, prior, chains, nfe=steps)
    else:
        generator = langevin_steps(problem, prior, chains, sigmas=geometric(90, 0.01, steps // 5), tau=5)
    x, stepped, bare = torch.rand(SAMPLES, *SHAPE), [], []
    while True:
        started = time.perf_counter()
        if next(generator, None) is None:
            break
        middle = time.perf_counter()
        with torch.no_grad():
            prior.denoise(x, 1.0)
        stepped.append(middle - started)
        bare.append(time.perf_counter() - middle)
    return {"step": mean(stepped), "bare": mean(bare), "overhead": mean(stepped) / mean(bare) - 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--milliseconds", type=float, default=20)
    parser.add_argument("--prior", help="a bundled prior in place of the convolutions")
    args = parser.parse_args()
    keep_freed_memory()  # as the command line does
    prior = load_prior(args.prior) if args.prior else build_prior(args.milliseconds / 1e3)
    names = [name for name in PROBLEMS if name != "matrix"]  # a dense SVD
    results = {sampler: {name: overhead(name, sampler, prior) for name in names} for sampler in ("langevin", "fast")}
    print_table(
        f"one step of 8 chains, {torch.get_num_threads()} threads",
        ["problem", "sampler", "bare call ms", "step ms", "overhead %"],
        [
            [name, sampler, 1e3 * row["bare"], 1e3 * row["step"], 100 * row["overhead"]]
            for sampler, rows in results.items()
            for name, row in rows.items()
        ],
    )
    store(f"overhead_{args.prior}" if args.prior else "overhead", results)


if __name__ == "__main__":
    main()
