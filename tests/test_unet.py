"""Our denoiser network: any size, any form of sigma, the linear limit, and its files."""

import dataclasses

import pytest
import torch
from safetensors.torch import save_file

from snips.experiments.datasets import photographs
from snips.priors.registry import load_prior
from snips.priors.unet import FORMAT, UNet, UNetConfig, load_unet, save_unet
from snips.priors.wiener import Wiener

TINY = UNetConfig(channels=(1, 3), widths=(8, 8, 16), encoder=(1, 1, 1), decoder=(1, 1, 1))
FIXED = dataclasses.replace(TINY, channels=(3,), size=(16, 24))


def awake(config: UNetConfig, seed: int = 0) -> UNet:
    """A network with no weight at zero, so that every layer matters."""
    torch.manual_seed(seed)
    model = UNet(config).eval().requires_grad_(False)
    for p in model.parameters():
        p.add_(0.1 * torch.randn(p.shape))
    return model


def images(count: int, channels: int, height: int, width: int) -> torch.Tensor:
    return torch.rand(count, channels, height, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(16, 16), (17, 24), (5, 31), (1, 1), (40, 8)])
def test_any_size(channels, size):
    x = images(2, channels, *size)
    out = awake(TINY).denoise(x, 0.1)
    assert out.shape == x.shape
    assert out.isfinite().all()


@pytest.mark.parametrize("sigma", [0.1, 0.5, 2.0])
def test_padding_does_not_spoil_the_border(sigma):
    """121 pixels are padded by 7 on the right and below. Turned by 180 degrees the same pixels lie at the other border,
    which has no padding; they come out as well there."""
    prior, clean = load_prior("natural"), photographs()[..., :121, :121]
    noisy = clean + sigma * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    padded = prior.denoise(noisy, sigma) - clean
    turned = prior.denoise(noisy.flip(-1, -2), sigma).flip(-1, -2) - clean
    error, without = (
        torch.cat([e[..., -8:].flatten(), e[..., -8:, :].flatten()]).square().mean() for e in (padded, turned)
    )
    assert error < 1.1 * without


@pytest.mark.parametrize("config", [TINY, FIXED])
def test_sigma_per_image_equals_sigma_alone(config):
    model, x, sigma = awake(config), images(3, 3, 16, 24), torch.tensor([0.02, 0.5, 30.0])
    together = model.denoise(x, sigma)
    for i, s in enumerate(sigma):
        for form in (float(s), s, s[None]):
            torch.testing.assert_close(together[i : i + 1], model.denoise(x[i : i + 1], form), rtol=1e-4, atol=1e-5)


def test_one_sigma_serves_the_whole_batch():
    model, x = awake(TINY), images(3, 3, 16, 16)
    torch.testing.assert_close(model.denoise(x, 0.3), model.denoise(x, torch.full((3,), 0.3)), rtol=1e-4, atol=1e-5)


def test_wrong_channels_and_wrong_sigma_are_errors():
    model = awake(FIXED)
    with pytest.raises(ValueError, match="C in"):
        model.denoise(images(2, 1, 16, 16), 0.1)
    with pytest.raises(ValueError, match="sigma"):
        model.denoise(images(2, 3, 16, 16), torch.tensor([0.1, 0.2, 0.3]))


def test_dtype_of_the_image_is_kept():
    assert awake(TINY).denoise(images(1, 3, 16, 16).double(), 0.1).dtype == torch.float64


@pytest.mark.parametrize("config", [TINY, FIXED])
def test_huge_noise_gives_the_mean_whatever_the_network_says(config):
    model = awake(config)
    model.fit_linear(images(2000, 3, 16, 24) * 0.3)
    x = 1e5 * torch.randn(2, 3, 16, 24, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model.denoise(x, 1e5), torch.full_like(x, 0.15), rtol=0, atol=0.03)


def test_linear_limit_beyond_the_trained_levels():
    model, x = awake(FIXED), 400 * images(1, 3, 16, 24)
    model.fit_linear(images(200, 3, 16, 24))
    linear, *_ = model.wiener["3"](x, 400.0)
    assert (model.denoise(x, 400.0) - linear).abs().max() < 0.02 * (model.denoise(x, 20.0) - linear).abs().max()


