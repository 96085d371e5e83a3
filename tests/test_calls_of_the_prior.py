"""What samplers ask of a prior: which images it sees, and which noise level it is told."""

from __future__ import annotations

import pytest
import torch

from snips import InverseProblem, make_operator
from snips.priors import Prior, StationaryGaussian
from snips.priors.precision import LowPrecision
from snips.priors.tiled import TiledPrior
from snips.priors.unet import UNet, UNetConfig
from snips.samplers import fast, langevin, matrix_free, red
from snips.samplers.annealed_langevin import noise_of_states
from snips.schedules import geometric

SHAPE = (1, 8, 8)
SIGMAS = geometric(1, 0.05, 6)


class LeftToRight(Prior):
    """Pulls towards a ramp that rises to the right: a mirror image is something else to it. Remembers its calls."""

    def __init__(self, mirrored: bool) -> None:
        super().__init__()
        self.mirrored, self.seen, self.told = mirrored, [], []

    def denoise(self, x, sigma):
        self.seen.append(x.clone())
        self.told.append(sigma)
        return (x + torch.linspace(0, 1, x.shape[-1], dtype=x.dtype)) / 2


@pytest.fixture
def problem():
    return InverseProblem.simulate(make_operator("denoise", SHAPE), torch.rand(1, *SHAPE), 0.1, seed=0)


SAMPLERS = {
    "fast": lambda problem, prior: fast(problem, prior, sigmas=SIGMAS, samples=2),
    "langevin": lambda problem, prior: langevin(problem, prior, sigmas=SIGMAS, tau=1, samples=2),
    "matrix_free": lambda problem, prior: matrix_free(problem, prior, nfe=6, samples=2),
}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_other_call_of_a_mirrored_prior_sees_the_mirror_image(problem, sampler):
    plain, mirrored = LeftToRight(False), LeftToRight(True)
    SAMPLERS[sampler](problem, plain)
    SAMPLERS[sampler](problem, mirrored)
    assert len(plain.seen) == len(mirrored.seen) >= 6
    torch.testing.assert_close(mirrored.seen[0], plain.seen[0])
    torch.testing.assert_close(mirrored.seen[1], plain.seen[1].flip(-1))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_symmetric_prior_is_none_the_wiser(problem, sampler):
    prior = StationaryGaussian.natural(SHAPE)
    expected = SAMPLERS[sampler](problem, prior)
    prior.mirrored = True
    torch.testing.assert_close(SAMPLERS[sampler](problem, prior), expected, atol=1e-5, rtol=1e-5)


def test_red_looks_for_a_fixed_point_and_takes_images_as_they_are(problem):
    plain, mirrored = LeftToRight(False), LeftToRight(True)
    torch.testing.assert_close(*(red(problem, prior, weight=1.0, iterations=4) for prior in (plain, mirrored)))


def test_networks_of_this_package_are_mirrored_also_in_their_wrappings():
    network = UNet(UNetConfig(widths=(8, 8), encoder=(1, 1), decoder=(1, 1)))
    assert network.mirrored
    assert LowPrecision(network).mirrored
    assert TiledPrior(LowPrecision(network)).mirrored
    assert not TiledPrior(LeftToRight(False)).mirrored


@pytest.mark.parametrize("actual", [False, True])
def test_algorithm_1_tells_sigma_or_the_noise_of_its_states(problem, actual):
    prior, tau = LeftToRight(False), 2
    langevin(problem, prior, sigmas=SIGMAS, c=0.1, tau=tau, samples=1, actual_noise=actual)
    expected = noise_of_states(SIGMAS, 0.1, tau)[:-1] if actual else SIGMAS.repeat_interleave(tau).tolist()
    assert prior.told == pytest.approx(expected)
