"""Priors and previews that work in place, or return the same buffer: nothing that anybody else holds changes."""

from __future__ import annotations

import pytest
import torch

from sampler_cases import SHAPE, random_gaussian
from snips import InverseProblem, check_prior, make_operator
from snips.priors import Gaussian, Prior
from snips.priors.tiled import TiledPrior
from snips.samplers import fast, langevin, matrix_free, red
from snips.samplers.red import GreyPrior

SHORT = {"sigmas": torch.tensor([2.0, 1.0, 0.5, 0.25, 0.1, 0.04, 0.02, 0.01])}  # a flow at the end


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    return random_gaussian()


@pytest.fixture(scope="module")
def problem(prior) -> InverseProblem:
    return InverseProblem.simulate(make_operator("sr2", (1, 4, 4)), torch.rand(1, 1, 4, 4), 0.1, seed=0)


class Ordinary(Prior):
    """Shrinks towards grey, as the ideal denoiser of white images does."""

    def denoise(self, x, sigma):
        return 0.5 + (x - 0.5) * (1 / (1 + sigma**2))


class InPlace(Ordinary):
    def denoise(self, x, sigma):
        return x.copy_(super().denoise(x, sigma))


class OneBuffer(Ordinary):
    buffer = None

    def denoise(self, x, sigma):
        if self.buffer is None or self.buffer.shape != x.shape:
            self.buffer = torch.empty_like(x)
        return self.buffer.copy_(super().denoise(x, sigma))


WORKING = pytest.mark.parametrize("working", [InPlace, OneBuffer])


@WORKING
@pytest.mark.parametrize("sampler", [fast, matrix_free, langevin])
def test_samples_are_those_of_an_ordinary_prior(sampler, working, problem):
    wanted = sampler(problem, Ordinary(), samples=3, **SHORT)
    assert torch.equal(sampler(problem, working(), samples=3, **SHORT), wanted)


@pytest.mark.parametrize("sampler", [fast, matrix_free, langevin])
def test_a_preview_may_change_the_image_that_it_is_given(sampler, problem):
    wanted = sampler(problem, Ordinary(), samples=3, **SHORT)
    shown = sampler(problem, Ordinary(), samples=3, **SHORT, on_step=lambda info: info.denoised.mul_(255))
    assert torch.equal(shown, wanted)


@WORKING
@pytest.mark.parametrize("sampler", [fast, matrix_free])
def test_a_run_goes_on_from_each_of_its_states(sampler, working, problem):
    states = []
    whole = sampler(problem, working(), samples=2, **SHORT, on_step=lambda info: states.append(info.state.tensors()))
    for stored in states[:-1]:
        assert torch.equal(sampler(problem, working(), samples=2, **SHORT, resume=stored), whole)


@WORKING
def test_red_descends_as_with_an_ordinary_prior(working):
    problem = InverseProblem.simulate(make_operator("denoise", (1, 8, 8)), torch.rand(1, 1, 8, 8), 0.1, seed=0)
    wanted = red(problem, Ordinary(), weight=1.0, iterations=4)
    assert torch.equal(red(problem, working(), weight=1.0, iterations=4), wanted)


@WORKING
def test_tiles_overlap_unharmed(working):
    x = torch.rand(1, 1, 96, 96)
    tiled = TiledPrior(working(), side=32, margin=32)
    assert torch.equal(tiled.denoise(x, 0.5), Ordinary().denoise(x, 0.5))


@WORKING
def test_the_score_and_grey_images_of_a_colour_prior(working):
    x = torch.rand(2, 1, 8, 8)
    assert torch.equal(working().score(x.clone(), 0.5), Ordinary().score(x, 0.5))
    assert torch.equal(GreyPrior(working()).denoise(x, 0.5), GreyPrior(Ordinary()).denoise(x, 0.5))


@WORKING
def test_the_check_of_a_prior_measures_what_it_does(working):
    images = torch.rand(3, *SHAPE, generator=torch.Generator().manual_seed(0))
    found, wanted = check_prior(working(), images), check_prior(Ordinary(), images)
    assert found.levels == wanted.levels
    assert found.mistakes == wanted.mistakes
