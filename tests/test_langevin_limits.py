"""Algorithm 1 at its limits: without noise, without a measurement, between its regimes, in float32."""

from __future__ import annotations

import math

import pytest
import torch

from sampler_cases import SHAPE, N, random_gaussian
from snips import InverseProblem, make_operator
from snips.operators import Deblurring, Denoising, Dense, Zero, kernels
from snips.priors import Gaussian, StationaryGaussian
from snips.samplers import PRESETS, langevin
from snips.samplers.annealed_langevin import noise_of_states
from snips.schedules import geometric
from snips.streams import Chain, Streams


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    return random_gaussian()


@pytest.mark.parametrize("sigma_0", [0.0, 1e-30, 1e-12, 1e-6])
def test_rounding_errors_are_not_amplified(sigma_0):
    """A blur that hides most frequencies, in float32: samples stay images, and exact data are not worse than noisy."""
    shape = (1, 48, 48)
    prior = StationaryGaussian.natural(shape)
    x = prior.sample(1, seed=1)
    problem = InverseProblem.simulate(Deblurring(shape, kernels.gaussian(3, 25)), x, sigma_0, seed=0)
    samples = langevin(problem, prior, sigmas=geometric(20, 1e-4, 40), c=0.3, tau=3, samples=2)[:, 0]
    assert samples.abs().max() < 3
    assert (problem.operator(samples) - problem.y).square().mean().sqrt() < 1e-3


def test_noiseless_data_restore_well_at_any_size():
    """What float32 can tell is used: a mild blur of 96 x 96 pixels is undone."""
    shape = (3, 96, 96)
    prior = StationaryGaussian.natural(shape)
    x = prior.sample(1, seed=1)
    problem = InverseProblem.simulate(make_operator("deblur_uniform", shape), x, 0.0, seed=0)
    samples = langevin(problem, prior, sigmas=geometric(20, 1e-4, 40), c=0.3, tau=3, samples=1)[0]
    assert (samples - x).square().mean().sqrt() < 0.01


def test_synthesis_is_plain_annealed_langevin(prior):
    """H = 0 and sigma_0 = 0: x += c sigma^2 score + sqrt(2 c) sigma z, as in Song and Ermon 2019."""
    problem = InverseProblem(Zero(SHAPE), torch.zeros(1, 0, dtype=torch.float64), 0.0)
    sigmas, c = geometric(10, 0.01, 15), 0.1
    ours = langevin(problem, prior, sigmas=sigmas, c=c, tau=2, samples=1, seed=1)[0]
    streams = Streams(1, [Chain(0, 0)])
    x = streams.uniform(ours)
    for sigma in sigmas.tolist():
        for _ in range(2):
            x = x + c * sigma**2 * prior.score(x, sigma) + math.sqrt(2 * c) * sigma * streams.normal(x)
    torch.testing.assert_close(ours, x)


@pytest.mark.parametrize(("levels", "c", "tau"), [(5, 0.1, 2), (40, 0.1, 2), (8, 0.5, 1)])
def test_the_noise_that_few_levels_leave_is_known(levels, c, tau):
    """A prior that knows every pixel, and nothing measured: 20,000 pixels tell the standard deviation to 3 %."""
    shape, sigmas = (2, 100, 100), geometric(20, 0.01, levels)

    class Known(StationaryGaussian):
        def denoise(self, x, sigma):
            return torch.full_like(x, 0.5)

    problem = InverseProblem(Zero(shape), torch.zeros(1, 0), 0.0)
    samples = langevin(problem, Known.natural(shape), sigmas=sigmas, c=c, tau=tau, samples=1)
    assert float(samples.std()) == pytest.approx(noise_of_states(sigmas, c, tau)[-1], rel=0.03)


def test_the_paper_leaves_hardly_more_than_the_last_level():
    left = {name: noise_of_states(**preset.options())[-1] / preset.last for name, preset in PRESETS.items()}
    assert left == {"celeba": pytest.approx(1.06, abs=0.005), "lsun": pytest.approx(1.10, abs=0.005)}


@pytest.mark.parametrize("empty", [lambda: Dense(torch.zeros(3, N), SHAPE), lambda: Zero(SHAPE)])
def test_all_ways_to_measure_nothing_agree(empty, prior):
    operator = empty()
    y = torch.zeros(1, *operator.measurement_shape, dtype=torch.float64)
    nothing_seen = make_operator("inpaint", SHAPE, mask=torch.zeros(4, 4))
    options = {"sigmas": geometric(10, 0.01, 10), "samples": 2}
    expected = langevin(InverseProblem(nothing_seen, torch.zeros(1, 1, 0).double(), 0.3), prior, **options)
    torch.testing.assert_close(langevin(InverseProblem(operator, y, 0.3), prior, **options), expected)


def test_identity_follows_y(prior):
    """The published code ignores y where H has full rank."""
    sigmas = geometric(10, 0.001, 60)
    for seed in (0, 1):
        problem = InverseProblem.simulate(Denoising(SHAPE), prior.sample(1, seed=seed), 0.01, seed)
        samples = langevin(problem, prior, sigmas=sigmas, c=0.2, tau=3, samples=4)
        assert (samples - problem.y).abs().max() < 0.06


@pytest.mark.parametrize("step", ["newton", "uniform"])
def test_the_boundary_between_the_regimes_is_harmless(step, prior):
    """s sigma = sigma_0 exactly: finite and, for the paper's step, the limit of its neighbours."""
    results = []
    for sigma_0 in (0.5 * (1 - 1e-9), 0.5, 0.5 * (1 + 1e-9)):
        problem = InverseProblem(Denoising(SHAPE), torch.full((1, *SHAPE), 0.3, dtype=torch.float64), sigma_0)
        results.append(langevin(problem, prior, sigmas=torch.tensor([0.5]), c=0.1, tau=1, samples=1, step=step))
    assert all(torch.isfinite(result).all() for result in results)
    if step == "newton":
        torch.testing.assert_close(results[0], results[1], atol=1e-4, rtol=0)
        torch.testing.assert_close(results[2], results[1], atol=1e-4, rtol=0)
