"""NCSNv2 and NCSNv2Deeper: the authors' numbers, any sigma, and their checkpoint files."""

from __future__ import annotations

import re

import pytest
import torch

from ncsnv2_cases import KINDS, published_file, published_list, reference, reference_network
from snips.priors.ncsnv2 import NCSNv2, NCSNv2Deeper
from snips.priors.ncsnv2_files import load_checkpoint, load_ncsnv2, save_ncsnv2

both = pytest.mark.parametrize("name", list(KINDS))


def assert_reference(network: NCSNv2, name: str) -> None:
    """The score at the labelled noise levels, to 1e-5 of each image's largest value and of its norm."""
    _, case = reference(name)
    score = network.score(case["input"], network.sigmas[case["labels"]])
    for ours, theirs in zip(score, case["output"], strict=True):
        assert (ours - theirs).abs().max() < 1e-5 * theirs.abs().max()
        assert (ours - theirs).norm() < 1e-5 * theirs.norm()


@both
def test_score_is_the_authors(name):
    assert_reference(reference_network(name), name)


@both
def test_denoise_is_in_the_units_of_the_reference_score(name):
    """Images in [0, 1] and sigma in the same units: x + sigma^2 score, without a factor for the inner [-1, 1]."""
    network, (_, case) = reference_network(name), reference(name)
    sigma = network.sigmas[case["labels"]]
    expected = case["input"] + sigma[:, None, None, None] ** 2 * case["output"]
    denoised = network.denoise(case["input"], sigma)
    for ours, theirs in zip(denoised, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * float(theirs.abs().max()))


@pytest.mark.parametrize(("kind", "parameters"), [(NCSNv2, 29_694_083), (NCSNv2Deeper, 83_445_379)])
def test_the_published_size(kind, parameters):
    """Names as in the reference, and its shapes with 128 in place of 8."""
    with torch.device("meta"):
        network = kind()
    weights, _ = reference(kind.name)
    state = network.state_dict()
    assert state.keys() == weights.keys()
    for name in state.keys() - {"sigmas"}:
        assert tuple(state[name].shape) == tuple(n if n < 8 else 16 * n for n in weights[name].shape), name
    assert sum(p.numel() for p in network.parameters()) == parameters


@both
def test_default_noise_levels_are_the_published(name):
    torch.testing.assert_close(KINDS[name](ngf=2).sigmas, reference(name)[0]["sigmas"], rtol=1e-6, atol=0)


@both
def test_any_form_of_sigma_and_score_agree(name):
    network, x = reference_network(name).double(), torch.rand(2, 3, 16, 24, dtype=torch.float64)
    sigma = torch.tensor([0.037, 400.0], dtype=torch.float64)  # neither is among the levels
    together = network.denoise(x, sigma)
    for i, s in enumerate(sigma):
        for form in (float(s), s, s[None]):
            torch.testing.assert_close(together[i : i + 1], network.denoise(x[i : i + 1], form))
    through_denoise = (together - x) / sigma[:, None, None, None] ** 2
    torch.testing.assert_close(network.score(x, sigma), through_denoise)


def test_precision_follows_the_image_and_the_network():
    network, x = reference_network("ncsnv2"), torch.rand(1, 3, 16, 16, dtype=torch.float64)
    single = network.denoise(x, 0.1)
    double = network.double().denoise(x, 0.1)
    assert single.dtype == double.dtype == torch.float64
    assert 0 < (single - double).abs().max() < 1e-4


@pytest.mark.parametrize(
    ("kind", "size"), [(NCSNv2, (4, 4)), (NCSNv2, (10, 14)), (NCSNv2Deeper, (8, 8)), (NCSNv2Deeper, (12, 20))]
)
def test_sizes_that_fit(kind, size):
    x = torch.rand(1, 3, *size)
    denoised = kind(ngf=4).denoise(x, 0.1)
    assert denoised.shape == x.shape
    assert denoised.isfinite().all()


@pytest.mark.parametrize(
    ("kind", "size", "multiple"),
    [(NCSNv2, (15, 16), 2), (NCSNv2, (2, 16), 2), (NCSNv2Deeper, (16, 18), 4), (NCSNv2Deeper, (4, 4), 4)],
)
def test_sizes_that_do_not_fit(kind, size, multiple):
    with pytest.raises(ValueError, match=f"multiples of {multiple}, at least {2 * multiple}"):
        kind(ngf=4).denoise(torch.rand(1, 3, *size), 0.1)


def test_wrong_channels_sigma_and_width():
    network = NCSNv2(ngf=4, channels=1)
    with pytest.raises(ValueError, match=re.escape("(B, 1, H, W)")):
        network.denoise(torch.rand(1, 3, 8, 8), 0.1)
    with pytest.raises(ValueError, match="sigma"):
        network.denoise(torch.rand(2, 1, 8, 8), torch.ones(3))
    with pytest.raises(ValueError, match="ngf"):
        NCSNv2(ngf=1)


