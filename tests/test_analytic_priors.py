"""The exact priors: denoisers against integration by sampling, posteriors against Bayes' rule."""

from __future__ import annotations

import math

import pytest
import torch

from snips import InverseProblem, make_operator
from snips.operators import Dense
from snips.priors import Gaussian, GaussianMixture, StationaryGaussian
from snips.priors.stationary import SolvedPosterior


def log_likelihood(problem: InverseProblem, x: torch.Tensor) -> torch.Tensor:
    residual = (problem.y - problem.operator(x)).flatten(1)
    return -residual.square().sum(1) / (2 * problem.sigma_0**2)


def test_denoiser_is_the_posterior_mean_of_denoising(mixture):
    """E[x | x + sigma n] is also the posterior mean for H = I, which takes another way through the code."""
    x = mixture.sample(1, seed=1)
    problem = InverseProblem.simulate(make_operator("denoise", (1, 4, 4)), x, 0.3, seed=2)
    torch.testing.assert_close(mixture.denoise(problem.y, 0.3)[0], mixture.posterior(problem).mean)


def test_denoiser_by_importance_sampling(mixture):
    """200,000 draws of the prior, weighted by the likelihood; agreement within 5 standard errors."""
    noisy = mixture.sample(1, seed=1) + 2 * torch.randn(1, 1, 4, 4)
    draws = mixture.sample(200_000, seed=2)
    weight = torch.softmax(-((draws - noisy) ** 2).flatten(1).sum(1) / (2 * 2.0**2), 0)
    assert 1 / weight.square().sum() > 1000  # the draws do cover the posterior
    estimate = torch.einsum("n,nchw->chw", weight, draws)
    spread = torch.einsum("n,nchw->chw", weight**2, (draws - estimate) ** 2).sqrt()
    assert ((mixture.denoise(noisy, 2.0)[0] - estimate).abs() < 5 * spread).all()


def test_score_is_the_gradient_of_the_log_density(mixture):
    """Of the mixture with sigma^2 added to each covariance, by automatic differentiation."""
    sigma = 0.4
    blurred = GaussianMixture(
        mixture.weights, mixture.means, mixture.covariances + sigma**2 * torch.eye(16), (1, 4, 4)
    ).double()
    x = mixture.sample(3, seed=5).requires_grad_()
    (gradient,) = torch.autograd.grad(blurred.log_density(x).sum(), x)
    torch.testing.assert_close(mixture.score(x, sigma).detach(), gradient)


def test_one_sigma_for_each_image(mixture):
    x = mixture.sample(3, seed=5)
    sigmas = torch.tensor([0.1, 0.5, 2.0], dtype=torch.float64)
    one_by_one = torch.cat([mixture.denoise(x[i : i + 1], float(sigmas[i])) for i in range(3)])
    torch.testing.assert_close(mixture.denoise(x, sigmas), one_by_one)
    with pytest.raises(ValueError, match="sigma has shape"):
        mixture.denoise(x, sigmas[:2])


def test_precision_follows_the_image(mixture):
    """An exact prior is exact in the precision of what it is given, whatever it was given before."""
    x = mixture.sample(2, seed=5)
    expected = mixture.denoise(x, 0.3)
    single = mixture.denoise(x.float(), 0.3)
    assert single.dtype == torch.float32
    torch.testing.assert_close(mixture.denoise(x, 0.3), expected, rtol=0, atol=1e-14)


def test_sample_moments(mixture):
    """40,000 draws against mean and covariance; 5 standard errors (false alarms: fewer than 1 in 1,000)."""
    draws = mixture.sample(40_000, seed=0).flatten(1)
    error = draws.mean(0) - mixture.mean.flatten()
    assert (error.abs() < 5 * (mixture.covariance.diagonal() / 40_000).sqrt()).all()
    ratio = draws.var(0) / mixture.covariance.diagonal()
    assert ((ratio - 1).abs() < 5 * math.sqrt(3 / 40_000)).all()


@pytest.mark.parametrize("name", ["denoise", "deblur_uniform", "sr2", "cs4", "mri", "inpaint"])
def test_posterior_is_prior_times_likelihood(name, mixture):
    """log p(x) + log p(y | x) - log p(x | y) is the same for every x."""
    problem = InverseProblem.simulate(make_operator(name, (1, 4, 4)), mixture.sample(1, seed=3), 0.2, seed=4)
    posterior = mixture.posterior(problem)
    x = torch.cat([mixture.sample(4, seed=6), posterior.sample(4, seed=7)])
    evidence = mixture.log_density(x) + log_likelihood(problem, x) - posterior.log_density(x)
    torch.testing.assert_close(evidence, evidence[:1].expand(8), rtol=0, atol=1e-8)


