"""Stored states of the fast sampler: the same run goes on from them with the same bits, and no other run does."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from sampler_cases import SHAPE, Counted, check_resumed_run, operators, random_gaussian
from snips import InverseProblem, make_operator
from snips.priors import Gaussian
from snips.results.finished import FinishedChains
from snips.samplers import fast, fast_steps, langevin, matrix_free
from snips.samplers.multistep import STEPS_VERSION
from snips.streams import Chain

QUICK = {"nfe": 12}


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    return random_gaussian()


@pytest.fixture
def three_images(prior) -> InverseProblem:
    return InverseProblem.simulate(make_operator("cs4", SHAPE), prior.sample(3, seed=8), 0.1, seed=0)


@pytest.mark.parametrize("name", ["cs4", "mri"])
@pytest.mark.parametrize("stop", range(1, 12))
def test_a_resumed_run_is_bit_equal(stop, name, prior):
    problem = InverseProblem.simulate(dict(operators())[name], prior.sample(3, seed=8), 0.1, seed=0)
    six = [Chain(image, sample) for sample in range(2) for image in range(3)]
    check_resumed_run(lambda stored: fast_steps(problem, prior, six, resume=stored, **QUICK), stop, total=12)


def test_a_state_of_another_run_is_refused(three_images, prior):
    stored = []
    fast(three_images, prior, samples=2, on_step=lambda info: stored.append(info.state.tensors()), **QUICK)
    with pytest.raises(ValueError, match="of another run: go on with as many samples"):
        fast(three_images, prior, samples=3, resume=stored[4], **QUICK)
    with pytest.raises(ValueError, match="no steps left"):
        fast(three_images, prior, samples=2, resume=stored[-1], **QUICK)


def one_number_changed(y: torch.Tensor) -> torch.Tensor:
    changed = y.clone()
    changed.view(-1)[0] += 0.1
    return changed


SIGMAS = torch.tensor([2.0, 1.0, 1.0, 0.5, 0.5, 0.25])
OTHER = {
    "more calls": lambda problem, prior, state: fast(problem, prior, nfe=25, samples=2, resume=state),
    "fewer calls": lambda problem, prior, state: fast(problem, prior, nfe=8, samples=2, resume=state),
    "other levels": lambda problem, prior, state: fast(problem, prior, sigmas=SIGMAS, samples=2, resume=state),
    "another seed": lambda problem, prior, state: fast(problem, prior, samples=2, seed=1, resume=state, **QUICK),
    "other measurements": lambda problem, prior, state: fast(
        replace(problem, y=problem.y.flip(0)), prior, samples=2, resume=state, **QUICK
    ),
    "more noise in one number": lambda problem, prior, state: fast(
        replace(problem, y=one_number_changed(problem.y)), prior, samples=2, resume=state, **QUICK
    ),
    "other images": lambda problem, prior, state: fast(
        replace(problem, first_image=3), prior, samples=2, resume=state, **QUICK
    ),
    "no guide": lambda problem, prior, state: fast(problem, prior, samples=2, guided=False, resume=state, **QUICK),
    "matrix_free": lambda problem, prior, state: matrix_free(problem, prior, samples=2, resume=state, **QUICK),
    "langevin": lambda problem, prior, state: langevin(problem, prior, samples=2, resume=state, sigmas=SIGMAS),
}


@pytest.mark.parametrize("other", OTHER)
def test_a_state_of_another_plan_or_sampler_is_refused(other, three_images, prior):
    """Within a chunk and between two of them; before the first call."""
    within, between = [], []
    keep = FinishedChains(2, 3, 3, None, keep=lambda stored: between.append(stored()))
    fast(three_images, prior, samples=2, on_step=lambda info: within.append(info.state.tensors()), **QUICK)
    fast(three_images, prior, samples=2, chunk=3, on_step=keep, **QUICK)
    counted = Counted(prior)
    for state in (*within[:8], between[11] | {"finished": between[11]["finished"][:0]}):
        with pytest.raises(ValueError, match="of another run: go on with the measurement"):
            OTHER[other](three_images, counted, state)
    assert counted.calls == 0
    again = fast(three_images, prior, samples=2, chunk=3, resume=between[11], **QUICK)
    assert torch.equal(again, fast(three_images, prior, samples=2, chunk=3, **QUICK))


@pytest.mark.parametrize("sampler", [fast, matrix_free, langevin])
@pytest.mark.parametrize("other", [{"sigma_0": 0.2}, {"operator": make_operator("cs4", SHAPE, seed=1)}])
def test_a_state_of_another_problem_is_refused(other, sampler, three_images, prior):
    """Also if y and the noise levels are the same."""
    stored = []
    sampler(three_images, prior, sigmas=SIGMAS, samples=1, on_step=lambda info: stored.append(info.state.tensors()))
    with pytest.raises(ValueError, match="of another run: go on with the measurement, the operator"):
        sampler(replace(three_images, **other), prior, sigmas=SIGMAS, samples=1, resume=stored[2])


@pytest.mark.parametrize("sampler", [fast, matrix_free])
def test_a_state_of_other_steps_is_refused(sampler, three_images, prior, monkeypatch):
    """Those of an earlier version, whose states had no mark at first."""
    stored = []
    sampler(three_images, prior, samples=2, on_step=lambda info: stored.append(info.state.tensors()), **QUICK)
    without = {name: value for name, value in stored[4].items() if name != "mark"}
    with pytest.raises(ValueError, match="the version of snips that it had"):
        sampler(three_images, prior, samples=2, resume=without, **QUICK)
    monkeypatch.setattr(sys.modules[sampler.__module__], "STEPS_VERSION", STEPS_VERSION + 1)
    with pytest.raises(ValueError, match="the version of snips that it had"):
        sampler(three_images, prior, samples=2, resume=stored[4], **QUICK)
