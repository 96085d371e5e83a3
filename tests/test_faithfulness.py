"""The faithfulness test accepts noise and refuses everything else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch

from snips import InverseProblem, StationaryGaussian, as_operator, make_operator, restore
from snips.metrics import faithfulness
from snips.operators import MaskedTransform
from snips.report.verdicts import failures

SHAPE = (3, 16, 16)


@pytest.fixture
def problem() -> InverseProblem:
    return InverseProblem.simulate(make_operator("denoise", SHAPE), torch.rand(2, *SHAPE), 0.1, seed=1)


def with_residual(problem: InverseProblem, residual: torch.Tensor) -> torch.Tensor:
    """A sample (1, B, C, H, W) of the identity that leaves this residual."""
    return (problem.y - residual)[None]


def test_numbers_are_scipys(problem):
    residual = 0.1 * torch.randn(2, *SHAPE)
    result = faithfulness(problem, with_residual(problem, residual))
    flat = residual[1].double().numpy()
    assert result.residual_std[0, 1] == pytest.approx(np.sqrt((flat**2).mean()), rel=1e-5)
    assert result.p_value[0, 1] == pytest.approx(scipy.stats.normaltest(flat.ravel()).pvalue, rel=1e-3)
    across = scipy.stats.pearsonr(flat[:, :, :-1].ravel(), flat[:, :, 1:].ravel()).statistic
    down = scipy.stats.pearsonr(flat[:, :-1].ravel(), flat[:, 1:].ravel()).statistic
    assert result.rho_x[0, 1] == pytest.approx(across, abs=1e-5)
    assert result.rho_y[0, 1] == pytest.approx(down, abs=1e-5)
    assert result.rho[0, 1].abs() == pytest.approx(max(abs(across), abs(down)), abs=1e-5)


def test_true_noise_is_faithful_most_of_the_time():
    """p > 0.05 holds in 95 % of the cases by definition, |rho| < 0.1 nearly always; 3 standard errors at 400."""
    y = 0.1 * torch.randn(400, *SHAPE)
    problem = InverseProblem(make_operator("denoise", SHAPE), y, 0.1)
    verdict = faithfulness(problem, torch.zeros(1, 400, *SHAPE))
    assert 0.90 < verdict.faithful.double().mean() < 0.98
    assert (verdict.rho.abs() < 0.1).double().mean() > 0.97


@pytest.mark.parametrize(
    "residual",
    [
        lambda: 0.15 * torch.randn(2, *SHAPE),  # too large
        lambda: 0.05 * torch.randn(2, *SHAPE),  # too small: the noise was fitted
        lambda: 0.1 * (torch.rand(2, *SHAPE) - 0.5) * 12**0.5,  # not Gaussian
        lambda: 0.1 * torch.randn(2, 3, 16, 1).expand(2, *SHAPE),  # correlated along rows
        lambda: 0.1 * torch.randn(2, 3, 1, 16).expand(2, *SHAPE),  # and along columns
        lambda: 0.1 * torch.randn(2, *SHAPE) + 0.1,  # biased
    ],
)
def test_other_residuals_are_not(residual, problem):
    assert not faithfulness(problem, with_residual(problem, residual())).faithful.any()


def test_shapes_are_samples_by_images(problem):
    result = faithfulness(problem, torch.rand(5, 2, *SHAPE))
    assert all(value.shape == (5, 2) for value in vars(result).values())


@pytest.mark.parametrize(
    ("name", "has_second_axis"), [("cs4", False), ("inpaint", False), ("sr2", True), ("mri", True)]
)
def test_neighbours_are_those_of_the_measurement(name, has_second_axis):
    problem = InverseProblem.simulate(make_operator(name, SHAPE), torch.rand(1, *SHAPE), 0.1, seed=0)
    result = faithfulness(problem, torch.rand(2, 1, *SHAPE))
    assert result.rho_x is not None
    assert (result.rho_y is not None) == has_second_axis


def test_a_foreign_measurement_of_two_axes_has_rows_and_columns():
    pylops = pytest.importorskip("pylops", reason="pylops is not installed: pip install '.[pylops]'")
    operator = as_operator(pylops.Identity(15 * 17, dtype="float64"), (1, 15, 17))
    assert faithfulness(noisy(operator), torch.rand(1, 1, 1, 15, 17)).rho_y is None  # a list
    blur = pylops.signalprocessing.Convolve2D((15, 17), h=np.ones((3, 3)) / 9, offset=(1, 1), dtype="float64")
    problem = noisy(as_operator(blur, (1, 15, 17)))
    x = torch.rand(1, 1, 1, 15, 17)
    residual = (problem.y - problem.operator(x[0])).numpy()[0]
    expected = scipy.stats.pearsonr(residual[1:].ravel(), residual[:-1].ravel()).statistic
    assert float(faithfulness(problem, x).rho_y) == pytest.approx(expected, abs=1e-5)


def noisy(operator) -> InverseProblem:
    return InverseProblem.simulate(operator, torch.rand(1, *operator.image_shape), 0.1, seed=0)


def test_only_neighbours_that_were_recorded_count():
    """A measurement of full size in which the unseen pixels are 0: pairs across the edge of the mask tell nothing."""
    seen = torch.rand(1, 16, 24, generator=torch.Generator().manual_seed(0)) < 0.6
    problem = noisy(MaskedTransform((1, 16, 24), seen.float(), "identity"))
    x = torch.rand(1, 1, 1, 16, 24)
    residual = (problem.y - problem.operator(x[0]))[0]
    both = seen[:, 1:] & seen[:, :-1]
    expected = scipy.stats.pearsonr(residual[:, 1:][both], residual[:, :-1][both]).statistic
    assert float(faithfulness(problem, x).rho_y) == pytest.approx(float(expected), abs=1e-5)


def test_verdict_takes_the_papers_thresholds():
    """Residuals around both thresholds: noise with growing tails, and with growing correlation."""
    shape = (3, 32, 32)  # with neighbours enough for the paper's threshold
    problem = InverseProblem.simulate(make_operator("denoise", shape), torch.rand(2, *shape), 0.1, seed=1)
    white = 0.1 * torch.randn(40, 2, *shape)
    tails = white * (1 + torch.linspace(0, 0.5, 20).repeat(2)[:, None, None, None, None] * (white.abs() > 0.15))
    smooth = white + torch.linspace(0, 0.3, 40)[:, None, None, None, None] * white.roll(1, -1)
    verdict = faithfulness(problem, problem.y - torch.cat([tails, smooth]))
    assert ((verdict.p_value > 0.03) & (verdict.p_value < 0.07)).any()
    assert ((verdict.rho.abs() > 0.08) & (verdict.rho.abs() < 0.12)).any()
    level = (verdict.std_ratio - 1).abs() < 0.1
    assert torch.equal(verdict.faithful, (verdict.p_value > 0.05) & (verdict.rho.abs() < 0.1) & level)


@pytest.mark.parametrize(("entries", "tested"), [(19, False), (20, True)])
def test_twenty_measurements_are_the_fewest(entries, tested):
    H = make_operator("denoise", (1, 1, entries))
    result = faithfulness(InverseProblem(H, 0.1 * torch.randn(1, 1, 1, entries), 0.1), torch.zeros(1, 1, 1, 1, entries))
    assert (result.p_value is not None) == tested


def test_the_whole_residual_counts_with_more_measurements_than_pixels():
    from snips.operators import Dense

    operator = Dense(torch.eye(16).repeat(3, 1), (1, 4, 4))
    y = torch.randn(1, 48) * 0.1
    result = faithfulness(InverseProblem(operator, y, 0.1), torch.zeros(1, 1, 1, 4, 4))
    assert result.residual_std.item() == pytest.approx(y.square().mean().sqrt().item(), rel=1e-5)


def test_none_where_it_means_nothing():
    noiseless = InverseProblem.simulate(make_operator("denoise", SHAPE), torch.rand(1, *SHAPE), 0.0, seed=0)
    few = InverseProblem.simulate(make_operator("denoise", (1, 4, 4)), torch.rand(1, 1, 4, 4), 0.1, seed=0)
    for problem, shape in ((noiseless, SHAPE), (few, (1, 4, 4))):
        result = faithfulness(problem, torch.rand(2, 1, *shape))
        assert result.residual_std.shape == (2, 1)
        assert (result.std_ratio, result.p_value, result.rho, result.faithful) == (None, None, None, None)


def test_few_neighbours_of_white_noise_may_be_correlated_more():
    """In 1x16x16, rho has a standard deviation of 0.065: one image in eight would fail either 0.1 by chance."""
    small = InverseProblem.simulate(make_operator("denoise", (1, 16, 16)), torch.rand(1, 1, 16, 16), 0.1, seed=1)
    verdict = faithfulness(small, small.y - 0.1 * torch.randn(400, 1, 1, 16, 16))
    assert verdict.rho_x_limit[0, 0] == pytest.approx(3 / (16 * 15) ** 0.5)
    assert (verdict.rho_x.abs() > 0.1).double().mean() > 0.05
    white = verdict.tests["rho_x"] & verdict.tests["rho_y"]
    assert white.double().mean() > 0.98  # 0.9946 expected; 0.98 is 4 standard errors below
    words = failures(replace(verdict, rho_x=torch.full_like(verdict.rho_x, 0.5)), 0, 0)
    assert "neighbours along x are correlated (rho = 0.50, between -0.19 and 0.19 would pass)" in words


@pytest.mark.parametrize(("assumed", "found_out"), [(1.0, False), (1.5, False), (1.9, False), (3.0, True)])
def test_only_a_very_wrong_kernel_is_found_out(assumed, found_out):
    """A blur of standard deviation 1.5 that is taken for another, as docs/reading_results.md tells."""
    shape = (1, 96, 96)
    prior = StationaryGaussian.natural(shape)
    blurs = [make_operator("deblur_gauss", shape, std=std, width=19, border="circular") for std in (1.5, assumed)]
    measured = InverseProblem.simulate(blurs[0], prior.sample(1, seed=0), sigma_0=0.02, seed=1)
    result = restore(InverseProblem(blurs[1], measured.y, 0.02), prior, samples=2, nfe=30)
    assert result.faithfulness().faithful.tolist() == [[not found_out]] * 2
