"""Tiles: where they go, what they change, and what they cannot do."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from prior_cases import Local
from snips.priors import StationaryGaussian
from snips.priors.precision import LowPrecision
from snips.priors.tiled import TiledPrior, in_tiles
from snips.priors.unet import UNet, UNetConfig


@pytest.mark.parametrize("size", [(32, 200), (137, 65), (160, 160), (20, 30)])
def test_tiles_with_a_wide_margin_change_nothing(size):
    x, prior = torch.rand(2, 3, *size, dtype=torch.float64), Local(radius=16)
    tiled = TiledPrior(prior, side=32, margin=32)
    expected = prior.denoise(x, 0.5)
    prior.largest = 0
    assert torch.allclose(tiled.denoise(x, 0.5), expected, rtol=0, atol=1e-12)
    assert prior.largest <= 96


def test_deviation_is_seen():
    x = torch.rand(1, 1, 128, 128, dtype=torch.float64)
    assert TiledPrior(Local(16), 32, 32).deviation(x, 1.0) < 1e-12
    assert TiledPrior(Local(16), 32, 0).deviation(x, 1.0) > 1e-3


def test_a_network_keeps_its_view_of_the_whole():
    """Only its local part is tiled: at large noise, where the linear filter decides, tiles are not to be seen."""
    torch.manual_seed(0)
    network = (
        UNet(UNetConfig(channels=(3,), widths=(8, 8), encoder=(1, 1), decoder=(1, 1))).double().requires_grad_(False)
    )
    for parameter in network.parameters():  # many begin at zero, and then nothing is left to tile
        torch.nn.init.normal_(parameter, std=0.2)
    tiled, x = TiledPrior(network, 32, 32), torch.rand(1, 3, 130, 100, dtype=torch.float64)
    assert float((network.denoise(x, 0.3) - network.wiener["3"](x, torch.tensor([0.3]))[0]).abs().max()) > 1e-3
    for sigma in (0.05, 1.0, 20.0):
        assert tiled.deviation(x, sigma) < 1e-9
        assert torch.allclose(tiled.denoise(x, sigma), network.denoise(x, sigma), rtol=0, atol=1e-8)


def test_what_cannot_be_tiled():
    with pytest.raises(ValueError, match="multiples of 32"):
        TiledPrior(Local(1), side=50)
    with pytest.raises(ValueError, match="one size"):
        TiledPrior(StationaryGaussian.natural((1, 8, 8)))


def test_small_images_are_one_tile():
    seen = []
    in_tiles(lambda x: seen.append(x.shape) or x, torch.zeros(1, 1, 40, 64), side=32, margin=32)
    assert seen == [(1, 1, 40, 64)]


def test_lower_precision_is_tiled_in_the_same_way():
    """The linear filter stays whole: at large noise tiles change no more than they do in full precision."""
    torch.manual_seed(0)
    network = UNet(UNetConfig(channels=(1,), widths=(8,), encoder=(1,), decoder=(1,)))
    network.fit_linear(F.avg_pool2d(torch.rand(4, 1, 64, 64), 5, 1, 2))
    torch.nn.init.normal_(network.head["1"].weight, std=0.3)
    low = LowPrecision(network)
    x = 2 * torch.randn(1, 1, 128, 96)
    assert TiledPrior(low, 32, 32).deviation(x, 2.0) < 1e-6
    assert (low.denoise(x, 2.0) - network.denoise(x, 2.0)).abs().max() > 1e-6
