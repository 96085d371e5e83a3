"""The fast sampler against exact posteriors, and its contract: calls, seeds, resuming, all operators and noise."""

from __future__ import annotations

import math

import pytest
import torch

from sampler_cases import check_resumed_run
from snips import InverseProblem, make_operator
from snips.operators import Denoising, Dense, Zero
from snips.priors import Gaussian, Prior, StationaryGaussian
from snips.problems import PROBLEMS
from snips.samplers import fast, fast_steps
from snips.samplers.conditional import Coordinates
from snips.samplers.guidance import COUNT, Photographs
from snips.samplers.predictor_corrector import correct, predict
from snips.schedules import FEWEST_CALLS, noise_plan
from snips.streams import Chain, Streams

SHAPE = (1, 4, 4)
N = math.prod(SHAPE)
QUICK = {"nfe": 12}


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    random = torch.Generator().manual_seed(5)
    root = 0.2 * torch.randn(N, N, generator=random, dtype=torch.float64)
    mean = torch.rand(N, generator=random, dtype=torch.float64)
    return Gaussian(mean, root @ root.T + 0.01 * torch.eye(N), SHAPE).double()


class Counted(Prior):
    """Remembers how often each image was denoised."""

    def __init__(self, prior: Prior) -> None:
        super().__init__()
        self.prior, self.calls, self.sigmas = prior, 0, []

    def denoise(self, x, sigma):
        self.calls += len(x)
        self.sigmas.append(float(sigma))
        return self.prior.denoise(x, sigma)


def operators(shape=SHAPE):
    small = {"deblur_kernel": {"kernel": torch.tensor([[1.0, 2.0], [0.5, 0.0]])}, "mri": {"acceleration": 2}}
    small["matrix"] = {"matrix": torch.eye(math.prod(shape[1:]))[::3]}
    for name in PROBLEMS:
        yield name, make_operator(name, shape, **small.get(name, {}))
    yield "zero", Zero(shape)
    random = torch.Generator().manual_seed(1)
    yield (
        "dense",
        Dense(torch.randn(7, math.prod(shape), generator=random) * 10.0 ** torch.arange(-3, 4)[:, None], shape),
    )


@pytest.mark.parametrize("sigma_0", [0, 1e-6, 0.1, 10])
@pytest.mark.parametrize("name", [*PROBLEMS, "zero", "dense"])
def test_every_operator_at_every_noise(name, sigma_0):
    shape = (3, 4, 4)
    prior = StationaryGaussian.natural(shape)
    problem = InverseProblem.simulate(dict(operators(shape))[name], prior.sample(2, seed=3), sigma_0, seed=4)
    samples = fast(problem, prior, nfe=20, samples=3)
    assert samples.shape == (3, 2, *shape)
    assert torch.isfinite(samples).all()
    assert samples.abs().max() < 3  # the prior has mean 0.5 and standard deviation 0.25
    residual = problem.operator(samples[:, 0]) - problem.y[0]
    if residual.numel() and sigma_0 < 0.1:
        largest = float(problem.operator.singular_values.max())
        assert residual.abs().max() < 1e-5 * max(1.0, largest) + 5 * sigma_0


@pytest.fixture(scope="module")
def natural() -> Gaussian:
    return StationaryGaussian.natural(SHAPE).as_gaussian().double()


@pytest.mark.parametrize("name", ["zero", "deblur_uniform", "sr2", "cs4", "inpaint", "denoise", "deblur_motion", "mri"])
def test_moments_are_the_posteriors(name, natural):
    """1,000 samples at 100 calls. A perfect sampler fails once in 500 (4 standard errors of each pixel's mean and
    variance, 32 numbers); 5 % of the standard deviation and 8 % of the variance are allowed on top."""
    problem = InverseProblem.simulate(dict(operators())[name], natural.sample(1, seed=3), 0.1, seed=4)
    mean, variance = moments(fast(problem, natural, nfe=100, samples=1000), natural.posterior(problem))
    assert mean.abs().max() < 4 / math.sqrt(1000) + 0.05
    assert (variance - 1).abs().max() < 4 * math.sqrt(2 / 1000) + 0.08