def test_posterior_for_more_measurements_than_pixels(mixture):
    matrix = torch.randn(20, 16, dtype=torch.float64)
    problem = InverseProblem.simulate(Dense(matrix, (1, 4, 4)), mixture.sample(1), 0.2, seed=4)
    posterior, x = mixture.posterior(problem), mixture.sample(5, seed=6)
    evidence = mixture.log_density(x) + log_likelihood(problem, x) - posterior.log_density(x)
    torch.testing.assert_close(evidence, evidence[:1].expand(5), rtol=0, atol=1e-7)


@pytest.mark.parametrize("matrix", [torch.randn(5, 16), torch.eye(16)[:4].repeat(2, 1)], ids=["wide", "repeated rows"])
def test_noiseless_posterior_meets_the_measurement(matrix, mixture):
    problem = InverseProblem.simulate(Dense(matrix, (1, 4, 4)), mixture.sample(1), 0.0, seed=4)
    posterior = mixture.posterior(problem)
    assert (problem.operator(posterior.sample(10)) - problem.y).abs().max() < 1e-6
    with pytest.raises(ValueError, match="singular"):
        posterior.log_density(mixture.sample(1))


@pytest.mark.parametrize("sigma_0", [0.0, 1e-12, 1e-10, 1e-8, 1e-4])
@pytest.mark.parametrize("name", ["denoise", "deblur_uniform", "mri", "sr2"])
def test_posterior_at_any_noise(name, sigma_0, mixture):
    """Towards sigma_0 = 0 the covariance in measured directions falls as sigma_0^2, and nothing breaks."""
    problem = InverseProblem.simulate(make_operator(name, (1, 4, 4)), mixture.sample(1, seed=3), sigma_0, seed=4)
    posterior = mixture.posterior(problem)
    H = problem.operator.as_matrix()
    spread = (H @ posterior.covariance @ H.T).diagonal()
    assert (spread <= (1.01 * sigma_0) ** 2 + 1e-15).all()
    assert (problem.operator(posterior.mean[None]) - problem.y).abs().max() < 10 * sigma_0 + 1e-9


def test_posterior_of_one_measurement_at_a_time(mixture):
    problem = InverseProblem.simulate(make_operator("sr2", (1, 4, 4)), mixture.sample(2), 0.1, seed=0)
    with pytest.raises(ValueError, match="of one measurement"):
        mixture.posterior(problem)
    first = InverseProblem(problem.operator, problem.y[:1], problem.sigma_0)
    torch.testing.assert_close(mixture.posterior(problem[:1]).mean, mixture.posterior(first).mean)


@pytest.fixture(scope="module")
def stationary() -> StationaryGaussian:
    return StationaryGaussian.natural((3, 6, 8)).double()


def test_stationary_is_the_dense_gaussian(stationary):
    dense = stationary.as_gaussian().double()
    x = stationary.sample(3, seed=0)
    for sigma in (0.01, 0.3, 20.0):
        torch.testing.assert_close(stationary.denoise(x, sigma), dense.denoise(x, sigma))
    assert dense.covariance.diagonal().mean() == pytest.approx(0.25**2)


def test_stationary_samples_have_its_covariance(stationary):
    """20,000 draws; 5 standard errors on 144 variances (false alarms: fewer than 1 in 1,000)."""
    variance = stationary.sample(20_000).flatten(1).var(0) / stationary.as_gaussian().double().covariance.diagonal()
    assert ((variance - 1).abs() < 5 * math.sqrt(2 / 20_000)).all()


@pytest.mark.parametrize("name", ["deblur_uniform", "cs4", "mri", "colorize"])
def test_solved_posterior_is_the_dense_one(name, stationary):
    problem = InverseProblem.simulate(make_operator(name, (3, 6, 8)), stationary.sample(1, seed=1), 0.1, seed=2)
    dense, solved = stationary.posterior(problem), SolvedPosterior(stationary, problem)
    torch.testing.assert_close(solved.mean, dense.mean, atol=1e-8, rtol=0)
    draws = solved.sample(4_000, seed=0).flatten(1)
    assert ((draws.var(0) / dense.covariance.diagonal() - 1).abs() < 5 * math.sqrt(2 / 4_000)).all()
    shift = (draws.mean(0) - dense.mean.flatten()).abs()
    assert (shift < 5 * (dense.covariance.diagonal() / 4_000).sqrt()).all()
    torch.testing.assert_close(solved.covariance, dense.covariance, atol=1e-10, rtol=0)
    x = stationary.sample(2)
    torch.testing.assert_close(solved.log_density(x), dense.log_density(x))
    moved = (dense.covariance @ x.flatten(1).T).T.reshape(x.shape)
    torch.testing.assert_close(solved.apply_covariance(x), moved, atol=1e-8, rtol=0)


