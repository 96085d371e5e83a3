"""PSNR and SSIM, against the definitions and against torchmetrics."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from snips.images import example_image
from snips.integrations.torchvision import register_torchvision_operators
from snips.metrics import psnr, ssim

# torchmetrics 1.9.0, structural_similarity_index_measure(x, y, data_range=1.0) in float64
KNOWN = {"noisy": 0.5960782583, "mirrored": 0.2311761643, "blurred": 0.5802200548}


def changed(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    x = example_image().double()
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    changes = {"noisy": (x + 0.1 * noise).clamp(0, 1), "mirrored": x.flip(-1), "blurred": F.avg_pool2d(x, 5, 1, 2)}
    return x, changes[name]


@pytest.mark.parametrize("name", KNOWN)
def test_ssim_is_that_of_torchmetrics(name):
    assert ssim(*changed(name)).item() == pytest.approx(KNOWN[name], abs=1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_both_agree_with_an_installed_torchmetrics(name):
    register_torchvision_operators()  # torchmetrics imports torchvision where it is
    image = pytest.importorskip("torchmetrics.functional.image", reason="compares with torchmetrics where it is")
    x, y = changed(name)
    theirs = image.structural_similarity_index_measure(x, y, data_range=1.0)
    torch.testing.assert_close(ssim(x, y)[0], theirs, atol=1e-6, rtol=0)
    torch.testing.assert_close(psnr(x, y)[0], image.peak_signal_noise_ratio(x, y, data_range=1.0))


def test_ssim_of_one_constant_pair_by_hand():
    """Without any structure only the brightness counts: (2ab + C1) / (a^2 + b^2 + C1)."""
    a, b = 0.2, 0.7
    found = ssim(*(torch.full((1, 1, 12, 12), value, dtype=torch.float64) for value in (a, b)))
    assert found.item() == pytest.approx((2 * a * b + 1e-4) / (a**2 + b**2 + 1e-4))


def test_ssim_of_each_image_of_a_batch():
    x, noisy = changed("noisy")
    _, blurred = changed("blurred")
    both = ssim(torch.cat([noisy, blurred]), torch.cat([x, x]))
    torch.testing.assert_close(both, torch.cat([ssim(noisy, x), ssim(blurred, x)]))
    torch.testing.assert_close(ssim(x, x), torch.ones(1, dtype=torch.float64))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 3, 8, 8), (1, 3, 8, 9)), "one shape"),
        (((3, 8, 8), (3, 8, 8)), "one shape"),
        (((1, 1, 5, 9),) * 2, "larger"),
    ],
)
def test_ssim_refuses_what_it_cannot_compare(shapes, message):
    with pytest.raises(ValueError, match=message):
        ssim(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.parametrize("truth", [(1, 1, 8, 8), (8, 8), (4, 3, 8, 9)])
def test_psnr_refuses_images_of_other_sizes(truth):
    with pytest.raises(ValueError, match=r"of one size, not \(4, 3, 8, 8\)"):
        psnr(torch.zeros(4, 3, 8, 8), torch.ones(truth))


def test_psnr_of_many_images_with_one_truth():
    assert psnr(torch.zeros(2, 4, 3, 8, 8), torch.full((3, 8, 8), 0.1)).shape == (2, 4)
