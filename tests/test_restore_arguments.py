"""What restore() takes as a measurement, its noise and its options, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from restoration_cases import PRIOR, small_restoration
from snips import Restoration, make_operator, restore


@pytest.fixture(scope="module")
def result() -> Restoration:
    return small_restoration()


def test_values_of_any_range():
    given = np.full((16, 16, 3), 127.5)
    result = restore(given, PRIOR, operator="denoise", sigma_0=0.1, value_range=(0, 255), samples=1, nfe=5)
    assert result.problem.y.mean() == 0.5
    with pytest.raises(ValueError, match="an InverseProblem knows"):
        restore(result.problem, PRIOR, value_range=(0, 255))


def test_noise_in_units_of_0_to_255_is_noticed():
    with pytest.raises(ValueError, match=r"Then give 0.09804"):
        restore(np.full((16, 16, 3), 0.5), PRIOR, operator="denoise", sigma_0=25.0)


def test_unknown_sampler(result):
    with pytest.raises(ValueError, match="unknown sampler 'langevni' .did you mean langevin"):
        restore(result.problem, PRIOR, sampler="langevni")


def test_options_that_a_sampler_does_not_know_are_named_with_those_it_does(result):
    with pytest.raises(ValueError, match=r"option of the sampler fast 'nffe' .did you mean nfe.*: nfe, .*chunk"):
        restore(result.problem, PRIOR, nffe=4)
    with pytest.raises(ValueError, match="option of the sampler langevin 'nfe'"):
        restore(result.problem, PRIOR, sampler="langevin", nfe=4)


def test_a_function_is_told_how_to_become_a_prior(result):
    with pytest.raises(ValueError, match="not a function: snips.as_prior"):
        restore(result.problem, lambda x, sigma: x)


@pytest.mark.parametrize("options", [{"samples": True}, {"nfe": True}, {"nfe": 8, "chunk": True}])
def test_truth_values_are_no_numbers(options, result):
    with pytest.raises(ValueError, match="must be a whole number.*but is True"):
        restore(result.problem, PRIOR, **options)


def test_pictures_that_are_too_large_are_called_so():
    with pytest.raises(ValueError, match="^the picture has 9000 x 9000 pixels"):
        restore(np.zeros((9000, 9000), dtype=bool))


def test_photos_of_all_kinds_are_measurements():
    values = np.random.default_rng(0).integers(0, 255, (8, 12, 3), dtype=np.uint8)
    options = {"operator": "sr2", "sigma_0": 0.1, "samples": 2, "nfe": 8}
    from_array = restore(values, "gaussian", **options)
    assert from_array.samples.shape == (2, 1, 3, 16, 24)
    for same in (Image.fromarray(values), torch.tensor(values).permute(2, 0, 1)):
        assert torch.equal(restore(same, "gaussian", **options).samples, from_array.samples)
    batch = restore(torch.rand(2, 1, 8, 8), sigma_0=0.1, samples=2, nfe=8)
    assert batch.samples.shape == (2, 2, 1, 8, 8)


def test_an_operator_may_be_given_with_a_photo():
    operator = make_operator("deblur_uniform", (1, 8, 8), width=3)
    assert (
        restore(np.zeros((8, 8), np.float32), operator=operator, sigma_0=0.1, samples=1, nfe=8).problem.operator
        is operator
    )
    with pytest.raises(ValueError, match="is not a measurement of Deblurring"):
        restore(np.zeros((8, 9), np.float32), operator=operator, sigma_0=0.1)


def test_alpha_of_a_photo_is_kept():
    values = np.full((8, 8, 4), 128, np.uint8)
    result = restore(Image.fromarray(values), "gaussian", operator="sr2", sigma_0=0.1, samples=2, nfe=8)
    assert result.alpha.shape == (1, 1, 16, 16)
    assert result.alpha.unique().tolist() == pytest.approx([128 / 255])


def test_unknown_noise_is_estimated_and_a_guess_warned_about():
    random = torch.Generator().manual_seed(0)
    noisy = 0.5 + 0.1 * torch.randn(1, 96, 96, generator=random)
    result = restore(noisy, "gaussian", samples=1, nfe=8)
    assert result.problem.sigma_0 == pytest.approx(0.1, rel=0.05)
    assert "wavelets" in result.settings["noise"]
    with pytest.warns(UserWarning, match="a guess"):
        restore(noisy[:, :8, :8], "gaussian", samples=1, nfe=8)


def test_a_problem_knows_its_noise(result):
    with pytest.raises(ValueError, match="leave these out"):
        restore(result.problem, PRIOR, sigma_0=0.1)
    with pytest.raises(ValueError, match="a number or auto"):
        restore(np.zeros((8, 8)), sigma_0="much")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operator": np.eye(4)}, "operator takes .* not a ndarray: snips.as_operator"),
        ({"operator": 3}, "operator takes .* not a int"),
        ({"sigma_0": [0.1]}, "sigma_0 must be a finite number"),
        ({"sigma_0": "loud"}, "a number or auto"),
        ({"value_range": 5}, "value_range takes two numbers"),
        ({"value_range": (0, 1, 2)}, "value_range takes two numbers"),
        ({"prior": 3}, "prior takes .* not a int: snips.as_prior"),
    ],
)
def test_arguments_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        restore(np.zeros((8, 8)), **{"sigma_0": 0.1, "samples": 1, "nfe": 4, **options})


def test_auto_in_capitals():
    noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((64, 64))
    found = restore(noisy, "gaussian", sigma_0=" AUTO ", samples=1, nfe=4)
    assert found.problem.sigma_0 == pytest.approx(0.1, rel=0.1)
