"""RED, against the linear system that it solves where the denoiser is linear."""

from __future__ import annotations

import math

import pytest
import torch

from snips.images import example_image, luminance
from snips.priors import Gaussian, Prior
from snips.problems import InverseProblem, make_operator
from snips.samplers.red import GreyPrior, red, red_luminance

SHAPE, PIXELS = (1, 6, 6), 36


@pytest.fixture
def prior() -> Gaussian:
    """A smooth Gaussian around grey: its denoiser is affine."""
    place = torch.cartesian_prod(torch.arange(6.0), torch.arange(6.0)).double()
    covariance = 0.02 * torch.exp(-torch.cdist(place, place) / 3) + 1e-3 * torch.eye(PIXELS)
    return Gaussian(torch.full((PIXELS,), 0.5, dtype=torch.float64), covariance, SHAPE).double()


@pytest.fixture
def problem(prior) -> InverseProblem:
    x = 0.5 + 0.1 * torch.randn(1, *SHAPE, dtype=torch.float64).clamp(-2, 2)
    return InverseProblem.simulate(make_operator("deblur_uniform", SHAPE, width=3), x, 0.05, seed=0)


def test_it_ends_where_the_gradient_vanishes(prior, problem):
    """(H^T H / sigma_0^2 + weight (I - W)) x = H^T y / sigma_0^2 + weight b, for f(x) = W x + b."""
    weight, sigma = 300.0, 0.05
    H = problem.operator.as_matrix()
    b = prior.denoise(torch.zeros(1, *SHAPE, dtype=torch.float64), sigma).flatten()
    basis = torch.eye(PIXELS, dtype=torch.float64).reshape(PIXELS, *SHAPE)
    W = (prior.denoise(basis, sigma).flatten(1) - b).mT
    left = H.mT @ H / problem.sigma_0**2 + weight * (torch.eye(PIXELS) - W)
    expected = torch.linalg.solve(left, H.mT @ problem.y.flatten() / problem.sigma_0**2 + weight * b)
    assert ((expected > 0) & (expected < 1)).all()
    found = red(problem, prior, weight=weight, iterations=3000, denoiser_sigma=sigma)
    torch.testing.assert_close(found.flatten(), expected, atol=1e-6, rtol=0)


def test_one_step_by_hand(prior, problem):
    H, y, sigma_0, weight = problem.operator, problem.y.clamp(0, 1), problem.sigma_0, 70.0
    gradient = H.adjoint(H(y) - problem.y) / sigma_0**2 + weight * (y - prior.denoise(y, 0.02))
    expected = (y - 2 / (1 / sigma_0**2 + weight) * gradient).clamp(0, 1)
    torch.testing.assert_close(red(problem, prior, weight=weight, iterations=1, denoiser_sigma=0.02), expected)


class Halving(Prior):
    """Moves halfway to grey, and remembers what it was asked."""

    def denoise(self, x, sigma):
        self.asked = (x.shape[1], float(sigma))
        return 0.5 * (x + 0.5)


def test_colours_stay_those_of_the_measurement():
    """Far from the borders of [0, 1], so that nothing is clamped."""
    x = 0.35 + 0.3 * example_image()
    problem = InverseProblem.simulate(make_operator("deblur_uniform", (3, 64, 64)), x, 0.01, seed=0)
    found = red_luminance(problem, Halving(), weight=50.0, iterations=10)
    difference = found - problem.y
    torch.testing.assert_close(difference, difference[:, :1].expand_as(found), atol=1e-6, rtol=0)
    operator = make_operator("deblur_uniform", (1, 64, 64))
    grey = red(InverseProblem(operator, luminance(problem.y), 0.01), Halving(), weight=50.0, iterations=10)
    torch.testing.assert_close(luminance(found), grey, atol=1e-6, rtol=0)
    assert difference.abs().max() > 0.01


def test_a_grey_image_is_shown_to_a_colour_denoiser():
    inner = Halving()
    found = GreyPrior(inner).denoise(torch.full((2, 1, 4, 4), 0.9), 0.1)
    assert found.shape == (2, 1, 4, 4)
    torch.testing.assert_close(found, torch.full((2, 1, 4, 4), 0.7))
    assert inner.asked == (3, pytest.approx(0.1 * math.sqrt(3)))


@pytest.mark.parametrize(
    ("name", "sigma_0", "options", "message"),
    [
        ("sr2", 0.1, {"weight": 1.0}, "full size"),
        ("denoise", 0.0, {"weight": 1.0}, "above 0"),
        ("denoise", 0.1, {"weight": -1.0}, "weight >= 0"),
        ("denoise", 0.1, {"weight": 1.0, "iterations": 0}, "at least 1"),
    ],
)
def test_bad_input_is_named(name, sigma_0, options, message):
    problem = InverseProblem.simulate(make_operator(name, (3, 8, 8)), torch.full((1, 3, 8, 8), 0.5), sigma_0)
    with pytest.raises(ValueError, match=message):
        red(problem, Halving(), **options)


def test_luminance_needs_channels_that_are_treated_alike():
    problem = InverseProblem.simulate(make_operator("colorize", (3, 8, 8)), torch.full((1, 3, 8, 8), 0.5), 0.1)
    with pytest.raises(ValueError, match="channels"):
        red_luminance(problem, Halving(), weight=1.0)
