"""What 8 samples of a 64 x 64 image cost on this machine, with our network and with one of the paper's size."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median
from typing import Any

import torch

from snips.experiments import datasets
from snips.experiments.base import Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.markdown import table
from snips.experiments.published import CELEBA_SAMPLES, SECONDS_CELEBA, SIGMA_CELEBA
from snips.experiments.sampled import experiment_prior, prior_identity, simulated
from snips.inverse_problem import InverseProblem
from snips.priors import Prior
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.precision import bfloat16_works, with_precision
from snips.priors.unet import UNet
from snips.samplers import fast_steps, langevin_steps
from snips.samplers.base import OnStep, StepInfo
from snips.streams import Chain

PROBLEM = "sr4"  # the paper's two minutes are for super-resolution
NEARLY_ALL = 0.995  # single calls are measured apart from the run, so that by chance they can take longer than it did


@dataclass(frozen=True)
class Run:
    """One row: a network, a sampler, and how many of its calls of the network are really made."""

    network: str
    sampler: str
    calls: int
    made: int


OURS, LOW = "ours", "ours, bfloat16"
FULL_RUNS = (
    Run(OURS, "fast", 50, 50),
    Run(OURS, "fast", 100, 100),
    Run(OURS, "langevin", 2500, 50),
    Run(LOW, "fast", 50, 50),
    Run(LOW, "fast", 100, 100),
    Run(LOW, "langevin", 2500, 50),
    Run("ncsnv2", "fast", 50, 3),
    Run("ncsnv2", "fast", 100, 3),
    Run("ncsnv2", "langevin", 2500, 3),
)
QUICK_RUNS = (
    Run(OURS, "fast", 8, 8),
    Run(OURS, "langevin", 2500, 2),
    Run(LOW, "fast", 8, 8),
    Run("ncsnv2", "fast", 8, 1),
)


def prepare(request: Request) -> Study:
    test = datasets.faces(Request(request.out, quick=True), 1)  # the cost does not depend on the picture
    problem = simulated(PROBLEM, test.images, SIGMA_CELEBA, request.seed)
    ours = experiment_prior(replace(request, precision="float32"), "faces", test.images)
    torch.manual_seed(request.seed)
    networks: dict[str, Prior] = {OURS: ours, "ncsnv2": NCSNv2(16 if request.quick else 128).eval()}
    if isinstance(ours, UNet) and bfloat16_works():
        networks[LOW] = with_precision(ours, "bfloat16")
    samples = request.choose(CELEBA_SAMPLES, 2)
    runs = [run for run in (QUICK_RUNS if request.quick else FULL_RUNS) if run.network in networks]
    settings = {"prior": prior_identity(ours), "samples": samples, "threads": torch.get_num_threads()}
    sizes = {name: sum(p.numel() for p in network.parameters()) for name, network in networks.items() if name != LOW}
    facts = {"problem": PROBLEM, "samples": samples, "threads": settings["threads"], "parameters": sizes}

    def conclude(measured: list[Measured]) -> Outcome:
        return Outcome({"prior": settings["prior"], **facts, "costs": [m.facts for m in measured]})

    return Study(settings, [_part(run, problem, networks[run.network], samples) for run in runs], conclude)


def _part(run: Run, problem: InverseProblem, network: Prior, samples: int) -> Part:
    def compute(on_step: OnStep) -> Measured:
        chains = [Chain(0, k) for k in range(samples)]
        call = network_seconds(network, problem, samples)
        wall, processor = first_steps(sampler_steps(run, problem, network, chains), run.made, on_step)
        scale = run.calls / run.made
        facts = {**vars(run), "seconds": wall * scale, "processor_seconds": processor * scale}
        return Measured(
            {**facts, "network_call": call, "network_share": call * run.made / processor, "load": os.getloadavg()[0]}
        )

    key = f"{run.network}-{run.sampler}-{run.calls}".replace(", ", "-")
    return Part(key, f"{run.network}, {run.sampler} {run.calls}", compute)


def sampler_steps(run: Run, problem: InverseProblem, network: Prior, chains: list[Chain]) -> Iterator[StepInfo]:
    if run.sampler == "fast":
        return fast_steps(problem, network, chains, nfe=run.calls)
    return langevin_steps(problem, network, chains)


def first_steps(steps: Iterator[StepInfo], count: int, on_step: OnStep) -> tuple[float, float]:
    """Wall-clock and processor time of the first steps, setting up included."""
    wall, processor = time.perf_counter(), time.process_time()
    for info in islice(steps, count):
        on_step(info)
    return time.perf_counter() - wall, time.process_time() - processor


@torch.no_grad()
def network_seconds(network: Prior, problem: InverseProblem, samples: int, repeat: int = 3) -> float:
    """The median processor time of one call for all samples, after one to warm up."""
    x = torch.rand(samples, *problem.operator.image_shape)
    times = []
    for _ in range(repeat + 1):
        started = time.process_time()
        network.denoise(x, 0.1)
        times.append(time.process_time() - started)
    return median(times[1:])


def describe(results: dict[str, Any]) -> str:
    rows, ours = [], f"`{results['prior']['name']}`"
    for cost in results["costs"]:
        how = "measured" if cost["made"] == cost["calls"] else f"extrapolated from the first {cost['made']} steps"
        cells = [
            cost["network"].replace(OURS, ours),
            f"{cost['sampler']}, {cost['calls']} calls",
            f"{cost['seconds']:.1f}",
        ]
        cells += [f"{cost['processor_seconds']:.1f}", how]
        rows.append([*cells, f"{1000 * cost['network_call']:.0f}", _share(cost["network_share"])])
    rows.append(["the paper's NCSNv2", "Algorithm 1, 2500 calls", f"about {SECONDS_CELEBA}", "-", "RTX 3080", "-", "-"])
    named = ((name.replace(OURS, ours), count) for name, count in results["parameters"].items())
    sizes = ", ".join(f"{name} {count / 1e6:.1f} million" for name, count in named)
    note = (
        f"{results['samples']} samples of one 64 x 64 image, {results['problem']}, {_threads(results['threads'])}. "
        f"Parameters: {sizes} (ncsnv2 with random weights, for its cost alone). Processor seconds are summed over "
        f"threads. {_busy(results['costs'])}{_fast(results, ours)} The network's share is that of as many single "
        "calls, which were measured apart, in the processor's time of the run.\n\n"
    )
    columns = ["network", "sampler", "seconds", "processor seconds", "", "network ms / call", "network's share"]
    return note + table(columns, rows)


def _busy(costs: list[dict[str, Any]]) -> str:
    """What else the machine did makes the wall clock worth less."""
    load = max(cost["load"] for cost in costs)
    return f"The machine's load was up to {load:.1f} (with these runs). "


def _fast(results: dict[str, Any], ours: str) -> str:
    """What the fast sampler takes with our network."""
    fast = [cost for cost in results["costs"] if cost["sampler"] == "fast" and cost["network"].startswith(OURS)]
    each = [
        f"{cost['seconds']:.1f} s for {cost['calls']} calls of {cost['network'].replace(OURS, ours)}" for cost in fast
    ]
    return f"`fast` took {', '.join(each)}, on {_threads(results['threads'])}."


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def _share(share: float) -> str:
    return "about all" if share >= NEARLY_ALL else f"{100 * share:.0f} %"


COST = Experiment("Seconds for 8 samples, beside the paper's two minutes", prepare, describe, takes=("prior",))
