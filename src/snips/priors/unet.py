"""Our denoiser network: a small U-Net, made for CPUs, around a linear Wiener filter.

    denoise(x, sigma) = linear(x, sigma) + c_out(sigma) network(white x, linear, log sigma)

c_out is the error the linear filter expects, so the network's target has unit variance at every noise level
(the preconditioning of Karras et al. 2022, with the filter in place of c_skip x and white x in that of c_in x).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snips.names import is_whole, unknown_name
from snips.priors.base import Prior, per_image
from snips.priors.blocks import BLOCKS, Attention, NoiseLevel, zeroed
from snips.priors.stored import StrPath, read_weights, write_weights
from snips.priors.wiener import Wiener

Residual = Callable[[Tensor, Tensor, Tensor], Tensor]
LARGEST = 2**16  # of a config's counts
FORMAT = "snips-unet-2"  # 1 had no normalisation: its weights fit but mean another function


@dataclass(frozen=True)
class UNetConfig:
    """Everything needed to rebuild the network; stored with its weights."""

    channels: tuple[int, ...] = (3,)  # the channel counts it takes; each has its own first and last layer
    size: tuple[int, int] | None = None  # the size of aligned images (H, W), if there is one
    widths: tuple[int, ...] = (96, 192, 256)  # channels at stride 2, 4, 8
    encoder: tuple[int, ...] = (2, 4, 4)  # blocks per level on the way down
    decoder: tuple[int, ...] = (2, 4, 4)  # and up; at the coarsest level they follow the encoder's
    block: str = "depthwise"  # a name in BLOCKS
    expansion: float = 1.0  # hidden channels of a block over its width
    patch: int = 2  # pixels are folded into channels by this factor first
    attention: bool = False  # one attention layer at the coarsest level
    sigma_data: float = 0.25  # standard deviation of pixels
    sigma_min: float = 0.002  # the range of noise levels in training
    sigma_max: float = 40.0

    def __post_init__(self) -> None:
        """A config may come from a stranger's file: nothing is built before it makes sense."""
        counts = (*self.channels, *self.widths, *self.encoder, *self.decoder, self.patch)
        if not self.widths or not self.channels or not len(self.widths) == len(self.encoder) == len(self.decoder):
            raise ValueError("a U-Net needs channels, and a width and two numbers of blocks for each of its levels")
        if (
            not all(is_whole(count) and 0 <= count <= LARGEST for count in counts)
            or min(*self.channels, self.patch) < 1
        ):
            raise ValueError(f"the counts of a U-Net must be whole numbers up to {LARGEST}, not {counts}")
        if self.block not in BLOCKS:
            raise ValueError(unknown_name("block", self.block, list(BLOCKS)))
        if self.size is not None and not (len(self.size) == 2 and all(map(is_whole, self.size)) and min(self.size) > 0):
            raise ValueError(f"the size of a U-Net's images is None or two whole numbers, not {self.size}")
        scales = (self.expansion, self.sigma_data, self.sigma_min, self.sigma_max)
        if not all(isinstance(scale, int | float) and 0 < scale < math.inf for scale in scales):
            raise ValueError(f"expansion and sigmas of a U-Net must be positive numbers, not {scales}")
        if self.sigma_min >= self.sigma_max:
            raise ValueError(f"sigma_min must be below sigma_max, but they are {self.sigma_min} and {self.sigma_max}")


