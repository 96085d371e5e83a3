"""Where an estimate of the noise is a guess, and for which reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from skimage import data

from snips.operators import Inpainting, MaskedTransform
from snips.posing.noise import estimate_noise
from snips.problems import make_operator

DENOISE = make_operator("denoise", (1, 64, 64))


@pytest.mark.parametrize("picture", [torch.full((64, 64), 0.3), torch.linspace(0, 1, 64).expand(64, 64)])
def test_a_picture_without_detail(picture):
    found = estimate_noise(DENOISE, picture.reshape(1, 1, 64, 64))
    assert found.sigma_0 < 1e-12
    assert found.doubt == "the picture is too even to tell anything of noise"


def test_noise_that_is_cut_off_at_black():
    clean = torch.from_numpy(data.camera()[224:288, 224:288] / 255.0)[None, None]  # a dark coat
    noisy = clean + 0.1 * torch.randn(clean.shape, dtype=torch.float64)
    assert estimate_noise(DENOISE, noisy).doubt == ""
    found = estimate_noise(DENOISE, noisy.clamp(0, 1))
    assert found.sigma_0 < 0.08
    assert "30% of the values are black or white, where noise is cut off" in found.doubt


def test_trusted_to_twenty_per_cent():
    clean = torch.from_numpy(data.camera()[:64, :64] / 255.0)[None, None]
    found = estimate_noise(DENOISE, clean + 0.1 * torch.randn(clean.shape, dtype=torch.float64))
    assert found.sigma_0 == pytest.approx(0.1, rel=0.2)
    assert "(to about twenty per cent)" in str(found)


def photo_with_noise(side=64):
    clean = torch.from_numpy(data.camera()[200 : 200 + side, 200 : 200 + side] / 255.0)[None, None]
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return clean, 0.1 * noise


def test_entries_that_were_not_measured_say_nothing_of_noise():
    """Zeros in half of the places are neither fine detail nor measured without noise: as if they were left out of y."""
    clean, noise = photo_with_noise()
    seen = torch.rand(64, 64, generator=torch.Generator().manual_seed(4)) < 0.5
    left_out, zeros = Inpainting((1, 64, 64), seen), MaskedTransform((1, 64, 64), seen)
    expected, found = (estimate_noise(operator, operator(clean + noise)) for operator in (left_out, zeros))
    assert found.method == expected.method == "residuals under a Gaussian model of photographs"
    assert found.sigma_0 == pytest.approx(expected.sigma_0, rel=0.05)


def test_coefficients_that_were_not_measured_say_nothing_of_noise():
    clean, noise = photo_with_noise()
    seen = torch.rand(1, 64, 64, generator=torch.Generator().manual_seed(4)) < 0.5
    operator = MaskedTransform((1, 64, 64), seen, "hadamard")
    assert estimate_noise(operator, operator(clean) + noise * seen).sigma_0 == pytest.approx(0.1, rel=0.3)


def test_coefficients_are_not_taken_for_a_picture():
    """All of them: the wavelets of a Hadamard transform are those of the image, not noise."""
    clean, noise = photo_with_noise()
    operator = MaskedTransform((1, 64, 64), torch.ones(1, 64, 64), "hadamard")
    assert "wavelets" not in estimate_noise(operator, operator(clean) + noise).method


def test_a_hole_in_a_picture_leaves_its_wavelets():
    clean, noise = photo_with_noise(128)
    seen = torch.ones(1, 128, 128)
    seen[:, 40:60] = 0
    operator = MaskedTransform((1, 128, 128), seen)
    found = estimate_noise(operator, operator(clean + noise))
    assert "wavelets" in found.method
    assert found.sigma_0 == pytest.approx(0.1, rel=0.2)


def test_the_page_says_what_was_measured():
    root = Path(__file__).parents[1]
    found = json.loads((root / "benchmarks" / "results" / "noise.json").read_text())["results"]
    page = " ".join((root / "docs" / "photos.md").read_text(encoding="utf-8").split())
    assert f"up to {found['largest_ratio']:.1f} times too much" in page
