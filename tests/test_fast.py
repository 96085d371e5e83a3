"""The fast sampler against exact laws: posteriors, single steps, and what its guide finds."""

from __future__ import annotations

import math

import pytest
import torch

from sampler_cases import SHAPE, N, chains, directions, operators, random_gaussian
from snips import InverseProblem, make_operator
from snips.metrics.faithfulness import faithfulness
from snips.operators import Zero
from snips.priors import Gaussian, Prior, StationaryGaussian
from snips.samplers import fast, fast_steps, matrix_free_steps
from snips.samplers.conditional import Coordinates
from snips.samplers.guidance import COUNT, Guide, Photographs
from snips.samplers.predictor_corrector import correct, predict
from snips.streams import Streams


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    return random_gaussian()


@pytest.fixture(scope="module")
def natural() -> Gaussian:
    return StationaryGaussian.natural(SHAPE).as_gaussian().double()


@pytest.fixture(scope="module")
def extremes(natural) -> tuple[float, float]:
    """The smallest and the largest `directions` of 200 sets of 1,000 exact samples; the same for all Gaussian laws."""
    sets = torch.stack([directions(natural.sample(1000, seed=seed), natural) for seed in range(200)])
    return float(sets.min()), float(sets.max())


@pytest.mark.parametrize(("sigma_0", "nfe"), [(0.1, 100), (0.02, 100), (0.001, 200)])
@pytest.mark.parametrize("name", ["zero", "deblur_uniform", "sr2", "cs4", "inpaint", "denoise", "deblur_motion", "mri"])
def test_moments_are_the_posteriors(name, sigma_0, nfe, natural, extremes):
    """1,000 samples; very precise measurements take more calls. A perfect sampler fails once in 500 (4 standard errors
    of each pixel's mean and variance, 32 numbers); 5 % of the standard deviation and 8 % of the variance are allowed
    on top. In no direction may the variance leave the extremes of exact sets by more than 5 %, nor in the mean over
    all directions, which 1,000 samples know to 1.1 %, be wrong by that."""
    problem = InverseProblem.simulate(dict(operators())[name], natural.sample(1, seed=3), sigma_0, seed=4)
    posterior = natural.posterior(problem)
    samples = fast(problem, natural, nfe=nfe, samples=1000)
    mean, variance = moments(samples, posterior)
    assert mean.abs().max() < 4 / math.sqrt(1000) + 0.05
    assert (variance - 1).abs().max() < 4 * math.sqrt(2 / 1000) + 0.08
    found, (smallest, largest) = directions(samples, posterior), extremes
    assert abs(float(found.mean()) - 1) < 0.05
    assert found[0] > 0.95 * smallest
    assert found[-1] < 1.05 * largest


@pytest.mark.parametrize("sigma_0", [0.02, 0.001, 1e-5])
@pytest.mark.parametrize("name", ["denoise", "inpaint", "sr2", "cs4"])
def test_samples_are_faithful_at_low_noise(name, sigma_0):
    """Residuals of the size of the noise, however small it is: also where it is far below the last level.

    The smallest of these measurements, cs4, has 256 numbers: 0.12 is 2.7 standard errors of a residual's deviation. Two
    of the 8 samples may fail the test, as one in twenty exact ones does.
    """
    prior = StationaryGaussian.natural((1, 32, 32)).double()
    problem = InverseProblem.simulate(make_operator(name, (1, 32, 32)), prior.sample(1, seed=3), sigma_0, seed=4)
    found = faithfulness(problem, fast(problem, prior, nfe=50, samples=8))
    assert (found.std_ratio - 1).abs().max() < 0.12
    assert found.faithful.double().mean() >= 0.75


@pytest.mark.parametrize("sampler_steps", [fast_steps, matrix_free_steps])
def test_a_first_level_that_is_corrected_keeps_its_variance(sampler_steps):
    """Without a measurement the first image is N(1/2, sigma^2) for a denoiser that knows nothing but grey; and so is
    the next. 2,000 chains of 16 pixels: 5 standard errors."""
    problem = InverseProblem(Zero(SHAPE).double(), torch.zeros(1, 0, dtype=torch.float64), 0.1)
    grey = Fixed(torch.full((1, *SHAPE), 0.5, dtype=torch.float64))
    for info in sampler_steps(problem, grey, chains(2000), sigmas=torch.tensor([2.0, 2.0, 2.0, 2.0])):
        if info.step < 4:
            assert float(info.state.x.var()) == pytest.approx(4, rel=5 * math.sqrt(2 / 32_000))


def moments(samples: torch.Tensor, posterior) -> tuple[torch.Tensor, torch.Tensor]:
    """The error of each pixel's mean in posterior standard deviations, and its variance over the posterior's."""
    x, std = samples.flatten(1), posterior.covariance.diagonal().sqrt()
    return (x.mean(0) - posterior.mean.flatten()) / std, x.var(0) / std**2


@pytest.mark.parametrize("name", ["cs4", "sr2", "inpaint"])
def test_means_in_place_of_draws_would_be_seen(name, natural, monkeypatch):
    """Where y is so precise that coordinates are hidden to the end, they lose 28 to 76 % of the variance."""
    monkeypatch.setattr(Guide, "draw", lambda guide, x, denoised, streams, **_: guide.mean(x, denoised))
    problem = InverseProblem.simulate(dict(operators())[name], natural.sample(1, seed=3), 0.001, seed=4)
    found = directions(fast(problem, natural, nfe=200, samples=1000), natural.posterior(problem))
    assert float(found.mean()) < 0.8


