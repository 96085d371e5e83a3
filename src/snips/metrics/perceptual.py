"""LPIPS: how different two pictures look, by the features of a classifier (Zhang et al. 2018, version 0.1).

At some layers of AlexNet or VGG16 the feature vectors of each position are scaled to length one; their squared
differences, weighted by a number >= 0 for each channel, are averaged over the positions and added over the layers.
The weights are not part of snips: `snips fetch lpips` gets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from torch import Tensor
from torch.nn import functional as F

from snips.metrics.perceptual_weights import HOW_TO_GET, available, load_weights, weights_file

SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)  # of pixels in [-1, 1], to ImageNet's statistics
TINY = 1e-10


@dataclass(frozen=True)
class Layer:
    """A convolution with ReLU, perhaps after a max-pool; tapped layers are compared."""

    kernel: int
    stride: int = 1
    padding: int = 1
    pool: int | None = None  # the pool's window; its stride is 2
    tapped: bool = True


ALEX = (
    Layer(11, stride=4, padding=2),
    Layer(5, padding=2, pool=3),
    Layer(3, pool=3),
    Layer(3),
    Layer(3),
)
_PLAIN, _LAST = Layer(3, tapped=False), Layer(3)
_FIRST = Layer(3, pool=2, tapped=False)
VGG = (_PLAIN, _LAST, _FIRST, _LAST, *(_FIRST, _PLAIN, _LAST) * 3)

NETWORKS: dict[str, tuple[Layer, ...]] = {"alex": ALEX, "vgg": VGG}
FEWEST_PIXELS = {"alex": 31, "vgg": 16}  # below, the deepest layers are empty


def lpips(a: Tensor, b: Tensor, network: str = "alex") -> Tensor:
    """LPIPS of (B, C, H, W) in [0, 1] with 1 or 3 channels -> (B,); both clamped. 0 means equal."""
    if network not in NETWORKS:
        raise ValueError(f"unknown network {network!r} for LPIPS: choose one of {', '.join(NETWORKS)}")
    if a.shape != b.shape or a.ndim != 4 or a.shape[1] not in (1, 3):
        raise ValueError(
            f"LPIPS compares images (B, 1 or 3, H, W) of one shape, not {tuple(a.shape)}, {tuple(b.shape)}"
        )
    if min(a.shape[-2:]) < FEWEST_PIXELS[network]:
        fewest = FEWEST_PIXELS[network]
        raise ValueError(f"LPIPS needs images of at least {fewest} x {fewest} pixels, not {tuple(a.shape[-2:])}")
    weights = {name: value.to(a) for name, value in _weights(network).items()}
    total = a.new_zeros(len(a))
    pairs = zip(_features(a, network, weights), _features(b, network, weights), strict=True)
    for i, (features_a, features_b) in enumerate(pairs):
        difference = (_unit(features_a) - _unit(features_b)).square()
        total += F.conv2d(difference, weights[f"head.{i}"]).mean((1, 2, 3))
    return total


def lpips_ready(network: str = "alex") -> bool:
    """Whether the weights are here; damaged ones are refused now, and not after the work that LPIPS is to judge."""
    if not available(network):
        return False
    _weights(network)
    return True


@lru_cache(maxsize=2)
def _weights(network: str) -> dict[str, Tensor]:
    weights, layers = load_weights(network), NETWORKS[network]
    needed = {f"conv.{i}.{kind}" for i in range(len(layers)) for kind in ("weight", "bias")}
    needed |= {f"head.{i}" for i in range(sum(layer.tapped for layer in layers))}
    if missing := sorted(needed - weights.keys()):
        raise ValueError(f"{weights_file(network)} is damaged (it has no {missing[0]}): {HOW_TO_GET}")
    return weights


def _features(x: Tensor, network: str, weights: dict[str, Tensor]) -> list[Tensor]:
    """The tapped layers' outputs for x (B, C, H, W) in [0, 1]."""
    shift, scale = (x.new_tensor(values)[:, None, None] for values in (SHIFT, SCALE))
    h = (2 * x.clamp(0, 1) - 1 - shift) / scale  # one channel becomes three equal ones
    tapped = []
    for i, layer in enumerate(NETWORKS[network]):
        h = h if layer.pool is None else F.max_pool2d(h, layer.pool, 2)
        h = F.relu(F.conv2d(h, weights[f"conv.{i}.weight"], weights[f"conv.{i}.bias"], layer.stride, layer.padding))
        if layer.tapped:
            tapped.append(h)
    return tapped


def _unit(features: Tensor) -> Tensor:
    return features / (features.square().sum(1, keepdim=True).sqrt() + TINY)