def moments(samples: torch.Tensor, posterior) -> tuple[torch.Tensor, torch.Tensor]:
    """The error of each pixel's mean in posterior standard deviations, and its variance over the posterior's."""
    x, std = samples.flatten(1), posterior.covariance.diagonal().sqrt()
    return (x.mean(0) - posterior.mean.flatten()) / std, x.var(0) / std**2


def test_a_prior_unlike_photographs_is_reached_with_more_calls(prior):
    """The guide's model is wrong here; the levels where nothing is hidden make up for it."""
    problem = InverseProblem.simulate(make_operator("cs4", SHAPE), prior.sample(1, seed=3), 0.1, seed=4)
    posterior, errors = prior.posterior(problem), []
    for nfe in (8, 40, 200):
        mean, variance = moments(fast(problem, prior, nfe=nfe, samples=500), posterior)
        errors.append(float(mean.norm() + (variance - 1).norm()))
    assert errors == sorted(errors, reverse=True)
    assert errors[2] < 0.5 * errors[0]


def test_modes_have_their_weights(mixture):
    """The share of samples in each component, 1,000 samples: 4 standard errors and 5 % on top.

    These components are white noise of a standard deviation above 1, nothing like photographs: without the guide.
    """
    problem = InverseProblem.simulate(
        make_operator("inpaint", SHAPE, mask=torch.arange(16).reshape(4, 4) == 5),
        mixture.sample(1, seed=3),
        0.1,
        seed=4,
    )
    posterior = mixture.posterior(problem)
    samples = fast(problem, mixture, nfe=100, samples=1000, guided=False)[:, 0]
    eigenvalues, _ = posterior.eigen()
    joint = posterior._log_joint(posterior._rotate(samples), eigenvalues[:, None])
    share = float(torch.softmax(joint, 0)[0].mean())
    exact = float(posterior.weights[0])
    assert 0.1 < exact < 0.9
    assert abs(share - exact) < 4 * math.sqrt(exact * (1 - exact) / 1000) + 0.05


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
        assert (error - expected).abs().max() < 6 * math.sqrt(2 / K) * expected.max()
        assert error[expected < 1e-12].sum() < 1e-9
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


def chains(K: int) -> list[Chain]:
    return [Chain(0, k) for k in range(K)]


def test_identity_follows_y(prior):
    for seed in (0, 1):
        problem = InverseProblem.simulate(Denoising(SHAPE), prior.sample(1, seed=seed), 0.01, seed)
        assert (fast(problem, prior, nfe=30, samples=4) - problem.y).abs().max() < 0.06


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_noiseless_measurements_are_met(name, prior):
    problem = InverseProblem.simulate(dict(operators())[name], prior.sample(1, seed=3), 0.0, seed=4)
    samples = fast(problem, prior, nfe=30, samples=3)[:, 0]
    assert (problem.operator(samples) - problem.y).abs().max() < 1e-9


@pytest.mark.parametrize("sigma_0", [0.0, 0.03, 5.0])
@pytest.mark.parametrize("nfe", [FEWEST_CALLS, 7, 25, 100])
def test_each_sample_sees_nfe_calls(nfe, sigma_0, prior):
    counted = Counted(prior)
    problem = InverseProblem.simulate(make_operator("sr2", SHAPE), prior.sample(2, seed=3), sigma_0, seed=4)
    fast(problem, counted, nfe=nfe, samples=3)
    assert counted.calls == nfe * 6
    assert counted.sigmas == sorted(counted.sigmas, reverse=True)


@pytest.mark.parametrize("nfe", [FEWEST_CALLS - 1, 0, -5])
def test_too_few_calls(nfe, prior):
    problem = InverseProblem.simulate(make_operator("sr2", SHAPE), prior.sample(1), 0.1)
    with pytest.raises(ValueError, match=f"at least nfe={FEWEST_CALLS}"):
        fast(problem, prior, nfe=nfe)


