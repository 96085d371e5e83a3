"""Priors that return what is no image: one line says what, and where in the plan."""

from __future__ import annotations

import pytest
import torch

from sampler_cases import SHAPE, random_gaussian
from snips import InverseProblem, check_prior, make_operator
from snips.priors import Gaussian, Prior
from snips.priors.tiled import TiledPrior
from snips.samplers import fast, langevin, matrix_free


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    return random_gaussian()


@pytest.fixture
def three_images(prior) -> InverseProblem:
    return InverseProblem.simulate(make_operator("cs4", SHAPE), prior.sample(3, seed=8), 0.1, seed=0)


class BreaksAt(Prior):
    def __init__(self, prior, call):
        super().__init__()
        self.prior, self.call, self.calls = prior, call, 0

    def denoise(self, x, sigma):
        self.calls += 1
        return self.prior.denoise(x, sigma) * (float("nan") if self.calls == self.call else 1)


def test_a_prior_that_returns_nan_is_named(three_images, prior):
    sigmas = torch.tensor([2.0, 1.0, 0.5, 0.25])
    with pytest.raises(ValueError, match=r"NaN or Inf at level 3 of 4 \(call 3 of 4\), sigma = 0\.5: sampling stopped"):
        fast(three_images, BreaksAt(prior, 3), samples=1, sigmas=sigmas)


@pytest.mark.parametrize("sampler", [fast, matrix_free])
def test_a_corrected_level_counts_once(sampler, three_images, prior):
    sigmas = torch.tensor([2.0, 1.0, 1.0, 1.0, 0.5, 0.25])
    with pytest.raises(ValueError, match=r"at level 3 of 4 \(call 5 of 6\), sigma = 0\.5:"):
        sampler(three_images, BreaksAt(prior, 5), samples=1, sigmas=sigmas)


def test_a_level_of_algorithm_1_counts_once(three_images, prior):
    """Also where the denoiser is told the noise of each state."""
    sigmas = torch.tensor([2.0, 1.0])
    with pytest.raises(ValueError, match=r"at level 2 of 2 \(call 4 of 6\), sigma = 0\.\d+:"):
        langevin(three_images, BreaksAt(prior, 4), samples=1, sigmas=sigmas, tau=3, actual_noise=True)


class Wrapped(Prior):
    """Returns what a network of somebody else's might."""

    def __init__(self, wrap):
        super().__init__()
        self.wrap = wrap

    def denoise(self, x, sigma):
        return self.wrap(x)


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda x: (x, None), "returned a tuple: it must return the denoised image, a tensor"),
        (lambda x: None, "returned a NoneType: it must return"),
        (lambda x: x.numpy(), "returned a ndarray: it must return"),
        (lambda x: x[:, :, 1:], r"\(3, 1, 3, 4\) .* must keep shape"),
    ],
)
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_prior_that_returns_no_image_is_named(wrap, message, mirrored, three_images):
    prior = Wrapped(wrap)
    prior.mirrored = mirrored
    with pytest.raises(ValueError, match=message):
        fast(three_images, prior, samples=1, nfe=12)
    with pytest.raises(ValueError, match="returned a" if "returned a" in message else "changed the shape"):
        check_prior(prior, torch.rand(3, *SHAPE))


def test_a_prior_that_returns_no_image_is_named_also_in_tiles():
    with pytest.raises(ValueError, match="returned a tuple"):
        TiledPrior(Wrapped(lambda x: (x,)), side=32, margin=0).denoise(torch.rand(1, 1, 96, 96), 0.1)


def test_numbers_too_large_to_go_on_with_are_named(three_images, prior):
    """They are finite; the step after them is not. Nothing of it is handed out, and so nothing is stored."""

    class Huge(BreaksAt):
        def denoise(self, x, sigma):
            self.calls += 1
            return torch.full_like(x, 1.7e308) if self.calls == self.call else self.prior.denoise(x, sigma)

    steps = []
    told = r"step 12 of 12, sigma = 0\.\d+ ended in NaN or Inf: .* numbers up to 1\.7e\+308"
    with pytest.raises(ValueError, match=told):
        fast(three_images, Huge(prior, 12), samples=1, nfe=12, on_step=steps.append)
    assert [info.step for info in steps] == list(range(1, 12))
