"""Calibration: exchangeable samples pass, too narrow, too wide and shifted ones do not."""

from __future__ import annotations

import pytest
import torch

from snips.metrics import calibration


def draws(
    K: int, truths: int, scale: float = 1.0, shift: float = 0.0, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    truth = torch.randn(truths, generator=random, dtype=torch.float64)
    return shift + scale * torch.randn(K, truths, generator=random, dtype=torch.float64), truth


@pytest.mark.parametrize(
    ("K", "level", "exact"),
    [(19, 0.9, 0.9), (39, 0.9, 0.9), (20, 0.9, 1 - 2 / 21), (99, 0.5, 0.5), (8, calibration.widest_level(8), 7 / 9)],
)
def test_intervals_cover_at_the_stated_level(K, level, exact):
    """4,000 truths: a correct implementation fails once in 16,000 (4 standard errors)."""
    found = calibration.coverage(*draws(K, 4000), level)
    assert found.level == pytest.approx(exact)
    assert abs(found.share - exact) < 4 * (exact * (1 - exact) / 4000) ** 0.5


def test_a_small_interval_by_hand():
    samples = torch.arange(1.0, 20.0)[:, None].expand(19, 4)  # 1 .. 19
    found = calibration.coverage(samples, torch.tensor([0.5, 1.5, 18.5, 19.5]))
    assert found.inside.tolist() == [False, True, True, False]
    narrower = calibration.coverage(samples, torch.tensor([1.5, 2.5, 17.5, 18.5]), level=0.8)
    assert narrower.inside.tolist() == [False, True, True, False]


@pytest.mark.parametrize("level", [0.9, 0.5])
def test_without_ties_order_statistics_and_ranks_agree(level):
    samples, truth = draws(19, 4000)
    m, ordered = round((1 - level) * 10), samples.sort(0).values
    between = (truth >= ordered[m - 1]) & (truth <= ordered[19 - m])
    assert torch.equal(calibration.coverage(samples, truth, level).inside, between)


@pytest.mark.parametrize("low", [0.0, -0.5])
def test_the_level_is_exact_for_clamped_pixels(low):
    """Half of the values or a third are black in samples and truth: 4,000 truths, 4 standard errors.

    To count ties as inside gives 0.953.
    """
    samples, truth = (x.clamp(min=low) for x in draws(19, 4000))
    found = calibration.coverage(samples, truth)
    assert abs(found.share - 0.9) < 4 * (0.9 * 0.1 / 4000) ** 0.5
    rank = calibration.ranks(samples, truth)
    assert torch.equal(found.inside, (rank >= 1) & (rank <= 18))


@pytest.mark.parametrize(("scale", "compare"), [(0.7, float.__lt__), (1.5, float.__gt__)])
def test_wrong_spread_shows_in_the_coverage(scale, compare):
    found = calibration.coverage(*draws(19, 2000, scale))
    assert compare(found.share, found.level + (0.03 if scale > 1 else -0.03))


def test_ranks_by_hand():
    samples = torch.arange(19.0)[:, None].expand(19, 3)
    assert calibration.ranks(samples, torch.tensor([-1.0, 4.5, 99.0])).tolist() == [0, 5, 19]


def test_ties_are_broken_evenly():
    """Samples and truth all equal: ranks uniform; the seed is fixed, a correct one fails once in 1,000."""
    rank = calibration.ranks(torch.zeros(19, 2000), torch.zeros(2000))
    assert calibration.uniformity(rank, 19) > 1e-3


def test_uniform_ranks_pass_and_others_do_not():
    """Error rate of the first line 1 in 1,000."""
    assert calibration.uniformity(calibration.ranks(*draws(19, 2000)), 19) > 1e-3
    for wrong in ({"scale": 0.7}, {"scale": 1.4}, {"shift": 0.3}):
        assert calibration.uniformity(calibration.ranks(*draws(19, 2000, **wrong)), 19, bins=10) < 1e-6


def test_histograms_count_everything():
    rank = torch.tensor([0, 0, 5, 19])
    assert calibration.rank_histogram(rank, 19).tolist() == [2, 0, 0, 0, 0, 1, *[0] * 13, 1]
    assert calibration.rank_histogram(rank, 19, bins=4).tolist() == [2, 1, 0, 1]


def test_summaries_reduce_images_to_numbers():
    x = torch.rand(5, 2, 3, 4, 4)
    for summary in calibration.SUMMARIES.values():
        assert summary(x).shape == (5, 2)
    assert calibration.SUMMARIES["roughness"](torch.ones(1, 4, 4)) == 0
    torch.testing.assert_close(calibration.SUMMARIES["brightness"](x), x.mean((-3, -2, -1)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration.coverage(torch.zeros(8, 3), torch.zeros(3)), "8 samples give no interval"),
        (lambda: calibration.coverage(torch.zeros(19, 3), torch.zeros(4)), "K in front"),
        (lambda: calibration.coverage(torch.zeros(19, 3), torch.zeros(3), 1.0), "between 0 and 1"),
        (lambda: calibration.coverage(torch.zeros(19, 3), torch.zeros(3), 0.01), "no interval"),
        (lambda: calibration.coverage(torch.full((19, 3), torch.nan), torch.zeros(3)), "there is NaN"),
        (lambda: calibration.coverage(torch.zeros(19, 3), torch.tensor([0, 0, torch.nan])), "there is NaN"),
        (lambda: calibration.ranks(torch.full((19, 3), torch.nan), torch.zeros(3)), "there is NaN"),
        (lambda: calibration.ranks(torch.zeros(19, 3), torch.tensor([0, 0, torch.nan])), "there is NaN"),
        (lambda: calibration.rank_histogram(torch.zeros(3), 19, bins=7), "do not divide"),
        (lambda: calibration.rank_histogram(torch.zeros(3).long(), 19, bins=0), "bins must be"),
        (lambda: calibration.rank_histogram(torch.zeros(3).long(), 19, bins=-4), "bins must be"),
        (lambda: calibration.rank_histogram(torch.tensor([0, 20]), 19), "whole numbers from 0 to 19"),
        (lambda: calibration.rank_histogram(torch.tensor([0, -1]), 19), "whole numbers from 0 to 19"),
        (lambda: calibration.rank_histogram(torch.zeros(3), 19), "whole numbers from 0 to 19"),
        (lambda: calibration.uniformity(torch.zeros(30).long(), 19), "too few"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
