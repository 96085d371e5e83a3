"""Verification tells how large a change it would mostly have seen: how often it does."""

from __future__ import annotations

import pytest
import torch

from restoration_cases import groups
from snips.running.verification import LEVEL, MOSTLY, compare, sizes_seen


def test_the_shift_is_told_in_posterior_standard_deviations():
    """1,000 pairs of 8 samples whose means are 0.8 standard deviations apart in all of their 4 directions."""
    squares = [compare(*groups(8, shift=0.8, seed=seed))[0] ** 2 for seed in range(1000)]
    assert sizes_seen((sum(squares) / 1000) ** 0.5, 1.0, 8) == (pytest.approx(MOSTLY * 0.8, rel=0.1), 1)
    assert sizes_seen(0.9, 1.0, 8) == (0, 1)  # less than noise


LAWS = {"four directions": torch.ones(4), "one": torch.ones(1), "as of photographs": 1 / torch.arange(1.0, 65.0)}


@pytest.mark.parametrize("K", [6, 8])
@pytest.mark.parametrize("law", list(LAWS))
def test_what_would_mostly_have_been_seen_mostly_is(law, K):
    """A shift and a ratio of the sizes that are told: 100 pairs each, of which 66 to 99 are seen."""

    def pair(seed: int, shift: float = 0.0, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randn(2 * K, len(LAWS[law]), generator=torch.Generator().manual_seed(seed)) * LAWS[law]
        return x[:K] * scale + shift * LAWS[law], x[K:]

    shift, ratio = torch.tensor([sizes_seen(*compare(*pair(seed))[4:], K) for seed in range(20)]).mean(0).tolist()
    assert sum(compare(*pair(100 + seed, shift=shift))[1] <= LEVEL for seed in range(100)) > 60
    assert sum(compare(*pair(100 + seed, scale=ratio))[3] <= LEVEL for seed in range(100)) > 60
