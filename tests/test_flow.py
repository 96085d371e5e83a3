"""The flow, by which samples go from the last correction to the smallest noise level: its law, and its order."""

from __future__ import annotations

import math
import sys
from itertools import pairwise

import pytest
import torch

from sampler_cases import SHAPE, chains, directions, operators
from snips import InverseProblem, make_operator
from snips.priors import Gaussian, StationaryGaussian
from snips.samplers import fast, matrix_free
from snips.samplers.conditional import Coordinates
from snips.samplers.matrix_free import Law
from snips.samplers.matrix_free import flow as flow_without_svd
from snips.samplers.multistep import in_the_middle
from snips.samplers.predictor_corrector import flow
from snips.samplers.states import State
from snips.schedules import checked_sigmas, noise_plan
from snips.streams import Streams


@pytest.fixture(scope="module")
def natural() -> Gaussian:
    return StationaryGaussian.natural(SHAPE).as_gaussian().double()


@pytest.mark.parametrize("sampler", [fast, matrix_free])
@pytest.mark.parametrize("name", ["zero", "sr2", "inpaint"])
def test_the_flow_is_of_second_order(name, sampler, natural, monkeypatch):
    """With 25 calls: one of first order, with D itself, would lose 12 % of the variance or more."""
    problem = InverseProblem.simulate(dict(operators())[name], natural.sample(1, seed=3), 0.1, seed=4)
    posterior, found = natural.posterior(problem), []
    for _ in range(2):
        found.append(float(directions(sampler(problem, natural, nfe=25, samples=1000), posterior).mean()))
        monkeypatch.setattr(sys.modules[sampler.__module__], "in_the_middle", lambda denoised, *_: denoised)
    assert abs(found[0] - 1) < 0.05
    assert found[1] < 0.9


def test_a_denoised_image_that_is_linear_in_log_sigma_is_known_in_the_middle():
    plan, chains_of_one = [0.8, 0.8, 0.5, 0.3, 0.15], chains(1)
    at = {sigma: torch.full((1, *SHAPE), math.log(sigma)) for sigma in plan}
    state = State(3, at[0.3], Streams(0, chains_of_one), memory=at[0.5])
    found = in_the_middle(at[0.3], state, plan, 3, shown=lambda sigma: sigma < 0.6)
    torch.testing.assert_close(found, torch.full((1, *SHAPE), math.log(0.3 * 0.15) / 2))
    short, far = [0.8, 0.8, 0.5, 0.3, 0.005], math.log(0.3) + math.log(0.3 / 0.5)  # a longer step looks no further
    torch.testing.assert_close(
        in_the_middle(at[0.3], state, short, 3, shown=lambda sigma: sigma < 0.6), torch.full((1, *SHAPE), far)
    )
    assert in_the_middle(at[0.5], state, plan, 2, shown=lambda sigma: sigma < 0.6) is at[0.5]  # the first of the flow


ABOVE = [1.2, 0.6, 0.3, 0.3, 0.2, 0.2, 0.12, 0.12, 0.12]  # levels for sr2 at sigma_0 = 0.1, which are corrected


@pytest.mark.parametrize("sampler", [fast, matrix_free])
@pytest.mark.parametrize(
    ("below", "error"),
    [([0.06 * (1 - 1e-6), 0.03, 0.015], 0.12), ([0.0599, 0.03, 0.015], 0.25), ([0.0599, 0.015], 0.25)],
)
def test_chosen_levels_may_be_close_to_each_other(sampler, below, error, natural):
    """Extrapolated without a limit, D would be off by the ratio of the steps: the variance by up to 209 squared.

    With one, a step that is hundreds of times longer than the one before is nearly of first order: it loses variance.
    """
    problem = InverseProblem.simulate(make_operator("sr2", SHAPE), natural.sample(1, seed=3), 0.1, seed=4)
    sigmas = torch.tensor([*ABOVE, 0.06, *below, 0.005], dtype=torch.float64)
    samples = sampler(problem, natural, sigmas=sigmas, samples=1000)
    found = directions(samples, natural.posterior(problem))
    assert found.mean() == pytest.approx(1, abs=error)
    assert found.max() < 1.6  # of 1,000 exact samples: 1.27 or so


