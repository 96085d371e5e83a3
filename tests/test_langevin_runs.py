"""Runs of Algorithm 1: samples that depend on their seed alone, resuming, progress, what is refused."""

from __future__ import annotations

import pytest
import torch

from sampler_cases import SHAPE, check_resumed_run, random_gaussian
from snips import InverseProblem, make_operator
from snips.priors import Gaussian, Prior
from snips.samplers import langevin, langevin_steps
from snips.schedules import geometric
from snips.streams import Chain


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    return random_gaussian()


OPTIONS = {"sigmas": geometric(5, 0.05, 6), "c": 0.1, "tau": 2}


@pytest.fixture
def three_images(prior) -> InverseProblem:
    return InverseProblem.simulate(make_operator("sr2", SHAPE), prior.sample(3, seed=8), 0.1, seed=0)


def test_samples_do_not_depend_on_how_many_are_drawn(three_images, prior):
    many = langevin(three_images, prior, samples=4, **OPTIONS)
    few = langevin(three_images, prior, samples=2, **OPTIONS)
    assert many.shape == (4, 3, *SHAPE)
    torch.testing.assert_close(many[:2], few, rtol=1e-12, atol=1e-12)


def test_split_batches_give_the_same_samples(three_images, prior):
    together = langevin(three_images, prior, samples=2, **OPTIONS)
    parts = [langevin(three_images[i : i + 1], prior, samples=2, **OPTIONS) for i in range(3)]
    torch.testing.assert_close(together, torch.cat(parts, 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_chunks_give_the_same_samples(chunk, three_images, prior):
    together = langevin(three_images, prior, samples=2, **OPTIONS)
    torch.testing.assert_close(langevin(three_images, prior, samples=2, chunk=chunk, **OPTIONS), together)


def test_samples_differ_from_each_other_and_by_seed(three_images, prior):
    samples = langevin(three_images, prior, samples=2, **OPTIONS)
    other = langevin(three_images, prior, samples=2, seed=1, **OPTIONS)
    assert (samples[0] - samples[1]).abs().min() > 0
    assert (samples - other).abs().min() > 0


@pytest.mark.parametrize("stop", [1, 5, 11])
def test_a_resumed_run_is_bit_equal(stop, three_images, prior):
    chains = [Chain(image, sample) for sample in range(2) for image in range(3)]
    check_resumed_run(lambda stored: langevin_steps(three_images, prior, chains, resume=stored, **OPTIONS), stop, 12)


def test_on_step_reports_and_can_cancel(three_images, prior):
    seen = []
    langevin(three_images, prior, samples=2, chunk=3, on_step=seen.append, **OPTIONS)
    assert [info.step for info in seen] == list(range(1, 25))
    assert {info.total for info in seen} == {24}
    assert seen[0].sigma == pytest.approx(5)
    assert seen[0].denoised.shape == (3, *SHAPE)

    def cancel(info):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        langevin(three_images, prior, samples=2, on_step=cancel, **OPTIONS)


class Broken(Prior):
    def __init__(self, result):
        super().__init__()
        self.result = result

    def denoise(self, x, sigma):
        return self.result(x)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: x * float("nan"), r"NaN or Inf at level 1 of \d+ \(call 1 of \d+\), sigma = 5"),
        (lambda x: x[..., :2], "must keep shape"),
        (lambda x: x.float(), "must keep shape, dtype"),
    ],
)
def test_a_broken_prior_is_named(result, message, three_images):
    with pytest.raises(ValueError, match=message):
        langevin(three_images, Broken(result), samples=1, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigmas": torch.tensor([1.0, 2.0])}, "sigmas.* must fall"),
        ({"sigmas": torch.tensor([])}, "at least one"),
        ({"sigmas": torch.tensor([1.0, -1.0])}, "finite and positive"),
        ({"sigmas": torch.tensor([float("nan")])}, "finite and positive"),
        ({"c": 0.0}, "step size c"),
        ({"tau": 0}, "tau must be"),
        ({"tau": 1.5}, "tau must be"),
        ({"tau": True}, "tau must be .* but is True"),
        ({"samples": 1.5}, "samples must be"),
        ({"samples": 0}, "samples must be"),
        ({"step": "newtno"}, "unknown step 'newtno'"),
        ({"seed": -1}, "the seed must be"),
        ({"seed": 0.5}, "the seed must be"),
        ({"chunk": 0}, "chunk must be"),
    ],
)
def test_bad_settings(options, message, three_images, prior):
    with pytest.raises(ValueError, match=message):
        langevin(three_images, prior, **{**OPTIONS, **options})
