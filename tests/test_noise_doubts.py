"""Where an estimate of the noise is a guess, and for which reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from skimage import data

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


def test_the_page_says_what_was_measured():
    root = Path(__file__).parents[1]
    found = json.loads((root / "benchmarks" / "results" / "noise.json").read_text())["results"]
    page = " ".join((root / "docs" / "photos.md").read_text(encoding="utf-8").split())
    assert f"It was in {found['close']} of {found['trusted']} crops" in page
    assert f"up to {found['largest_ratio']:.1f} times too much" in page
