"""What the benchmarks measure with, on laws that are known by hand: distances, modes, bands of frequencies, ranks."""

from __future__ import annotations

import math

import pytest
import torch

from scripts import ROOT, load_script
from snips import InverseProblem, make_operator
from snips.operators import Zero
from snips.priors import GaussianMixture, StationaryGaussian
from snips.priors.stationary import SolvedPosterior

exact_priors = load_script(ROOT / "benchmarks" / "exact_priors.py")
stationary = load_script(ROOT / "benchmarks" / "stationary.py")


def test_the_distance_of_a_shifted_set_is_the_shift():
    """Along unit directions a shift d is |d cos|, whose mean square over directions in 64 dimensions is |d|^2 / 64."""
    axes = torch.eye(64, dtype=torch.float64)  # all directions at once
    a = torch.randn(200, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shift = torch.linspace(-1, 1, 64, dtype=torch.float64)
    assert exact_priors.distance(a, a + shift, axes) == pytest.approx(float(shift.norm()) / 8)
    assert exact_priors.distance(a, a.flip(0), axes) == 0  # the same set


def test_directions_are_unit_vectors():
    found = exact_priors.directions(64, seed=3)
    torch.testing.assert_close(found.norm(dim=0), torch.ones(exact_priors.PROJECTIONS))


def two_modes(weights: tuple[float, float]) -> GaussianMixture:
    """Eight times eight pixels around 0.2 or around 0.8, standard deviation 0.01."""
    means = torch.stack([torch.full((64,), level, dtype=torch.float64) for level in (0.2, 0.8)])
    covariances = (1e-4 * torch.eye(64, dtype=torch.float64)).repeat(2, 1, 1)
    return GaussianMixture(torch.tensor(weights, dtype=torch.float64), means, covariances, (1, 8, 8))


def test_samples_of_one_mode_of_two_have_wrong_weights():
    posterior = two_modes((0.3, 0.7))
    dark = torch.full((10, 1, 8, 8), 0.2)
    assert exact_priors.mode_error(dark, posterior) == pytest.approx(0.7)
    assert exact_priors.mode_error(torch.cat([dark[:3], dark[:7] + 0.6]), posterior) == pytest.approx(0, abs=1e-6)


def test_wider_and_shifted_samples_are_told_as_such():
    """Exact samples are 1 in every respect; twice the deviation, or a shift of one deviation, are told as that.

    1,000 samples of 64 pixels: ratios within 5 standard errors.
    """
    prior, seed = two_modes((1 - 1e-9, 1e-9)), 0
    projections = exact_priors.directions(64, seed)
    case = exact_priors.make_case(prior, "denoise", 0.01, seed, projections, samples=1000)
    again = exact_priors.exact_again(case, seed)
    found = exact_priors.compare(case, again, projections)
    assert found["ratio"] == pytest.approx(1, abs=0.1)
    assert found["std_ratio"] == pytest.approx(1, abs=0.02)
    assert found["mean_error"] < 0.05
    centre = torch.stack([posterior.mean for posterior in case.posteriors])
    wider = exact_priors.compare(case, centre + 2 * (again - centre), projections)
    assert wider["std_ratio"] == pytest.approx(2, abs=0.04)
    assert wider["ratio"] > 5
    std = float(again.std(0).mean())
    shifted = exact_priors.compare(case, again + std, projections)
    assert shifted["mean_error"] == pytest.approx(1, abs=0.05)
    assert shifted["std_ratio"] == pytest.approx(found["std_ratio"])


def test_exact_samples_differ_from_case_to_case():
    prior, projections = two_modes((0.5, 0.5)), exact_priors.directions(64, 0)
    cases = [exact_priors.make_case(prior, name, 0.1, 0, projections, samples=10) for name in ("denoise", "inpaint")]
    first, second = (exact_priors.exact_again(case, 0) - case.posteriors[0].mean for case in cases)
    assert (first - second).abs().min() > 0


def test_each_frequency_is_in_one_band():
    bands = torch.stack([stationary.in_band(band) for band in stationary.BANDS])
    assert (bands.sum(0) == 1).all()
    rows = torch.arange(stationary.SIZE, dtype=torch.float64)
    wave = torch.cos(2 * math.pi * 3 * rows / stationary.SIZE)[:, None].expand(-1, stationary.SIZE)
    power = stationary.band_powers(wave[None, None])[0]
    torch.testing.assert_close(power[2], wave.square().sum())  # 3 cycles lie in 2 .. 4
    assert power.sum() == pytest.approx(float(power[2]))


@pytest.mark.parametrize("channels", [1, 3])
def test_the_exact_variance_of_a_band_without_measurements_is_the_priors(channels):
    shape = (channels, stationary.SIZE, stationary.SIZE)
    prior = StationaryGaussian.natural(shape)
    problem = InverseProblem(Zero(shape), torch.zeros(1, 0), 0.1)
    for band in stationary.BANDS[:2]:
        expected = prior.variances.double().sum(0)[stationary.in_band(band)].sum()
        found = stationary.solved_variance(SolvedPosterior(prior, problem), shape, band)
        assert found == pytest.approx(float(expected), rel=1e-5)


def test_a_measured_band_has_the_variance_of_wiener():
    """Denoising: P sigma_0^2 / (P + sigma_0^2) for each coefficient."""
    shape = (1, stationary.SIZE, stationary.SIZE)
    prior = StationaryGaussian.natural(shape)
    problem = InverseProblem.simulate(make_operator("denoise", shape), prior.sample(1), 0.1, seed=0)
    P = prior.variances.double()[0][stationary.in_band((1, 2))]
    found = stationary.solved_variance(SolvedPosterior(prior, problem), shape, (1, 2))
    assert found == pytest.approx(float((P * 0.01 / (P + 0.01)).sum()), rel=1e-4)
