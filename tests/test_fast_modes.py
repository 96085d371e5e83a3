"""The fast sampler with mixtures of Gaussians, whose posteriors are known: modes have their weights."""

from __future__ import annotations

import pytest
import torch

from snips import InverseProblem, make_operator
from snips.priors import GaussianMixture, StationaryGaussian
from snips.samplers import fast

PATCH = (1, 8, 8)
EDGE = torch.linspace(-1, 1, 8, dtype=torch.float64).sign()


@pytest.fixture(scope="module")
def patches() -> GaussianMixture:
    """As patches of photographs: quiet ones, and livelier ones with an edge down or across; spectra of photographs."""
    flat = torch.zeros(8, 8, dtype=torch.float64)
    means = 0.5 + 0.1 * torch.stack([flat, flat + EDGE, flat + EDGE[:, None]]).flatten(1)
    covariance = StationaryGaussian.natural(PATCH).as_gaussian().double().covariance
    strengths = torch.tensor([0.25, 0.5, 0.5], dtype=torch.float64)[:, None, None]
    covariances = strengths * covariance + 1e-4 * torch.eye(64, dtype=torch.float64)
    return GaussianMixture(torch.tensor([0.5, 0.25, 0.25]), means, covariances, PATCH).double()


def shares(samples: torch.Tensor, posterior: GaussianMixture) -> torch.Tensor:
    """Of samples (n, C, H, W) in each component."""
    eigenvalues, _ = posterior.eigen()
    return torch.softmax(posterior._log_joint(posterior._rotate(samples), eigenvalues[:, None]), 0).mean(1)


def errors(problem: InverseProblem, prior: GaussianMixture, slack: float, **options) -> torch.Tensor:
    """Of the weights with 100 calls and 1,000 samples, over what is allowed: 4 standard errors and `slack` on top."""
    posterior = prior.posterior(problem)
    exact = posterior.weights
    assert exact.max() < 0.9
    found = shares(fast(problem, prior, nfe=100, samples=1000, **options)[:, 0], posterior)
    return (found - exact).abs() / (4 * (exact * (1 - exact) / 1000).sqrt() + slack)


def measured(name: str, down: float, across: float) -> InverseProblem:
    truth = 0.5 + down * EDGE + across * EDGE[:, None]
    return InverseProblem.simulate(make_operator(name, PATCH).double(), truth.reshape(1, *PATCH), 0.1, seed=4)


@pytest.mark.parametrize(("name", "down", "across"), [("sr4", 0.15, 0.0), ("cs4", 0.1, 0.1), ("cs8", 0.1, 0.1)])
def test_modes_of_patches_have_their_weights(name, down, across, patches):
    """With the guide, and edges that leave each of the three components 5 % or more: 2 % on top."""
    problem = measured(name, down, across)
    assert patches.posterior(problem).weights.min() > 0.05
    assert errors(problem, patches, slack=0.02).max() < 1


def test_the_guide_brings_few_calls_closer(patches):
    """25 calls for random projections: weights are wrong by 0.10 with it and by 0.16 without; 1,000 samples know that
    to 0.015."""
    problem = measured("cs8", 0.1, 0.1)
    posterior, wrong = patches.posterior(problem), []
    for guided in (True, False):
        samples = fast(problem, patches, nfe=25, samples=1000, guided=guided)[:, 0]
        wrong.append(float((shares(samples, posterior) - posterior.weights).abs().sum() / 2))
    assert wrong[0] < 0.8 * wrong[1]


def test_modes_unlike_photographs_have_their_weights(mixture):
    """These components are white noise of a standard deviation above 1: without the guide, 5 % on top."""
    mask = torch.arange(16).reshape(4, 4) == 5
    operator = make_operator("inpaint", mixture.image_shape, mask=mask)
    problem = InverseProblem.simulate(operator, mixture.sample(1, seed=3), 0.1, seed=4)
    assert errors(problem, mixture, slack=0.05, guided=False).max() < 1
