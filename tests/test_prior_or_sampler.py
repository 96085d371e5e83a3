"""The benchmarks that tell prior and sampler apart, where the answer is known: a Gaussian prior and exact samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from scripts import load_script
from snips import InverseProblem, StationaryGaussian, make_operator
from snips.priors.digest import weights_digest
from snips.samplers.multistep import STEPS_VERSION

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SHAPE = (1, 16, 16)


@pytest.fixture(scope="module")
def prior() -> StationaryGaussian:
    return StationaryGaussian.natural(SHAPE)


@pytest.mark.parametrize("name", ["cs4", "cs8"])
def test_message_passing_finds_the_posterior_mean(name, prior):
    """It knows the denoiser's error from 300 images only, which leaves a hundredth of the posterior's spread."""
    passing = load_script(BENCHMARKS / "message_passing.py")
    problem = InverseProblem.simulate(make_operator(name, SHAPE), prior.sample(4, seed=3), 0.1, seed=4)
    found, _ = passing.message_passing(problem, prior, passing.error_of(prior, prior.sample(300, seed=5)))
    for i in range(4):
        posterior = prior.posterior(problem[i])
        spread = posterior.covariance.diagonal().mean().sqrt()
        assert (found[i] - posterior.mean).square().mean().sqrt() < 0.05 * spread


def test_exact_samples_scatter_as_much_as_their_mean_errs(prior):
    """40 truths with 19 exact samples each: a ratio of 1 within 3 of its own standard errors, once in 370 not."""
    own = load_script(BENCHMARKS / "own_truths.py")
    truth = prior.sample(40, seed=3)
    problem = InverseProblem.simulate(make_operator("sr2", SHAPE), truth, 0.1, seed=4)
    drawn = torch.stack([prior.posterior(problem[i]).sample(19, seed=i) for i in range(40)], 1)
    error, variance = own.errors_and_variances(drawn.reshape(19, 40, *SHAPE), truth)
    ratio, uncertainty = own.ratio_with_error(variance, error)
    assert 0.005 < uncertainty < 0.1
    assert abs(ratio - 1) < 3 * uncertainty
    narrow, uncertainty = own.ratio_with_error(0.5 * variance, error)
    assert 1 - narrow > 3 * uncertainty


def test_one_call_tells_the_posterior_variance(prior):
    """By differences along 16 directions; a Gaussian prior's is the same for all measurements."""
    one_call = load_script(BENCHMARKS / "one_call.py")
    problem = InverseProblem.simulate(make_operator("denoise", SHAPE), prior.sample(20, seed=3), 0.4, seed=4)
    found = one_call.variance_by_one_call(prior, problem.y, 0.4)
    exact = prior.posterior(problem[0]).covariance.diagonal().mean()
    assert abs(found.mean() / exact - 1) < 0.03
    assert ((found / exact - 1).abs() < 0.2).all()


def test_rows_of_other_weights_are_not_taken(tmp_path, monkeypatch):
    """A stopped run goes on, but only with the weights and the steps of `fast` that it began with."""
    own = load_script(BENCHMARKS / "own_truths.py")
    monkeypatch.setattr(own, "RESULTS", tmp_path)
    prior = StationaryGaussian.natural((1, 8, 8))
    assert own.rows_so_far(prior) == []
    record = {"weights": weights_digest(prior), "steps": STEPS_VERSION, "results": [{"problem": "sr4"}]}
    (tmp_path / "own_truths.unfinished.json").write_text(json.dumps(record))
    assert own.rows_so_far(prior) == record["results"]
    assert own.rows_so_far(StationaryGaussian.natural((1, 16, 16))) == []
    (tmp_path / "own_truths.unfinished.json").write_text(json.dumps({**record, "steps": STEPS_VERSION - 1}))
    assert own.rows_so_far(prior) == []
