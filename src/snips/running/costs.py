"""What a restoration will take, measured by a short trial before the long run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from snips.allocator import give_back_freed_memory
from snips.inverse_problem import InverseProblem
from snips.memory import available_memory
from snips.priors.base import Prior
from snips.priors.tiled import TiledPrior
from snips.samplers.table import sampler_entry

CROP = 256  # pixels of the side of a crop, from which the memory of a larger image is extrapolated
EXTRAPOLATE_FROM = 512 * 512  # pixels; from here on it is
CHUNK_PIXELS = 4 * 64 * 64  # go through the denoiser at once; more at a time gains nothing on a CPU
PIXEL_BYTES = 4096  # of memory for each pixel of a chain under way, above what benchmarks/scaling.py measures


@dataclass(frozen=True)
class Cost:
    """Seconds, and bytes of main memory beyond what the program holds now (None where the system does not tell)."""

    seconds: float
    bytes: int | None
    held: int = 0  # bytes of the program as it is, which a task manager shows too

    def __str__(self) -> str:
        memory = "" if self.bytes is None else f" and {(self.bytes + self.held) / 2**30:.2g} GiB of memory"
        return f"about {duration(self.seconds)}{memory}"


def duration(seconds: float) -> str:
    """For people: 1 second, 40 seconds, 5 minutes, 2.5 hours."""
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} hours"
    unit, name = (1, "second") if seconds < 90 else (60, "minute")
    count = max(1, round(seconds / unit))
    return f"{count} {name}{'s' * (count > 1)}"


def fitting_pixels() -> int:
    """Pixels of all chains under way: as many as pay, and as half of the free memory holds."""
    return max(1, min(CHUNK_PIXELS, available_memory() // 2 // PIXEL_BYTES))


def chosen_chunk(image_shape: tuple[int, int, int], pixels: int) -> int:
    """Chains at a time that have no more pixels than that; one at least."""
    return max(1, pixels // (image_shape[1] * image_shape[2]))


def estimate_cost(problem: InverseProblem, prior: Prior, sampler: str, calls: int, chains: int, chunk: int) -> Cost:
    """The cost of `chains` chains of `calls` calls, from a trial of one chain with the fewest."""
    entry = sampler_entry(sampler)
    _check_crop(problem, prior)
    with peak_memory() as memory:
        started = time.perf_counter()
        entry.function(problem[0], prior, samples=1, **entry.shortest)
        seconds = time.perf_counter() - started
    needed = None if memory.bytes is None else memory.bytes * min(chunk, chains) + result_bytes(problem, chains)
    return Cost(seconds / entry.calls(entry.shortest) * calls * chains, needed, memory.held)


def result_bytes(problem: InverseProblem, chains: int) -> int:
    """Of the samples and of what is made of them."""
    return 4 * problem.y.element_size() * chains * math.prod(problem.operator.image_shape)


def check_results(problem: InverseProblem, samples: int) -> None:
    """Refuse more samples than memory holds, however small the image: their number alone tells, without a trial."""
    needed, free = result_bytes(problem, samples * len(problem)), available_memory()
    if needed > free:
        most = max(1, free // result_bytes(problem, len(problem)))
        raise ValueError(
            f"{samples:,} samples need {needed / 2**30:.1f} GiB of memory, but {free / 2**30:.1f} GiB are free: take "
            f"at most {most:,}"
        )


def check_cost(cost: Cost, chunk: int) -> None:
    """Refuse what will not fit into memory, before the work and not in the midst of it."""
    free = available_memory()
    if cost.bytes is None or cost.bytes <= free:
        return
    advice = "take fewer chains at a time with --chunk 1" if chunk > 1 else "crop the image, or take fewer samples"
    raise ValueError(
        f"this needs {cost.bytes / 2**30:.1f} GiB of memory, but {free / 2**30:.1f} GiB are free: {advice}"
    )


def _check_crop(problem: InverseProblem, prior: Prior) -> None:
    """The trial itself must fit: extrapolate one call of the denoiser from a crop, where the prior takes any size.

    In tiles it needs no more than one of them.
    """
    channels, height, width = problem.operator.image_shape
    if height * width > EXTRAPOLATE_FROM and not hasattr(prior, "image_shape") and not isinstance(prior, TiledPrior):
        check_cost(Cost(0, height * width * pixel_bytes(prior, channels)), chunk=1)


def untiled_pixels(prior: Prior, channels: int) -> int:
    """Of the largest image that the prior denoises at once within half of the free memory."""
    return available_memory() // 2 // pixel_bytes(prior, channels)


def pixel_bytes(prior: Prior, channels: int) -> int:
    """Memory of one call of the denoiser for each pixel of an image: measured on a crop where the system tells it."""
    with peak_memory() as memory, torch.no_grad():
        prior.denoise(torch.full((1, channels, CROP, CROP), 0.5), 1.0)
    return (memory.bytes or 0) // CROP**2 or PIXEL_BYTES


@dataclass
class PeakMemory:
    """How far the memory of this process rose; `bytes` is known when the block has ended."""

    held: int = 0  # bytes before
    bytes: int | None = None


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Measure the peak of resident memory, on Linux, where a process may reset its own high-water mark."""
    measured = PeakMemory()
    give_back_freed_memory()
    before = _reset_peak()
    measured.held = before or 0
    yield measured
    if before is not None:
        measured.bytes = max(0, _status("VmHWM") - before)


def _reset_peak() -> int | None:
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return _status("VmRSS")
    except (OSError, KeyError, ValueError):
        return None


def _status(name: str) -> int:
    with open("/proc/self/status") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    return int(fields[name].split()[0]) * 1024