def test_unusual_images_do_not_overflow():
    """Twenty gated blocks in a row square what is large, were it not normalised."""
    model = awake(dataclasses.replace(FIXED, encoder=(4, 3, 3), decoder=(4, 3, 3)))
    assert model.denoise(1e4 * images(1, 3, 16, 24), 0.01).isfinite().all()


def test_little_noise_leaves_the_image():
    x = images(2, 3, 16, 24)
    torch.testing.assert_close(UNet(FIXED).denoise(x, 1e-4), x, rtol=0, atol=1e-3)


def test_wiener_is_the_best_linear_estimate_of_gaussian_data():
    """With the covariance in the low frequencies alone, the filter is the matrix formula."""
    random = torch.Generator().manual_seed(0)
    wiener = Wiener(1, (8, 8)).double()
    mixing = torch.randn(64, 64, generator=random).double() / 8
    data = (0.5 + torch.randn(4000, 64, generator=random).double() @ mixing.T).view(-1, 1, 8, 8)
    wiener.fit(data)
    flat = data.flatten(1)
    mean, covariance = flat.mean(0), (flat - flat.mean(0)).T @ (flat - flat.mean(0)) / len(flat)
    x, sigma = data[:5], 0.7
    gain = covariance @ torch.linalg.inv(covariance + sigma**2 * torch.eye(64))
    estimate, _, rms = wiener(x, sigma)
    torch.testing.assert_close(estimate.flatten(1), mean + (x.flatten(1) - mean) @ gain.T, rtol=0, atol=1e-5)
    expected = sigma**2 * torch.trace(gain) / 64
    assert rms.item() == pytest.approx(expected.sqrt().item(), rel=1e-5)


def test_white_images_have_equal_power_everywhere():
    """The covariance of 20000 white images of 8 x 8 is the identity; its largest error is about 5 / sqrt(20000)."""
    random = torch.Generator().manual_seed(0)
    wiener = Wiener(1, (8, 8))
    data = (0.5 + torch.randn(20000, 64, generator=random) @ torch.randn(64, 64, generator=random) / 8).view(
        -1, 1, 8, 8
    )
    wiener.fit(data)
    _, white, _ = wiener(data + 0.3 * torch.randn(data.shape, generator=random), 0.3)
    torch.testing.assert_close(torch.cov(white.flatten(1).T), torch.eye(64), rtol=0, atol=0.05)


def test_wiener_law_recovers_a_spectrum_and_serves_other_sizes():
    wiener = Wiener(1)
    wiener.law.copy_(torch.tensor([[0.003, 1.8, 0.01]]))
    power = wiener._law_power(32, 32)
    torch.testing.assert_close(wiener._fit_law(power), wiener.law.double(), rtol=1e-5, atol=0)
    assert wiener(images(1, 1, 20, 50), 0.2)[0].shape == (1, 1, 20, 50)


def test_file_round_trip(tmp_path):
    model, x = awake(FIXED), images(2, 3, 16, 24)
    model.fit_linear(images(20, 3, 16, 24))
    save_unet(model, tmp_path / "w.safetensors", {"hours": 1.5})
    loaded = load_unet(tmp_path / "w.safetensors")
    assert loaded.config == model.config
    assert all(p.dtype == torch.float32 for p in loaded.parameters())
    assert torch.equal(loaded.wiener["3"].low_vectors, model.wiener["3"].low_vectors)
    torch.testing.assert_close(loaded.denoise(x, 0.2), model.denoise(x, 0.2), rtol=0, atol=0.01)
    assert [file.name for file in tmp_path.iterdir()] == ["w.safetensors"]


def test_corrupt_and_foreign_files_are_clear_errors(tmp_path):
    path = tmp_path / "w.safetensors"
    save_unet(awake(TINY), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="not a readable"):
        load_unet(path)
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="no U-Net of this package"):
        load_unet(path)
    for config in ({}, {"config": "{}"}, {"config": "[1, 2]"}, {"config": "{"}):
        save_file({"a": torch.zeros(2)}, path, {"format": FORMAT, **config})
        with pytest.raises(ValueError, match="do not fit"):
            load_unet(path)
    with pytest.raises(FileNotFoundError):
        load_unet(tmp_path / "absent.safetensors")