class UNet(Prior):
    """A learned prior: `denoise(x, sigma)` for x (B, C, H, W) of any size, C one of `config.channels`."""

    mirrored = True  # training flips its images at random

    def __init__(self, config: UNetConfig = UNetConfig()) -> None:  # noqa: B008 (frozen)
        super().__init__()
        self.config = config
        widths, embedding, pixels = config.widths, 128, config.patch**2
        self.wiener = nn.ModuleDict({str(c): Wiener(c, config.size) for c in config.channels})
        self.level = NoiseLevel(embedding)
        self.stem = nn.ModuleDict({str(c): nn.Conv2d(2 * c * pixels, widths[0], 3, padding=1) for c in config.channels})
        self.head = nn.ModuleDict(
            {str(c): zeroed(nn.Conv2d(widths[0], c * pixels, 3, padding=1)) for c in config.channels}
        )
        self.encoder = nn.ModuleList(_stage(config, i, n) for i, n in enumerate(config.encoder))
        self.decoder = nn.ModuleList(_stage(config, i, n) for i, n in enumerate(config.decoder))
        steps = list(pairwise(widths))
        self.down = nn.ModuleList(nn.Conv2d(fine, coarse, 2, stride=2) for fine, coarse in steps)
        self.up = nn.ModuleList(nn.Conv2d(coarse, 4 * fine, 1) for fine, coarse in steps)
        self.attention = Attention(widths[-1]) if config.attention else nn.Identity()
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        return self.estimate(x, sigma)[0].to(x.dtype)

    def estimate(self, x: Tensor, sigma: float | Tensor, residual: Residual | None = None) -> tuple[Tensor, Tensor]:
        """The denoised image, and the error that the linear estimate alone would have (B or 1, 1, 1, 1).

        `residual` stands in for the method of that name, where that shall be computed in another way.
        """
        self._check(x)
        x = x.to(self.level.enter.weight)
        level = per_image(sigma, x)
        linear, white, error = self.wiener[str(x.shape[1])](x, level.flatten())
        # What is not linear in x fades like 1/sigma^2 once the noise exceeds every direction of the data.
        scale = error / (1 + (level / self.config.sigma_max) ** 2)
        return linear + scale * (residual or self.residual)(white, linear, level), error

    def residual(self, white: Tensor, linear: Tensor, level: Tensor) -> Tensor:
        """The network proper: what the linear estimate (B, C, H, W) misses, over its expected error."""
        config, kind, size = self.config, str(linear.shape[1]), linear.shape[-2:]
        seen = torch.cat([white, (linear - 0.5) / config.sigma_data], 1)
        seen = F.pixel_unshuffle(_pad(seen, self.stride), config.patch)
        log_sigma = level.flatten().clamp(config.sigma_min, config.sigma_max).log()
        h = self.stem[kind](seen.contiguous(memory_format=torch.channels_last))
        h = self.head[kind](self._body(h, self.level(log_sigma)))
        return F.pixel_shuffle(h, config.patch)[..., : size[0], : size[1]]

    def _body(self, h: Tensor, level: Tensor) -> Tensor:
        skips = []
        for stage, down in zip(self.encoder, self.down, strict=False):
            h = _run(stage, h, level)
            skips.append(h)
            h = down(h)
        h = self.attention(_run(self.encoder[-1], h, level))
        h = _run(self.decoder[-1], h, level)
        for i in reversed(range(len(skips))):
            h = _run(self.decoder[i], skips[i] + F.pixel_shuffle(self.up[i](h), 2), level)
        return h

    @property
    def stride(self) -> int:
        """Pixels per position of the coarsest level."""
        return self.config.patch * 2 ** (len(self.config.widths) - 1)

    def _check(self, x: Tensor) -> None:
        if x.ndim != 4 or x.shape[1] not in self.config.channels:
            raise ValueError(
                f"this prior takes images (B, C, H, W) with C in {self.config.channels}, not {tuple(x.shape)}"
            )

    def fit_linear(self, images: Tensor) -> None:
        """Set the linear branch for images like these (N, C, H, W)."""
        branch = self.wiener[str(images.shape[1])]
        assert isinstance(branch, Wiener)
        branch.fit(images)


def _stage(config: UNetConfig, level: int, blocks: int) -> nn.ModuleList:
    width = config.widths[level]
    make = BLOCKS[config.block]
    return nn.ModuleList(make(width, round(width * config.expansion), 128) for _ in range(blocks))


def _run(stage: nn.Module, h: Tensor, level: Tensor) -> Tensor:
    for block in stage.children():
        h = block(h, level)
    return h


def _pad(x: Tensor, stride: int) -> Tensor:
    """Up to multiples of the stride, by reflection: replicated pixels are streaks where the network expects noise."""
    across, down = -x.shape[-1] % stride, -x.shape[-2] % stride
    x = F.pad(x, (0, across, 0, 0), mode="reflect" if across < x.shape[-1] else "replicate")
    return F.pad(x, (0, 0, 0, down), mode="reflect" if down < x.shape[-2] else "replicate")


def save_unet(model: UNet, path: StrPath, note: dict[str, Any] | None = None) -> None:
    """Write weights in half precision (the linear branch in full) with the config, whole or not at all."""
    tensors = {
        name: (value if name.startswith("wiener.") else value.half()).detach().cpu().contiguous()
        for name, value in model.state_dict().items()
    }
    write_weights(path, {"format": FORMAT, "config": json.dumps(asdict(model.config))}, tensors, note)


def load_unet(path: StrPath) -> UNet:
    """The network in a file written by `save_unet`, in float32 and ready to denoise."""
    told, tensors = read_weights(path)
    if told.get("format") != FORMAT:
        raise ValueError(f"{path} holds no U-Net of this package (format {told.get('format')!r})")
    try:
        config = parse_config(told.get("config", ""))
        _check_shapes(config, tensors)
        model = UNet(config)
        model.load_state_dict({name: value.float() for name, value in tensors.items()})
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: its weights do not fit its own config ({reason})") from None
    return model.eval().requires_grad_(False)


def _check_shapes(config: UNetConfig, tensors: dict[str, Tensor]) -> None:
    """Before anything is allocated: a false config could ask for blocks without end, or for all memory."""
    blocks = {tuple(name.split(".")[:3]) for name in tensors if name.startswith(("encoder.", "decoder."))}
    if len(blocks) != sum(config.encoder) + sum(config.decoder):
        raise ValueError(f"there are {len(blocks)} blocks, but {config.encoder} and {config.decoder} are told")
    with torch.device("meta"):
        network = UNet(replace(config, size=None)).state_dict()  # what depends on the size is the filter's alone
    if any(name not in tensors or tensors[name].shape != value.shape for name, value in network.items()):
        raise ValueError("names or shapes are others")
    if config.size and any(tensors[f"wiener.{c}.mean_image"].shape != (c, *config.size) for c in config.channels):
        raise ValueError(f"its images are not of {config.size} pixels")


def parse_config(text: str) -> UNetConfig:
    """The config from its JSON form, where tuples have become lists."""
    return UNetConfig(**{name: _tuple(value) for name, value in json.loads(text).items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