def test_a_prior_unlike_photographs_is_reached_with_more_calls(prior):
    """The guide's model is wrong here; the levels where nothing is hidden make up for it."""
    problem = InverseProblem.simulate(make_operator("cs4", SHAPE), prior.sample(1, seed=3), 0.1, seed=4)
    posterior, errors = prior.posterior(problem), []
    for nfe in (8, 40, 200):
        mean, variance = moments(fast(problem, prior, nfe=nfe, samples=500), posterior)
        errors.append(float(mean.norm() + (variance - 1).norm()))
    assert errors == sorted(errors, reverse=True)
    assert errors[2] < 0.5 * errors[0]


def test_corrections_alone_keep_the_posterior_of_the_noisy_image(natural):
    """From the start to the exact law by corrections at one level, without bias of the variance for all their size.

    2,000 chains, 16 means and variances: a correct one fails once in 4,000 (4.5 standard errors).
    """
    problem = InverseProblem.simulate(make_operator("deblur_uniform", SHAPE), natural.sample(1, seed=3), 0.5, seed=4)
    sigma, K = 0.4, 2000
    steps = fast_steps(problem, natural, chains(K), sigmas=torch.full((102,), sigma))
    x = next(info.state.x for info in steps if info.step == 100).flatten(1)
    noisy = natural.covariance + sigma**2 * torch.eye(N)
    # y is H times the noisy image plus noise of covariance sigma_0^2 I - sigma^2 H H^T
    H = problem.operator.as_matrix()
    gain = noisy @ H.T @ torch.linalg.inv(H @ noisy @ H.T + problem.sigma_0**2 * torch.eye(N) - sigma**2 * H @ H.T)
    mean = natural.mean.flatten() + gain @ (problem.y.flatten() - H @ natural.mean.flatten())
    variance = (noisy - gain @ H @ noisy).diagonal()
    assert ((x.mean(0) - mean).abs() < 4.5 * (variance / K).sqrt()).all()
    assert ((x.var(0) / variance - 1).abs() < 4.5 * math.sqrt(2 / K)).all()


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("name", ["sr2", "deblur_motion", "mri", "dense"])
def test_a_prediction_from_the_truth_has_the_next_levels_law(name, corrected):
    """Given x and y, the noisy image is N(m, A) before and N(m', A') after, for every coordinate and any k.

    And after a correction too. 4,000 chains, error rate below 1 in 1,000.
    """
    operator = dict(operators())[name].double()
    truth = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    problem = InverseProblem.simulate(operator, truth, 0.1, seed=4)
    K = 4000
    coordinates, streams = Coordinates(problem, chains(K)), Streams(1, chains(K))
    state = next(fast_steps(problem, Fixed(truth), chains(K), sigmas=torch.tensor([0.13, 0.13]))).state
    truth_bar = operator.Vt(truth.expand(K, *SHAPE))
    level, following = coordinates.at(0.13), coordinates.at(0.09)
    noise_bar = level.variance.sqrt() * coordinates.white(streams.normal(state.x))
    state.x = operator.V(level.mean(truth_bar) + noise_bar)
    x_bar = predict(coordinates, level, following, truth_bar, state, corrected)
    for _ in range(1 + corrected):
        error = (x_bar - following.mean(truth_bar)).abs().square().mean(0)
        expected = following.variance.expand(error.shape)
        open_ones = expected > 1e-12
        assert (error[open_ones] / expected[open_ones] - 1).abs().max() < 5 * math.sqrt(2 / K)
        assert error[~open_ones].sum() < 1e-9
        if corrected:
            x_bar = correct(coordinates, following, truth_bar, state)


class Fixed(Prior):
    """Knows the image already."""

    def __init__(self, image):
        super().__init__()
        self.image = image

    def denoise(self, x, sigma):
        return self.image.expand_as(x).clone()


@pytest.mark.parametrize("sigma", [0.02, 0.3, 5.0])
def test_the_strength_of_each_octave_is_found(sigma):
    """The denoiser of N(1/2, a V) with a known a for each octave gives these a back, but for the COUNT of the model."""
    model = Photographs(Zero((1, 32, 32)).double())
    exact = torch.tensor([9.0, 4.0, 0.25, 2.0, 0.5, 1.0, 3.0])[model.octaves]
    variances = exact * model.variances
    noisy = (variances + sigma**2).sqrt() * noise(5, 1, 32, 32)
    denoised = variances / (variances + sigma**2) * noisy
    found = model.fitted(0.5 + model.image(noisy), 0.5 + model.image(denoised), sigma) / model.variances
    counts = model.octaves.unique(return_counts=True)[1][model.octaves]
    slack = (1 - exact).abs() * COUNT / (COUNT + 0.3 * counts)  # n > 10 squares of normals sum to more than 0.3 n
    assert ((found - exact).abs() <= slack + 1e-6)[..., counts > 10].all()
    assert ((found - 1).abs() <= (exact - 1).abs() + 1e-6).all()  # never beyond what the image says


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def test_a_large_hole_is_as_uncertain_as_it_should_be():
    """A prior much stronger than the guide's model, few calls: the standard deviation of the hole's brightness.

    It is 0.90 of the exact one, and 0.74 where the model is not fitted to the image; 500 samples know it to 0.03.
    """
    shape, mask = (1, 16, 16), torch.ones(16, 16, dtype=torch.bool)
    mask[2:14, 2:14] = False
    prior = StationaryGaussian.natural(shape, std=0.5)
    problem = InverseProblem.simulate(make_operator("inpaint", shape, mask=mask), prior.sample(1, seed=3), 0.1, seed=4)
    hole = (~mask).float() / (~mask).sum()
    brightness = (fast(problem, prior, nfe=30, samples=500) * hole).sum((-3, -2, -1))
    weights = hole.double().flatten()
    exact = float((weights @ prior.posterior(problem).covariance.double() @ weights).sqrt())
    assert 0.82 < float(brightness.std()) / exact < 1.1