def test_solved_posterior_draws_are_independent_between_seeds(stationary):
    problem = InverseProblem.simulate(make_operator("denoise", (3, 6, 8)), stationary.sample(1, seed=1), 0.1, seed=2)
    solved = SolvedPosterior(stationary, problem)
    draws = torch.stack([(solved.sample(200, seed) - solved.mean).flatten() for seed in range(3)])
    assert torch.corrcoef(draws).fill_diagonal_(0).abs().max() < 0.03  # 28,800 values: 5 standard errors


def test_large_images_take_the_solver():
    prior = StationaryGaussian.natural((3, 64, 64))
    problem = InverseProblem.simulate(make_operator("sr4", (3, 64, 64)), prior.sample(1), 0.1, seed=0)
    posterior = prior.posterior(problem)
    assert isinstance(posterior, SolvedPosterior)
    assert posterior.mean.dtype == torch.float32
    assert (posterior.mean - problem.truth[0]).std() < (prior.mean - problem.truth[0]).std()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian(torch.zeros(4), torch.eye(3), (1, 2, 2)), "shapes"),
        (lambda: Gaussian(torch.zeros(4), -torch.eye(4), (1, 2, 2)), "negative eigenvalues"),
        (lambda: Gaussian(torch.full((4,), math.nan), torch.eye(4), (1, 2, 2)), "finite"),
        (lambda: GaussianMixture([1.0, 0.0], torch.zeros(2, 4), torch.eye(4).expand(2, 4, 4), (1, 2, 2)), "positive"),
        (lambda: StationaryGaussian(0.5, -torch.ones(4, 4), 1), "power spectrum"),
        (lambda: StationaryGaussian(0.5, torch.rand(4, 4), 1), "even"),
        (lambda: StationaryGaussian(torch.zeros(2), torch.ones(4, 4), 3), "one for each channel"),
        (lambda: StationaryGaussian("grey", torch.ones(4, 4), 3), "the mean must be an array of numbers"),
        (lambda: StationaryGaussian(0.5, torch.ones(4, 4), 2, [[1.0]]), "2 channels need a finite covariance"),
        (lambda: StationaryGaussian(0.5, torch.ones(4, 4), 0), "0 channels|covariance"),
        (lambda: StationaryGaussian(0.5, torch.ones(4, 4), 2, [[1.0, 0.9], [0.1, 1.0]]), "must be symmetric"),
        (lambda: StationaryGaussian(0.5, torch.ones(4, 4), 2, [[1.0, 2.0], [2.0, 1.0]]), "negative eigenvalues"),
    ],
)
def test_bad_parameters(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_lists_are_covariances_too():
    listed = StationaryGaussian([0.1, 0.2], torch.ones(4, 4), 2, [[1.0, 0.5], [0.5, 1.0]])
    given = StationaryGaussian(
        torch.tensor([0.1, 0.2], dtype=torch.float64), torch.ones(4, 4), 2, torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    )
    assert torch.equal(listed.double().mean, given.double().mean)
    assert torch.equal(listed.rotation, given.rotation)


def test_a_dense_covariance_that_does_not_fit_is_refused():
    prior = StationaryGaussian.natural((3, 256, 256))
    problem = InverseProblem(make_operator("sr4", (3, 256, 256)), torch.zeros(1, 3, 64, 64), 0)
    for build in (prior.as_gaussian, lambda: prior.posterior(problem)):
        with pytest.raises(ValueError, match="dense covariance of 196608 values needs .* GiB .* sigma_0 > 0"):
            build()


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 64, 1), (1, 4, 8)])
def test_images_of_another_shape_are_refused(shape):
    priors = [StationaryGaussian.natural((1, 8, 8)), Gaussian(torch.zeros(64), torch.eye(64), (1, 8, 8))]
    for prior in priors:
        with pytest.raises(ValueError, match=r"\(1, 8, 8\), not"):
            prior.denoise(torch.zeros(2, *shape), 0.1)