def test_levels_that_differ_by_rounding_are_one():
    third = 1 / 3
    sigmas = torch.tensor([0.5, third, torch.tensor(third).item(), 0.1, 0.1 * (1 + 1e-7)], dtype=torch.float64)
    assert checked_sigmas(sigmas) == [0.5, third, third, 0.1, 0.1]
    for rising in ([0.1, 0.1001], (1 + 9e-6 * torch.arange(1000, dtype=torch.float64)).tolist()):
        with pytest.raises(ValueError, match="must fall"):
            checked_sigmas(torch.tensor(rising, dtype=torch.float64))


@pytest.mark.parametrize("nfe", range(4, 13))
@pytest.mark.parametrize(("spread", "shown"), [(2.3, 0.01), (1.0, 0.003), (0.05, 0.003), (10.0, 0.4), (0.2, 0.1)])
def test_few_levels_do_not_step_over_all_corrections(spread, shown, nfe):
    plan = noise_plan(spread, shown, nfe)
    assert len(plan) == nfe
    corrected = {level for level, following in pairwise(plan) if level == following}
    assert corrected
    assert plan[0] not in corrected or plan[0] < 1.01 * max(3 * shown, 0.3)


def test_a_plan_below_all_corrections_corrects_its_start():
    plan = noise_plan(0.5, 100.0, 10)
    assert plan[0] == plan[1] == pytest.approx(6 * 0.5)
    assert all(level > following for level, following in pairwise(plan[1:]))


@pytest.mark.parametrize("sampler", [fast, matrix_free])
@pytest.mark.parametrize(("name", "sigma_0"), [("zero", 0.1), ("denoise", 100.0), ("sr2", 30.0)])
def test_what_the_samples_started_from_is_forgotten(sampler, name, sigma_0, natural):
    """A dark prior, of which y tells next to nothing; the start is grey. The mean of 1,000 samples errs by 0.03.

    A flow from the first level on would be off by 0.14 standard deviations, however many calls there are.
    """
    dark = Gaussian(torch.full_like(natural.mean.flatten(), 0.3), natural.covariance, SHAPE).double()
    problem = InverseProblem.simulate(dict(operators())[name].double(), dark.sample(1, seed=3), sigma_0, seed=4)
    posterior = dark.posterior(problem)
    brightness = sampler(problem, dark, nfe=25, samples=1000).flatten(1).mean(1)
    spread = posterior.covariance.mean().sqrt()
    assert abs((brightness.mean() - posterior.mean.mean()) / spread) < 0.1
    assert float(brightness.std() / spread) == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("sampler", [fast, matrix_free])
@pytest.mark.parametrize("name", ["sr2", "denoise", "deblur_uniform"])
@pytest.mark.parametrize("nfe", [4, 6])
def test_few_calls_draw_where_a_flow_would_lose_variance(nfe, sampler, name, natural):
    """One or two steps lead from the noise of y to the last level: a flow would have 0.4 or 0.75 of the variance."""
    problem = InverseProblem.simulate(make_operator(name, SHAPE).double(), natural.sample(1, seed=3), 0.1, seed=4)
    found = directions(sampler(problem, natural, nfe=nfe, samples=1000), natural.posterior(problem))
    assert found.mean() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("name", ["sr2", "deblur_motion", "mri", "dense", "zero"])
def test_the_flow_from_the_truth_has_the_next_levels_law(name):
    """Given x and y, the noisy image is N(m, A) before and N(m', A') after, with an SVD and without.

    4,000 chains, 5 standard errors.
    """
    operator = dict(operators())[name].double()
    truth = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    problem = InverseProblem.simulate(operator, truth, 0.1, seed=4)
    K = 4000
    coordinates, law, denoised = Coordinates(problem, chains(K)), Law(problem, chains(K)), truth.expand(K, *SHAPE)
    top = 0.1 / max(float(coordinates.s.max()), 0.1)
    level, following = coordinates.at(0.9 * top), coordinates.at(0.5 * top)
    noise_bar = level.variance.sqrt() * coordinates.white(Streams(1, chains(K)).normal(denoised))
    state = State(0, operator.V(level.mean(operator.Vt(denoised)) + noise_bar), Streams(2, chains(K)))
    moved = flow(coordinates, level, following, denoised, state)
    for x_bar in (moved, operator.Vt(flow_without_svd(law, level.sigma, following.sigma, denoised, state))):
        offset = x_bar - following.mean(operator.Vt(denoised))
        expected = following.variance.expand(offset.shape[1:])
        assert (offset.abs().square().mean(0) / expected - 1).abs().max() < 5 * math.sqrt(2 / K)
        assert (offset.mean(0).abs() < 5 * (expected / K).sqrt()).all()
