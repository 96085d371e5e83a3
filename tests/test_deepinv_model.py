"""The samplers as a deepinv model: its convention, its evaluation tools, and the same results."""

from __future__ import annotations

import pytest
import torch

from deepinv_cases import COMPUTED, STRUCTURED, P, deepinv
from snips import InverseProblem, StationaryGaussian, as_operator, restore
from snips.integrations.deepinv import SNIPS

OPTIONS = {"samples": 2, "nfe": 8, "seed": 3}


def measured(name):
    physics, shape = {**STRUCTURED, **COMPUTED}[name]()
    physics.set_noise_model(P.GaussianNoise(sigma=0.1))
    prior = StationaryGaussian.natural(shape)
    x = prior.sample(2, seed=1)
    return physics, prior, x, physics(x)


@pytest.mark.parametrize("name", [*STRUCTURED, *COMPUTED])
def test_results_are_exactly_those_of_restore(name):
    physics, prior, x, y = measured(name)
    expected = restore(InverseProblem(as_operator(physics, x.shape[1:]), y, 0.1), prior, **OPTIONS)
    model = SNIPS(prior, **OPTIONS)
    assert torch.equal(model(y, physics), expected.mean)
    assert torch.equal(SNIPS(prior, estimate="sample", **OPTIONS)(y, physics), expected.samples[0])
    assert torch.equal(model.restoration(y, physics).samples, expected.samples)


@pytest.mark.filterwarnings("ignore:non_blocking_transfers")  # deepinv's own, on a CPU
def test_inside_deepinvs_evaluation():
    physics, prior, x, y = measured("inpainting")
    model = SNIPS(prior, **OPTIONS)
    pairs = [{"x": a, "y": b} for a, b in zip(x, y, strict=True)]
    loader = torch.utils.data.DataLoader(pairs, batch_size=2)
    metric = deepinv.metric.PSNR()
    scores = deepinv.test(model, loader, physics, metrics=metric, verbose=False, show_progress_bar=False)
    own = deepinv.metric.PSNR()(model(y, physics), x).mean()
    assert scores["PSNR"] == pytest.approx(float(own), abs=1e-3)
    assert scores["PSNR"] > scores["PSNR no learning"]


def test_deepinv_denoisers_work():
    physics, _, _, y = measured("blur_fft_even")
    out = SNIPS(deepinv.models.MedianFilter(), **OPTIONS)(y, physics)
    assert out.shape == (2, 3, 8, 10)


def test_a_physics_that_changed_is_converted_again():
    physics, prior, _, y = measured("inpainting")
    model = SNIPS(prior, **OPTIONS)
    before = model(y, physics)
    assert torch.equal(model(y, physics), before)
    physics.update(mask=1 - physics.mask)
    assert not torch.equal(model(y, physics), before)


def test_refused_with_one_line():
    physics, prior, _, y = measured("inpainting")
    physics.set_noise_model(P.PoissonNoise())
    with pytest.raises(ValueError, match="PoissonNoise, not GaussianNoise: give SNIPS"):
        SNIPS(prior)(y, physics)
    assert SNIPS(prior, sigma_0=0.1, **OPTIONS)(y, physics).shape == (2, 3, 8, 8)
    with pytest.raises(ValueError, match="'mean' or 'sample'"):
        SNIPS(prior, estimate="median")
