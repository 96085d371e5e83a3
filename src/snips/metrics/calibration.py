"""Are the samples as uncertain as they should be? Ranks of the truth among them, and coverage of their intervals.

If truth and K samples come from the same posterior, all K + 1 of them are exchangeable: the rank of the truth is
uniform on 0 .. K (simulation-based calibration, Talts et al. 2018), and the interval between the m-th smallest and
the m-th largest sample covers the truth with probability 1 - 2 m / (K + 1) exactly, whatever the posterior is. Where
the truth equals samples, as pixels do that are clamped to black, both hold for the rank that is drawn among the ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from snips.names import check_count
from snips.streams import checked_seed

Summary = Callable[[Tensor], Tensor]  # (..., C, H, W) -> (...)
TIES = 2018  # with the seed, for numbers that nobody else draws: a truth that came of the same ones would have its say


def _brightness(x: Tensor) -> Tensor:
    return x.flatten(-3).mean(-1)


def _contrast(x: Tensor) -> Tensor:
    return x.flatten(-3).std(-1)


def _roughness(x: Tensor) -> Tensor:
    """Root mean square of the differences of neighbours."""
    down, right = x.diff(dim=-2).flatten(-3), x.diff(dim=-1).flatten(-3)
    return torch.cat([down, right], -1).square().mean(-1).sqrt()


SUMMARIES: dict[str, Summary] = {"brightness": _brightness, "contrast": _contrast, "roughness": _roughness}


@dataclass(frozen=True)
class Coverage:
    """How often central intervals held the truth."""

    level: float  # the exact level of the interval for this many samples
    inside: Tensor  # bool, the shape of the truth

    @property
    def share(self) -> float:
        return float(self.inside.double().mean())


def widest_level(samples: int) -> float:
    """The level of the interval between the smallest and the largest of so many samples."""
    return 1 - 2 / (samples + 1)


def coverage(samples: Tensor, truth: Tensor, level: float = 0.9, seed: int = 0) -> Coverage:
    """Coverage of the interval between order statistics of samples (K, ...) for truth (...).

    It reaches from the m-th smallest to the m-th largest sample, m the whole number nearest to (1 - level) (K + 1) / 2:
    inside is what has a rank from m to K - m. The level that this gives, 1 - 2 m / (K + 1), is stated in the result. It
    is exact for truths that are exchangeable with their samples, also with ties, which `ranks` breaks at random: a
    truth that equals the end of the interval is inside as often as the level asks, not always. No interval is wider
    than `widest_level`: few samples cannot tell of high levels.
    """
    K = _checked(samples, truth)
    if not 0 < level < 1:
        raise ValueError(f"the level of an interval lies between 0 and 1, but is {level}")
    m = round((1 - level) * (K + 1) / 2)
    if not 0 < 2 * m < K + 1:
        raise ValueError(f"{K} samples give no interval of level {level:g}: draw more")
    rank = ranks(samples, truth, seed).to(truth.device)
    return Coverage(1 - 2 * m / (K + 1), (rank >= m) & (rank <= K - m))


def ranks(samples: Tensor, truth: Tensor, seed: int = 0) -> Tensor:
    """How many of samples (K, ...) lie below truth (...), 0 .. K; ties are broken at random.

    Exactly uniform where truth and samples are exchangeable, with ties and without.
    """
    _checked(samples, truth)
    random = torch.as_tensor(np.random.default_rng([TIES, checked_seed(seed)]).random(tuple(truth.shape)))
    below, equal = (samples < truth).sum(0).cpu(), (samples == truth).sum(0).cpu()
    return below + (random * (equal + 1)).long()


def rank_histogram(rank: Tensor, samples: int, bins: int | None = None) -> Tensor:
    """Counts of ranks 0 .. K in K + 1 bins, or in fewer of equal width where `bins` divides K + 1."""
    bins = samples + 1 if bins is None else bins
    check_count("bins", bins)
    if (samples + 1) % bins:
        raise ValueError(f"{bins} bins do not divide the {samples + 1} ranks of {samples} samples")
    if rank.is_floating_point() or (rank < 0).any() or (rank > samples).any():
        raise ValueError(f"ranks among {samples} samples must be whole numbers from 0 to {samples}")
    return torch.bincount(rank.flatten() * bins // (samples + 1), minlength=bins)


def uniformity(rank: Tensor, samples: int, bins: int | None = None) -> float:
    """p-value of a chi-square test that ranks are uniform.

    The ranks must be independent: one summary of each of many truths. Pixels of one image are not.
    """
    counts = rank_histogram(rank, samples, bins)
    if counts.sum() < 5 * len(counts):
        raise ValueError(f"{int(counts.sum())} ranks are too few for {len(counts)} bins: 5 for each, or fewer bins")
    return float(stats.chisquare(counts.numpy()).pvalue)


def _checked(samples: Tensor, truth: Tensor) -> int:
    if samples.shape[1:] != truth.shape:
        raise ValueError(f"samples {tuple(samples.shape)} must be truth {tuple(truth.shape)} with K in front")
    if samples.isnan().any() or truth.isnan().any():
        raise ValueError("there is NaN among the samples or in the truth: it has no rank and lies in no interval")
    return len(samples)