@pytest.mark.parametrize("nfe", [4, 5, 25, 99, 100])
@pytest.mark.parametrize("shown", [0.0, 1e-6, 0.02, 0.1, 50.0, math.inf])
@pytest.mark.parametrize("spread", [0.0, 0.01, 2.0, 50.0])
def test_plans(spread, shown, nfe):
    plan = noise_plan(spread, shown, nfe)
    assert len(plan) == nfe
    assert plan == sorted(plan, reverse=True)
    assert plan[0] * (1 + 1e-9) >= 3 * spread
    assert plan[-1] * (1 + 1e-9) >= 0.002
    assert plan[-1] <= max(shown / 2, 0.002) * (1 + 1e-9)


@pytest.fixture
def three_images(prior) -> InverseProblem:
    return InverseProblem.simulate(make_operator("cs4", SHAPE), prior.sample(3, seed=8), 0.1, seed=0)


def test_samples_do_not_depend_on_how_many_are_drawn(three_images, prior):
    many, few = (fast(three_images, prior, samples=n, **QUICK) for n in (4, 2))
    torch.testing.assert_close(many[:2], few, rtol=1e-9, atol=1e-9)


def test_split_batches_and_chunks_give_the_same_samples(three_images, prior):
    together = fast(three_images, prior, samples=2, **QUICK)
    parts = [fast(three_images[i : i + 1], prior, samples=2, **QUICK) for i in range(3)]
    torch.testing.assert_close(together, torch.cat(parts, 1), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(fast(three_images, prior, samples=2, chunk=4, **QUICK), together, rtol=1e-9, atol=1e-9)


def test_samples_differ_from_each_other_and_by_seed(three_images, prior):
    samples, other = (fast(three_images, prior, samples=2, seed=seed, **QUICK) for seed in (0, 1))
    assert (samples[0] - samples[1]).abs().min() > 0
    assert (samples - other).abs().min() > 0


@pytest.mark.parametrize("name", ["cs4", "mri"])
@pytest.mark.parametrize("stop", range(1, 12))
def test_a_resumed_run_is_bit_equal(stop, name, prior):
    problem = InverseProblem.simulate(dict(operators())[name], prior.sample(3, seed=8), 0.1, seed=0)
    six = [Chain(image, sample) for sample in range(2) for image in range(3)]
    check_resumed_run(lambda stored: fast_steps(problem, prior, six, resume=stored, **QUICK), stop, total=12)


def test_on_step_reports(three_images, prior):
    seen = []
    fast(three_images, prior, samples=2, chunk=3, on_step=seen.append, **QUICK)
    assert [info.step for info in seen] == list(range(1, 25))
    assert {info.total for info in seen} == {24}
    assert seen[0].denoised.shape == (3, *SHAPE)


class BreaksAt(Prior):
    def __init__(self, prior, call):
        super().__init__()
        self.prior, self.call, self.calls = prior, call, 0

    def denoise(self, x, sigma):
        self.calls += 1
        return self.prior.denoise(x, sigma) * (float("nan") if self.calls == self.call else 1)


def test_a_prior_that_returns_nan_is_named(three_images, prior):
    sigmas = torch.tensor([2.0, 1.0, 0.5, 0.25])
    with pytest.raises(ValueError, match=r"NaN or Inf in step 3 at sigma = 0\.5"):
        fast(three_images, BreaksAt(prior, 3), samples=1, sigmas=sigmas)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigmas": torch.tensor([1.0, 2.0])}, "sigmas.* must fall"),
        ({"samples": 0}, "samples must be"),
        ({"samples": True}, "samples must be .* but is True"),
        ({"seed": -1}, "the seed must be"),
        ({"chunk": 0}, "chunk must be"),
        ({"nfe": 2}, "at least nfe=4"),
        ({"nfe": True}, "nfe must be a whole number, but is True"),
        ({"nfe": 8.0}, "nfe must be a whole number"),
    ],
)
def test_bad_settings(options, message, three_images, prior):
    with pytest.raises(ValueError, match=message):
        fast(three_images, prior, **{**QUICK, **options})
