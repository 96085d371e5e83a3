"""The parts of training: random numbers, learning rate, loss, noise levels, averages, the optimiser's update."""

from dataclasses import replace

import pytest
import torch

from snips.priors.ncsnv2 import NCSNv2
from snips.training.ema import PowerAverage
from snips.training.loop import keyed, learning_rate
from snips.training.loss import NoiseLevels, score_matching_loss
from snips.training.optim import orthogonal
from training_cases import small_settings


@pytest.fixture
def settings(tmp_path):
    return small_settings(tmp_path)


def test_score_matching_loss_is_that_of_the_paper():
    """sigma^2 / 2 |score + n / sigma|^2 per pixel, and 0 for a network that knows the noise."""
    network, random = NCSNv2(ngf=4).requires_grad_(False), torch.Generator().manual_seed(0)
    clean, noise = torch.rand(2, 3, 8, 8, generator=random), torch.randn(2, 3, 8, 8, generator=random)
    sigma = torch.tensor([0.3, 4.0])
    wide = sigma[:, None, None, None]
    score = network.score(clean + wide * noise, sigma)
    expected = (wide**2 * (score + noise / wide) ** 2).mean() / 2
    torch.testing.assert_close(score_matching_loss(network, clean, noise, sigma), expected)
    network.unscaled = lambda x: -noise
    assert score_matching_loss(network, clean, noise, sigma) == 0


def test_random_numbers_depend_on_seed_and_step_alone():
    first = torch.rand(3, generator=keyed(0, 5))
    assert torch.equal(first, torch.rand(3, generator=keyed(0, 5)))
    assert not torch.equal(first, torch.rand(3, generator=keyed(0, 6)))
    assert not torch.equal(first, torch.rand(3, generator=keyed(1, 5)))


def test_learning_rate_is_a_trapezoid(settings):
    open_ended = replace(settings, steps=None, lr=1.0)
    assert [learning_rate(open_ended, i) for i in (0, 1, 10**6)] == [0.5, 1.0, 1.0]
    ending = replace(settings, steps=10, cooldown=4, lr=1.0)
    assert [learning_rate(ending, i) for i in (5, 6, 8, 9)] == [1.0, 1.0, 0.5, 0.25]


def test_noise_levels_keep_their_shares():
    levels = NoiseLevels((0.01, 0.1, 10.0), (0.25, 0.75))
    sigma = levels.draw(400, torch.Generator().manual_seed(0))
    assert (sigma < 0.1).sum() == 100
    assert sigma.min() >= 0.01
    assert sigma.max() <= 10


def test_power_average_is_the_weighted_mean():
    """gamma = 0 is the plain mean of the weights after each step."""
    model = torch.nn.Linear(1, 1, bias=False)
    average = PowerAverage(model, 0.0)
    for step, value in enumerate([3.0, 5.0, 10.0], 1):
        model.weight.data.fill_(value)
        average.update(model, step)
    assert average.weights[0].item() == pytest.approx(6.0)


@pytest.mark.parametrize("products", [torch.float32, torch.bfloat16])
def test_orthogonal_update_has_singular_values_near_one(products):
    matrix = torch.randn(12, 30, generator=torch.Generator().manual_seed(0)).to(products)
    for update in (orthogonal(matrix), orthogonal(matrix.T).T):
        values = torch.linalg.svdvals(update.float())
        assert values.min() > 0.5
        assert values.max() < 1.3
