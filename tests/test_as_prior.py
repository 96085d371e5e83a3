"""Networks of others as priors: the same estimate as the exact one, whatever they predict and in what units."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import snips
from snips import StationaryGaussian, as_prior
from snips.priors.denoiser import ForeignDenoiser

SHAPE = (3, 8, 8)


@pytest.fixture(scope="module")
def exact() -> StationaryGaussian:
    return StationaryGaussian.natural(SHAPE)


class Module(nn.Module):
    """A network (x, sigma) -> denoised with weights, around an exact denoiser."""

    def __init__(self, exact):
        super().__init__()
        self.exact, self.one = exact, nn.Parameter(torch.ones(()))

    def forward(self, x, sigma):
        assert x.dtype == torch.float32
        return self.one * self.exact.denoise(x, sigma)


def scaled(exact, black, white):
    """The denoiser of the same images with other values for black and white."""
    contrast = white - black
    return lambda x, sigma: contrast * exact.denoise((x - black) / contrast, sigma / contrast) + black


LEVELS = torch.logspace(1, -2, 40)

CASES = {
    "function": lambda p: as_prior(lambda x, sigma: p.denoise(x, sigma)),
    "module": lambda p: as_prior(Module(p)),
    "minus_one_to_one": lambda p: as_prior(scaled(p, -1, 1), value_range=(-1, 1)),
    "bytes": lambda p: as_prior(scaled(p, 0, 255), value_range=(0, 255)),
    "sigma_in_bytes": lambda p: as_prior(lambda x, sigma: p.denoise(x, sigma / 255), sigma_scale=255),
    "score": lambda p: as_prior(lambda x, sigma: p.score(x, sigma), kind="score"),
    "noise": lambda p: as_prior(lambda x, sigma: -sigma * p.score(x, sigma), kind="noise"),
    "score_minus_one_to_one": lambda p: as_prior(
        lambda x, sigma: (scaled(p, -1, 1)(x, sigma) - x) / sigma**2, kind="score", value_range=(-1, 1)
    ),
    "labelled": lambda p: as_prior(lambda x, i: p.score(x, LEVELS[i[0]]), sigmas=LEVELS),
}


@pytest.mark.parametrize("name", CASES)
def test_estimates_are_the_exact_ones(name, exact):
    prior = CASES[name](exact)
    x = exact.sample(2, seed=1) + torch.randn(2, *SHAPE)
    for sigma in (float(LEVELS[20]), float(LEVELS[5])):
        torch.testing.assert_close(prior.denoise(x, sigma), exact.denoise(x, sigma), rtol=0, atol=2e-4)
    both = torch.tensor([LEVELS[20], LEVELS[5]])
    torch.testing.assert_close(prior.denoise(x, both), exact.denoise(x, both), rtol=0, atol=2e-4)


def test_float64_images_meet_float32_weights(exact):
    out = as_prior(Module(exact)).denoise(torch.rand(1, *SHAPE, dtype=torch.float64), 0.1)
    assert out.dtype == torch.float64


def test_blind_is_recognised_by_its_signature(exact):
    prior = as_prior(lambda x: exact.denoise(x, 0.1))
    x = torch.rand(1, *SHAPE)
    assert prior.kind == "blind"
    torch.testing.assert_close(prior.denoise(x, 5.0), exact.denoise(x, 0.1))
    assert as_prior(Module(exact)).kind == "denoiser"
    assert as_prior(nn.Conv2d(3, 3, 3, padding=1)).kind == "blind"


def test_outside_the_noise_levels_it_knows(exact):
    calls = []

    def denoiser(x, sigma):
        calls.append(sigma)
        return exact.denoise(x, sigma)

    prior = as_prior(denoiser, sigma_range=(0.05, 0.5))
    x = torch.rand(1, *SHAPE)
    torch.testing.assert_close(prior.denoise(x, 2.0), StationaryGaussian.natural(SHAPE).denoise(x, 2.0))
    torch.testing.assert_close(prior.score(x, 0.01), exact.score(x, 0.05), rtol=1e-2, atol=1e-2)
    assert calls == [0.05]


def test_a_network_stays_its_owners(exact):
    network = Module(exact).train()
    seen = []
    network.register_forward_hook(lambda *_: seen.append(network.training))
    as_prior(network).denoise(torch.rand(1, *SHAPE), 0.1)
    assert seen == [False]
    assert network.training
    assert network.one.requires_grad


def test_a_network_that_fails_is_named(exact):
    def picky(x, sigma):
        raise RuntimeError("sizes must be multiples of 32")

    with pytest.raises(ValueError, match=r"picky failed for images \(1, 3, 8, 8\) at sigma = 0.1: .*multiples of 32"):
        as_prior(picky).denoise(torch.rand(1, *SHAPE), 0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "noise", "sigmas": [1.0, 0.1]}, "leave one of them out"),
        ({"sigma_scale": 255, "sigmas": [1.0, 0.1]}, "leave out sigma_scale"),
        ({"scheduler": object(), "value_range": (0, 1), "sigma_scale": 255}, "leave out value_range, sigma_scale"),
    ],
)
def test_options_without_effect_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        as_prior(lambda x, sigma: x, **options)


def test_priors_pass_through(exact):
    assert as_prior(exact) is exact


def test_samples_are_those_of_the_exact_prior(exact):
    problem = snips.InverseProblem.simulate(snips.make_operator("sr2", SHAPE), exact.sample(1, seed=2), 0.1)
    prior = CASES["minus_one_to_one"](exact)
    a, b = (snips.restore(problem, p, samples=2, nfe=20).samples for p in (prior, exact))
    torch.testing.assert_close(a, b, rtol=0, atol=1e-3)


BAD = {
    "shape check": lambda x, sigma: x[..., 1:],
    "dtype check": lambda x, sigma: x.double(),
    "device check": lambda x, sigma: torch.empty_like(x, device="meta"),
    "output check": lambda x, sigma: x.numpy(),
}


@pytest.mark.parametrize("check", BAD)
def test_a_denoiser_that_changes_things_is_named(check):
    with pytest.raises(ValueError, match=f"^{check}: <lambda>") as caught:
        as_prior(BAD[check]).denoise(torch.rand(1, *SHAPE), 0.1)
    assert "\n" not in str(caught.value)


def test_refused_with_one_line(exact):
    with pytest.raises(ValueError, match="a str cannot denoise"):
        as_prior("denoiser")
    with pytest.raises(ValueError, match="did you mean score"):
        as_prior(Module(exact), kind="skore")
    with pytest.raises(ValueError, match="rising ranges"):
        as_prior(Module(exact), value_range=(1, 0))
    with pytest.raises(ValueError, match="positive and finite"):
        as_prior(Module(exact), sigmas=[1.0, 0.0])
    with pytest.raises(ValueError, match="2 noise levels for 3 images"):
        as_prior(Module(exact)).denoise(torch.rand(3, *SHAPE), torch.tensor([0.1, 0.2]))
    with pytest.raises(ValueError, match="device check: Module is on meta"):
        ForeignDenoiser(Module(copy.deepcopy(exact)).to("meta")).denoise(torch.rand(1, *SHAPE), 0.1)


def test_deepinv_denoisers():
    from deepinv_cases import deepinv

    prior = as_prior(deepinv.models.MedianFilter())
    x = torch.rand(2, *SHAPE)
    torch.testing.assert_close(prior.denoise(x, 0.1), deepinv.models.MedianFilter()(x, 0.1))
    drunet = deepinv.models.DRUNet(in_channels=3, out_channels=3, pretrained=None, nc=[4, 8, 8, 8], nb=1)
    torch.testing.assert_close(as_prior(drunet).denoise(x, 0.1), drunet(x, 0.1))
