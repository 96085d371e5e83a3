"""Were the denoiser's calls enough? Repeat with twice as many and see whether the samples' mean and spread moved.

The second run has its own random numbers. If both draw from the same law, all 2K samples are exchangeable, so a
statistic of the two groups is compared with what it is for other splits of the same samples into two: a permutation
test, exact for any posterior and any correlation of pixels. The statistics are the distance of the two means and the
ratio of the two total variances; both follow from the inner products of the samples, so their size does not matter.

What this cannot see: an error that twice the calls share, such as a prior that is wrong; and changes smaller than
what is told as `off_seen` and `wide_seen`, which more samples make smaller. Both are averages over all pixels: what
moved in a small hole only must be larger there.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from snips.priors.base import Prior
from snips.restoration import Restoration, restore
from snips.samplers.base import OnStep
from snips.samplers.table import SAMPLER_TABLE
from snips.streams import checked_seed

FEWEST_SAMPLES = 6  # in each run; with 5, only the most extreme of all splits is as rare as LEVEL
LEVEL = 0.01  # of each of the two tests: runs that agree are reported as moved at most once in 50 times
SPLITS = 2000
PIXELS = 2**20  # in float64 at a time
MOSTLY = 2.0  # times the size that every other run or fewer would show: this size is mostly seen


@dataclass(frozen=True)
class Verification:
    """How two runs compare, the second with twice the calls."""

    option: str  # the sampler's option that was doubled
    value: int  # and its value in the second run
    mean_shift: float  # root mean square difference of the means, over what sampling noise alone makes it
    mean_p: float
    std_ratio: float  # total standard deviation of the first run over the second's
    std_p: float
    mean_seen: float  # the smallest shift, and the smallest ratio above 1, that would be called moved
    std_seen: float
    off_seen: float  # a true shift of the mean, in posterior standard deviations, that would mostly be called moved
    wide_seen: float  # and a true ratio of the standard deviations

    @property
    def moved(self) -> bool:
        return min(self.mean_p, self.std_p) <= LEVEL

    def __str__(self) -> str:
        if not self.mean_shift and not self.mean_seen:
            return f"verify: no change: the samples have no spread, also with {self.option} = {self.value}"
        found = (
            f"mean {self.mean_shift:.2f} x sampling noise ({_told(self.mean_p)}), "
            f"std {self.std_ratio:.2f} x ({_told(self.std_p)}) against {self.option} = {self.value}"
        )
        if self.moved:
            return f"verify: MOVED more than noise, use more calls: {found}"
        seen = f"a mean that is off by {self.off_seen:.2f} posterior std, or a std by {self.wide_seen:.2f} x"
        return f"verify: no change beyond noise: {found}; {seen}, over all pixels, would mostly have been seen"


def _told(p: float) -> str:
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def verify(result: Restoration, prior: Prior, *, on_step: OnStep | None = None) -> Restoration:
    """Draw as many samples again with twice the calls -> the restoration with a `Verification` among its settings."""
    again = restore(result.problem, prior, on_step=on_step, **finer(result))
    return verified(result, again)


def finer(result: Restoration) -> dict[str, Any]:
    """The arguments of `restore` for the second run: twice the calls and other random numbers."""
    check_samples(len(result.samples))
    sampler = result.settings.get("sampler")
    if sampler not in SAMPLER_TABLE or "sampler_options" not in result.settings:
        known = " or ".join(SAMPLER_TABLE)
        raise ValueError(f"verify repeats what restore() did with {known}; these samples tell of no such run")
    options, doubled = dict(result.settings["sampler_options"]), SAMPLER_TABLE[sampler].doubled
    option, other = doubled.option, doubled.replaced_by
    if other is not None and options.get(other) is not None:
        raise ValueError(
            f"verify doubles {option}, but these samples were drawn with {other}: restore with {option} instead"
        )
    options[option] = 2 * int(options.get(option) or doubled.default)
    seed = (checked_seed(result.settings["seed"]) + 1) % 2**63
    return {"sampler": sampler, "samples": len(result.samples), "seed": seed, **options}


def check_samples(samples: int) -> None:
    if samples < FEWEST_SAMPLES:
        raise ValueError(f"to verify takes at least {FEWEST_SAMPLES} samples in each run, not {samples}: draw more")


def verified(result: Restoration, again: Restoration) -> Restoration:
    """`result` with what a second, finer run says about it."""
    option = SAMPLER_TABLE[result.settings["sampler"]].doubled.option
    compared = compare(result.samples, again.samples)
    value = again.settings["sampler_options"][option]
    found = Verification(option, value, *compared, *sizes_seen(*compared[4:], len(result.samples)))
    record = {**asdict(found), "moved": found.moved, "verdict": str(found)}
    return replace(result, settings={**result.settings, "verification": record})


def compare(first: Tensor, second: Tensor) -> tuple[float, float, float, float, float, float]:
    """Shift of the mean, its p-value, ratio of the standard deviations, its p-value, and what of both would be seen.

    For samples (K, ...) each.
    """
    K = len(first)
    both = torch.cat([first, second]).flatten(1)
    parts = (part.double() - part.double().mean(0) for part in both.split(PIXELS, 1))
    products = torch.stack([part @ part.T for part in parts]).sum(0).cpu()
    own = torch.arange(2 * K) < K
    splits = torch.stack([own, *_random_splits(K)]).double()  # (1 + SPLITS, 2K), 1 for the first group
    shift, log_ratio = _statistics(splits, products)
    noise = (_variance(splits[:1], products) + _variance(1 - splits[:1], products)) / K
    scale = max(float(noise), 1e-300)
    return (
        math.sqrt(float(shift[0]) / scale),
        _p_value(shift),
        math.exp(float(log_ratio[0]) / 2),
        _p_value(log_ratio.abs()),
        math.sqrt(float(shift[1:].quantile(1 - LEVEL)) / scale),
        math.exp(float(log_ratio[1:].abs().quantile(1 - LEVEL)) / 2),
    )


def sizes_seen(shift: float, ratio: float, K: int) -> tuple[float, float]:
    """A shift of the mean and a ratio of standard deviations that would mostly be called moved.

    A true shift of d posterior standard deviations makes the squared one, over noise, 1 + d^2 K / 2 on average, so that
    about every other run would pass the threshold `shift`; fewer do, as what is shifted also widens the other splits.
    Ratios count by their logarithm.
    """
    return MOSTLY * math.sqrt(max(shift**2 - 1, 0) * 2 / K), ratio**MOSTLY


def _random_splits(K: int) -> list[Tensor]:
    random = torch.Generator().manual_seed(0)
    return [torch.randperm(2 * K, generator=random) < K for _ in range(SPLITS)]


def _statistics(splits: Tensor, products: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distance of the means and log ratio of the total variances, one for each split."""
    difference = (2 * splits - 1) / (splits.shape[1] / 2)
    shift = torch.einsum("si,ij,sj->s", difference, products, difference)
    tiny = torch.finfo(products.dtype).tiny
    return shift, (_variance(splits, products) + tiny).log() - (_variance(1 - splits, products) + tiny).log()


def _variance(chosen: Tensor, products: Tensor) -> Tensor:
    """The unbiased variance, summed over all pixels, of the samples that `chosen` (splits, 2K) marks with 1."""
    K = chosen.shape[1] / 2
    squares = chosen @ products.diagonal()
    return (squares - torch.einsum("si,ij,sj->s", chosen, products, chosen) / K).clamp(min=0) / (K - 1)


def _p_value(statistic: Tensor) -> float:
    """The share of splits at least as extreme as the first, which is the true one."""
    return float((statistic >= statistic[0] * (1 - 1e-9)).double().mean())
