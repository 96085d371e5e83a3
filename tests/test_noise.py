"""Estimates of sigma_0 against noise that is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from skimage import data

from snips import InverseProblem, StationaryGaussian, as_operator, make_operator
from snips.operators import Dense
from snips.posing.noise import estimate_noise


@pytest.fixture(scope="module")
def photo() -> torch.Tensor:
    """A photograph that comes with scikit-image, (1, 3, 256, 256), with many smooth parts."""
    return torch.tensor(data.astronaut()[:256, 128:384].transpose(2, 0, 1).astype(np.float32))[None] / 255


def estimated(photo, name, sigma_0, **options):
    problem = InverseProblem.simulate(make_operator(name, tuple(photo.shape[1:]), **options), photo, sigma_0, seed=0)
    return estimate_noise(problem.operator, problem.y)


@pytest.mark.parametrize("sigma_0", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("name", ["denoise", "inpaint", "deblur_uniform", "deblur_motion", "sr2", "colorize"])
def test_pixel_problems(name, sigma_0, photo):
    found = estimated(photo, name, sigma_0)
    assert found.sigma_0 == pytest.approx(sigma_0, rel=0.1)
    assert "wavelets" in found.method
    assert not found.doubt


def test_fine_texture_is_called_a_guess(photo):
    found = estimated(photo, "denoise", 0.0)
    assert "texture" in found.doubt
    assert "a guess" in str(found)


def test_smooth_noise_is_called_a_guess(photo):
    """Noise that was blurred with the picture hides from the finest wavelets."""
    noisy = photo + 0.1 * torch.randn(photo.shape, generator=torch.Generator().manual_seed(0))
    smooth = torch.nn.functional.avg_pool2d(noisy, 3, stride=1, padding=1)
    found = estimate_noise(make_operator("denoise", tuple(photo.shape[1:])), smooth)
    assert found.sigma_0 < 0.05
    assert found.doubt


@pytest.mark.parametrize("side", [254, 24])
def test_a_singular_blur_of_a_picture(side, photo):
    """Sides of 5 n - 1 pixels make the blur singular, and what it cannot make would count as noise.

    A photo is no blurred image with black beyond its edges: the estimate must be the wavelets' or be called a guess.
    """
    operator = make_operator("deblur_uniform", (3, side, side))
    assert int((operator.singular_values == 0).sum()) > 0
    noisy = photo[..., :side, :side] + 0.1 * torch.randn(3, side, side, generator=torch.Generator().manual_seed(0))
    found = estimate_noise(operator, noisy)
    assert found.doubt or found.sigma_0 == pytest.approx(0.1, rel=0.1)
    assert ("wavelets" in found.method) == (side == 254)


@pytest.mark.parametrize("sigma_0", [0.01, 0.2])
def test_redundant_measurements_need_no_model(sigma_0, photo):
    """Frequencies k and -k of a real image tell the same: their difference is noise. 2 % is 4 standard errors."""
    found = estimated(photo, "mri", sigma_0, acceleration=1.5)
    assert found.sigma_0 == pytest.approx(sigma_0, rel=0.02)
    assert "no image explains" in found.method
    assert not found.doubt


def test_a_tall_matrix_is_redundant():
    random = torch.Generator().manual_seed(0)
    operator = Dense(torch.randn(2000, 64, generator=random), (1, 8, 8))
    problem = InverseProblem.simulate(operator, torch.rand(1, 1, 8, 8, generator=random), 0.05, seed=1)
    assert estimate_noise(operator, problem.y).sigma_0 == pytest.approx(0.05, rel=0.07)  # 4 standard errors


@pytest.mark.parametrize(
    ("name", "options"),
    [("cs4", {}), ("inpaint", {"mask": torch.rand(48, 48, generator=torch.Generator().manual_seed(0)) > 0.5})],
)
@pytest.mark.parametrize("sigma_0", [0.05, 0.2])
def test_residuals_elsewhere(name, options, sigma_0):
    """The model is right here, so the estimate must be; that it rests on the model is still said."""
    shape = (1, 48, 48)
    x = StationaryGaussian.natural(shape).sample(1, seed=3).float()
    found = estimated(x, name, sigma_0, **options)
    assert found.sigma_0 == pytest.approx(sigma_0, rel=0.25)
    assert "rests on that model" in found.doubt


def test_without_an_svd_the_model_tells():
    shape = (1, 24, 24)
    rows = make_operator("cs4", shape).double().as_matrix()
    operator = as_operator(rows, shape, svd=False)
    x = StationaryGaussian.natural(shape).sample(1, seed=3).float()
    problem = InverseProblem.simulate(operator, x, 0.2, seed=0)
    found = estimate_noise(problem.operator, problem.y)
    assert "rests on that model" in found.doubt
    assert found.sigma_0 == pytest.approx(0.2, rel=0.25)


def test_rounding_is_a_floor_and_jpeg_a_doubt(photo):
    operator = make_operator("denoise", (1, 64, 64))
    flat = estimate_noise(operator, torch.full((1, 1, 64, 64), 0.5), step=1 / 255)
    assert flat.sigma_0 == pytest.approx(1 / 255 / 12**0.5)
    assert "rounding" in flat.doubt
    lossy = estimate_noise(make_operator("denoise", tuple(photo.shape[1:])), photo, lossy=True)
    assert "JPEG" in lossy.doubt
