"""Runs of the fast sampler: all operators and noise, calls, seeds, resuming, what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from sampler_cases import SHAPE, Counted, operators, random_gaussian
from snips import InverseProblem, make_operator
from snips.operators import Denoising
from snips.priors import Gaussian, StationaryGaussian
from snips.problems import PROBLEMS
from snips.samplers import fast, matrix_free
from snips.samplers.base import is_finite, repeats
from snips.samplers.predictor_corrector import planned_sigmas
from snips.schedules import FEWEST_CALLS, FIRST, noise_plan

QUICK = {"nfe": 12}


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    return random_gaussian()


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
    assert plan[0] * (1 + 1e-9) >= FIRST * spread
    assert plan[-1] * (1 + 1e-9) >= 0.002
    assert plan[-1] <= max(shown / 4, 0.002) * (1 + 1e-9)


def test_a_repeated_level_is_a_correction():
    plan = [2.0, 2.0, 1.0, 0.5, 0.5]
    assert [repeats(plan, i) for i in range(5)] == [True, False, False, True, False]
    assert not repeats([1.0], 0)


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


def test_large_but_finite_values_are_no_fault_of_the_prior():
    assert is_finite(torch.tensor([3e19, -3e19]))
    assert not is_finite(torch.tensor([1.0, float("inf")]))


def test_on_step_reports(three_images, prior):
    seen = []
    fast(three_images, prior, samples=2, chunk=3, on_step=seen.append, **QUICK)
    assert [info.step for info in seen] == list(range(1, 25))
    assert {info.total for info in seen} == {24}
    assert seen[0].denoised.shape == (3, *SHAPE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigmas": torch.tensor([1.0, 2.0])}, "sigmas.* must fall"),
        ({"sigmas": "abc"}, "sigmas.* must be numbers"),
        ({"samples": 0}, "samples must be"),
        ({"samples": True}, "samples must be .* but is True"),
        ({"seed": -1}, "the seed must be"),
        ({"chunk": 0}, "chunk must be"),
        ({"nfe": 2}, "at least nfe=4"),
        ({"nfe": True}, "nfe must be a whole number, but is True"),
        ({"nfe": 8.0}, "nfe must be a whole number"),
        ({"nfe": 10**7}, "at most nfe=1000000"),
        ({"sigmas": torch.tensor([1e308, 1.0], dtype=torch.float64)}, "between 1e-12 and 1e\\+12"),
        ({"sigmas": torch.tensor([1.0, 1e-300], dtype=torch.float64)}, "between 1e-12 and 1e\\+12"),
        ({"guided": "no"}, "guided must be True or False, but is 'no'"),
    ],
)
@pytest.mark.parametrize("sampler", [fast, matrix_free])
def test_bad_settings(sampler, options, message, three_images, prior):
    with pytest.raises(ValueError, match=message):
        sampler(three_images, prior, **{**QUICK, **options})


@pytest.mark.parametrize("sampler", [fast, matrix_free])
def test_the_widest_levels_that_may_be_asked_for_are_sampled(sampler, three_images, prior):
    sigmas = torch.logspace(12, -12, 24, dtype=torch.float64)
    assert torch.isfinite(sampler(three_images, prior, sigmas=sigmas, samples=1)).all()


@pytest.mark.parametrize("name", ["deblur_uniform", "sr2", "sr4", "cs4"])
def test_about_a_third_of_the_corrections_follow_the_exact_score(name):
    """As docs/method.md says of 100 calls at sigma_0 = 0.1; below sigma_0 / s_max nothing is hidden."""
    operator = make_operator(name, (3, 64, 64))
    problem = InverseProblem.simulate(operator, torch.full((1, 3, 64, 64), 0.5), 0.1, seed=0)
    plan = planned_sigmas(problem, nfe=100)
    corrections = [sigma for sigma, before in zip(plan[1:], plan, strict=False) if sigma == before]
    exact = [sigma for sigma in corrections if sigma <= 0.1 / float(operator.singular_values.max())]
    assert 0.28 < len(exact) / len(corrections) < 0.4