def test_every_parameter_learns():
    network = NCSNv2Deeper(ngf=4)
    network.unscaled(torch.rand(2, 3, 16, 16)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


@both
@pytest.mark.parametrize("old", [False, True], ids=["zip", "before_torch_1.6"])
def test_published_checkpoint_gives_its_ema(name, old, tmp_path):
    network = load_checkpoint(published_file(name, tmp_path / "checkpoint_210000.pth", old=old))
    assert type(network) is KINDS[name]
    assert (network.ngf, network.channels) == (8, 3)
    assert not network.training
    assert not any(p.requires_grad for p in network.parameters())
    assert_reference(network, name)


def test_checkpoint_without_ema_gives_its_state(tmp_path):
    entries = published_list("ncsnv2")
    torch.save(entries[:4], tmp_path / "a.pth")
    torch.save(entries[:2], tmp_path / "b.pth")  # the last entry is a dict here, too: the optimiser's
    for file in ("a.pth", "b.pth"):
        loaded = load_checkpoint(tmp_path / file).state_dict()
        for name, value in entries[0].items():
            torch.testing.assert_close(loaded[name.removeprefix("module.")], value, rtol=0, atol=0)


def test_buffers_come_from_the_state_dict(tmp_path):
    entries = published_list("ncsnv2")
    entries[0]["module.sigmas"] = torch.tensor([50.0, 1.0, 0.01])
    torch.save(entries, tmp_path / "c.pth")
    assert load_checkpoint(tmp_path / "c.pth").sigmas.tolist() == pytest.approx([50.0, 1.0, 0.01])


@pytest.mark.parametrize(("kind", "ngf", "channels"), [(NCSNv2, 4, 1), (NCSNv2Deeper, 6, 3), (NCSNv2Deeper, 2, 4)])
def test_recognises_width_and_channels(kind, ngf, channels, tmp_path):
    network = kind(ngf, channels, torch.tensor([2.0, 1.0])).eval()
    torch.save([{f"module.{k}": v for k, v in network.state_dict().items()}], tmp_path / "c.pth")
    loaded = load_checkpoint(tmp_path / "c.pth")
    assert (type(loaded), loaded.ngf, loaded.channels, len(loaded.sigmas)) == (kind, ngf, channels, 2)
    x = torch.rand(1, channels, 8, 8)
    torch.testing.assert_close(loaded.denoise(x, 0.3), network.denoise(x, 0.3), rtol=0, atol=0)


def _lose(entries):
    del entries[4], entries[0]["module.res3.0.conv1.weight"]


def _with(index, name, value):
    return lambda entries: entries[index].__setitem__(name, value)


DAMAGES = {
    "lost": (_lose, "lacks res3.0.conv1.weight"),
    "lost_in_ema": (lambda e: e[4].pop("res1.0.conv1.bias"), "EMA shadow .* differ in res1.0.conv1.bias"),
    "no_shadow": (lambda e: e.__setitem__(4, 7), "EMA shadow"),
    "foreign_in_ema": (_with(4, "sigmas", torch.ones(500)), "EMA shadow .* sigmas"),
    "foreign": (_with(0, "module.res31.0.conv1.bias", torch.ones(8)), "foreign res31.0.conv1.bias"),
    "shape": (_with(4, "res2.0.conv1.bias", torch.ones(9)), "another shape for res2.0.conv1.bias"),
    "nan": (_with(4, "end_conv.bias", torch.tensor([0.0, torch.nan, 0.0])), "no finite numbers in end_conv.bias"),
    "integers": (_with(4, "end_conv.bias", torch.ones(3, dtype=torch.int64)), "no finite numbers in end_conv.bias"),
    "other_network": (lambda e: e[0].clear(), "another network than NCSNv2"),
    "no_tensor": (_with(0, "module.sigmas", 3.0), "more than names to tensors"),
    "no_list": (lambda e: e.__setitem__(0, 3), "no published NCSNv2 checkpoint"),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_loading_is_strict(damage, tmp_path):
    change, message = DAMAGES[damage]
    entries = published_list("ncsnv2")
    change(entries)
    torch.save(entries, tmp_path / "c.pth")
    with pytest.raises(ValueError, match=message) as caught:
        load_checkpoint(tmp_path / "c.pth")
    assert str(tmp_path / "c.pth") in str(caught.value)
    assert "\n" not in str(caught.value)


@both
def test_safetensors_round_trip(name, tmp_path):
    save_ncsnv2(reference_network(name), tmp_path / "w.safetensors")
    loaded = load_ncsnv2(tmp_path / "w.safetensors")
    assert type(loaded) is KINDS[name]
    for key, value in reference(name)[0].items():
        torch.testing.assert_close(loaded.state_dict()[key], value, rtol=0, atol=0)


def test_loaded_weights_keep_nothing_of_the_file_alive(tmp_path):
    """Tensors that share memory in the file are separate afterwards: safetensors refuses shared ones."""
    entries = published_list("ncsnv2")
    flat = torch.cat([value.flatten() for value in entries[4].values()])
    sizes = [value.numel() for value in entries[4].values()]
    shared = zip(entries[4].items(), flat.split(sizes), strict=True)
    entries[4] = {name: part.view(value.shape) for (name, value), part in shared}
    torch.save(entries, tmp_path / "c.pth")
    network = load_checkpoint(tmp_path / "c.pth")
    assert all(p.untyped_storage().nbytes() == 4 * p.numel() for p in network.parameters())
    save_ncsnv2(network, tmp_path / "w.safetensors")
    assert_reference(load_ncsnv2(tmp_path / "w.safetensors"), "ncsnv2")
