"""Precise measurements: the fast sampler stays stable with a learned denoiser, and does not forget the prior."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from snips import InverseProblem, StationaryGaussian, load_prior, make_operator, restore
from snips.images import example_image
from snips.samplers import fast
from snips.schedules import CORRECTED_DOWN_TO, noise_plan


@pytest.mark.parametrize("shown", [0.0001, 0.006, 0.02])
@pytest.mark.parametrize("nfe", [25, 100, 400])
def test_nothing_is_corrected_at_very_small_levels(shown, nfe):
    """There a learned denoiser may be expansive: an error grows with each correction, the more calls the larger."""
    plan = noise_plan(1.0, shown, nfe)
    corrected = [level for level, following in pairwise(plan) if level == following]
    assert len(plan) == nfe
    assert corrected
    assert min(corrected) >= CORRECTED_DOWN_TO


def test_many_calls_do_not_spoil_a_precise_measurement():
    """With corrections down to 0.6 sigma_0 the residual is 1.034 sigma_0 here, and 7.5 sigma_0 for other photos."""
    x = example_image()[..., :48, :48].clone()
    x[..., :20, :], x[..., :12] = 0, 0  # black, where the network's errors grow fastest
    problem = InverseProblem.simulate(make_operator("deblur_uniform", (3, 48, 48)), x, 0.006, seed=0)
    result = restore(problem, load_prior("natural"), samples=1, nfe=200, seed=0)
    ratio = result.faithfulness().std_ratio
    assert ratio is not None
    assert abs(float(ratio) - 1) < 0.02


@pytest.mark.parametrize("sigma_0", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("name", ["deblur_uniform", "deblur_motion", "sr2", "cs4"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_precise_measurements_leave_no_more_open_than_they_should(name, sigma_0, dtype):
    """A blur hides some frequencies and not others: with 3 steps of its solver the last draw was up to 6.7 times too
    wide there, and 1.46 times on the whole. 200 samples, whose standard deviation in all errs by about 0.03.
    """
    prior = StationaryGaussian.natural((1, 16, 16)).to(dtype)
    double = StationaryGaussian.natural((1, 16, 16)).as_gaussian().double()
    truth = double.sample(1, seed=3)
    exact = InverseProblem.simulate(make_operator(name, (1, 16, 16)).double(), truth, sigma_0, seed=4)
    problem = InverseProblem(make_operator(name, (1, 16, 16)).to(dtype), exact.y.to(dtype), sigma_0)
    posterior = double.posterior(exact)
    samples = fast(problem, prior, nfe=50, samples=200).double()
    variances, axes = torch.linalg.eigh(posterior.covariance)
    white = (samples.flatten(1) - posterior.mean.flatten()) @ axes / variances.sqrt()
    assert white.var(0).mean().sqrt() == pytest.approx(1, abs=0.05)
    assert white.var(0).max().sqrt() < 1.35  # of 200 exact samples: 1.13 or so
    assert (samples.var(0).sum() / posterior.covariance.trace()).sqrt() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("sigma_0", [0.0021, 0.0019, 0.001])
def test_a_prior_narrower_than_the_noise_is_not_forgotten(sigma_0):
    """A smooth Gaussian: its finest coordinates have less variance than the smallest noise level of the sampler."""
    frequencies = torch.fft.fftfreq(32, dtype=torch.float64)
    squared = (frequencies[:, None] ** 2 + frequencies**2).clamp(min=1 / 32**2)
    spectrum = squared**-2.5
    prior = StationaryGaussian(0.5, spectrum / spectrum.mean() * 0.25**2, 1).double()
    problem = InverseProblem.simulate(make_operator("denoise", (1, 32, 32)), prior.sample(1, seed=3), sigma_0, seed=4)
    samples = fast(problem, prior, nfe=30, samples=40)[:, 0]
    exact = prior.denoise(problem.y, sigma_0)[0]
    variance = (prior.variances / (prior.variances + sigma_0**2)).mean() * sigma_0**2
    off = float(((samples.mean(0) - exact).square().mean() / variance).sqrt())
    assert off < 0.19  # 40 exact samples: 0.158 ± 0.004; y itself in place of D has 0.27 and more
