"""NCSNv2 and NCSNv2Deeper, the score networks of Song and Ermon (2020) that the paper samples with.

A RefineNet n(x) that does not see the noise level. Trained on x = clean + sigma noise with clean in [0, 1] so that
n(x) / sigma meets -noise / sigma, it gives the score in units of [0, 1] pixels for every sigma,

    score(x, sigma) = n(x) / sigma,        denoise(x, sigma) = x + sigma n(x).

The map to [-1, 1] before the first layer is the network's own affair: no factor 2 appears in the score. The first
sigma is the largest distance between two training images: 90 for 64x64x3 pixels in [0, 1], whose diagonal is 111.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snips.priors.base import Prior, per_image
from snips.schedules import geometric


@dataclass(frozen=True)
class Stage:
    """Two residual blocks; the first may halve the resolution, or all 3x3 convolutions may be dilated."""

    width: int  # in units of ngf
    halve: bool = False
    dilation: int = 1


class InstanceNormPlus(nn.Module):
    """gamma (instance_norm(x) + alpha m) + beta, m the channels' means, standardised across the channels.

    Plain instance norm forgets the means, and with them the colours.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.alpha, self.gamma = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))
        self.beta = nn.Parameter(torch.zeros(width))
        if not self.alpha.is_meta:  # there it would import PyTorch's compiler, which takes seconds
            nn.init.normal_(self.alpha, 1.0, 0.02)
            nn.init.normal_(self.gamma, 1.0, 0.02)

    def forward(self, x: Tensor) -> Tensor:
        means = x.mean((2, 3))  # (B, C)
        spread = (means.var(1, keepdim=True) + 1e-5).sqrt()
        means = (means - means.mean(1, keepdim=True)) / spread
        shift = torch.addcmul(self.beta, self.gamma * self.alpha, means)
        return torch.addcmul(shift[..., None, None], self.gamma[:, None, None], F.instance_norm(x))


class HalvingConv(nn.Module):
    """A convolution, then means over 2x2 pixels."""

    def __init__(self, width: int, out: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, out, kernel, padding=kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(self.conv(x), 2)


class ResidualBlock(nn.Module):
    """shortcut(x) + leave(act(norm(conv1(act(norm(x))))))."""

    def __init__(self, width: int, dilation: int, leave: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.normalize1 = InstanceNormPlus(width)
        self.conv1 = _conv(width, width, dilation)
        self.normalize2 = InstanceNormPlus(width)
        self.conv2 = leave
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv1(F.elu(self.normalize1(x)))
        return self.shortcut(x) + self.conv2(F.elu(self.normalize2(h)))


class ConvUnits(nn.ModuleDict):
    """`units` times x + conv(act(conv(act(x)))), without biases."""

    def __init__(self, width: int, units: int) -> None:
        names = [f"{unit}_{half}_conv" for unit in range(1, units + 1) for half in (1, 2)]
        super().__init__({name: _conv(width, width, bias=False) for name in names})

    def forward(self, x: Tensor) -> Tensor:
        for unit in range(1, len(self) // 2 + 1):
            h = self[f"{unit}_1_conv"](F.elu(x))
            x = x + self[f"{unit}_2_conv"](F.elu(h))
        return x


class Fusion(nn.Module):
    """The sum of convolved inputs, each enlarged to the first one's size."""

    def __init__(self, widths: list[int], out: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(_conv(width, out) for width in widths)

    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        h = self.convs[1](coarse)
        if h.shape[-2:] != fine.shape[-2:]:
            h = F.interpolate(h, size=fine.shape[-2:], mode="bilinear", align_corners=True)
        return self.convs[0](fine) + h


class ChainedPooling(nn.Module):
    """act(x) plus ever wider max-pools of it, each convolved."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(_conv(width, width, bias=False) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = path = F.elu(x)
        for conv in self.convs:
            path = conv(F.max_pool2d(path, 5, stride=1, padding=2))
            x = x + path
        return x


class RefineBlock(nn.Module):
    """Join a stage of the encoder with the refinement so far; the deepest stage has none."""

    def __init__(self, widths: list[int], out: int, units: int) -> None:
        super().__init__()
        self.adapt_convs = nn.ModuleList(ConvUnits(width, 2) for width in widths)
        self.msf = Fusion(widths, out) if len(widths) > 1 else nn.Identity()
        self.crp = ChainedPooling(out)
        self.output_convs = ConvUnits(out, units)

    def forward(self, *inputs: Tensor) -> Tensor:
        adapted = [units(x) for units, x in zip(self.adapt_convs, inputs, strict=True)]
        return self.output_convs(self.crp(self.msf(*adapted)))


class NCSNv2(Prior):
    """The network for images of about 64x64 (CelebA: 29.7 million parameters); height and width must be even.

    Args:
        ngf: the width of the first layer; 128 in the published ones.
        channels: of the images.
        sigmas: (L,) the noise levels of the training, from the largest; part of the state dict. They do not limit
            `denoise`, but beyond them the network has not been trained.
    """

    STAGES: ClassVar = (Stage(1), Stage(2, halve=True), Stage(2, dilation=2), Stage(2, dilation=4))
    SIGMAS: ClassVar = (90.0, 0.01, 500)  # first, last, number

    sigmas: Tensor
    name: str = "ncsnv2"

    def __init__(self, ngf: int = 128, channels: int = 3, sigmas: Tensor | None = None) -> None:
        super().__init__()
        if ngf < 2 or channels < 1:
            raise ValueError(f"the network needs ngf >= 2 and channels >= 1, not {ngf} and {channels}")
        self.ngf, self.channels = ngf, channels
        self.register_buffer("sigmas", (geometric(*self.SIGMAS) if sigmas is None else sigmas).float())
        widths = [ngf, *(ngf * stage.width for stage in self.STAGES)]
        self.begin_conv = _conv(channels, ngf)
        for i, (stage, (width, out)) in enumerate(zip(self.STAGES, pairwise(widths), strict=True), 1):
            self.add_module(f"res{i}", _encoder_stage(stage, width, out))
        for i, (width, out) in enumerate(pairwise(reversed(widths)), 1):
            inputs = [width] if i == 1 else [width, width]
            self.add_module(f"refine{i}", RefineBlock(inputs, out, units=3 if i == len(self.STAGES) else 1))
        self.normalizer = InstanceNormPlus(ngf)
        self.end_conv = _conv(ngf, channels)

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        return x + per_image(sigma, x) * self.unscaled(x)

    def score(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """n(x) / sigma: the same as through `denoise`, without its rounding at small sigma."""
        return self.unscaled(x) / per_image(sigma, x)

    def unscaled(self, x: Tensor) -> Tensor:
        """n(x), sigma times the score, for x (B, C, H, W)."""
        self._check(x)
        h = self.begin_conv(2 * x.to(self.begin_conv.weight.dtype) - 1)
        stages = []
        for i in range(1, len(self.STAGES) + 1):
            h = self.get_submodule(f"res{i}")(h)
            stages.append(h)
        h = self.get_submodule("refine1")(stages.pop())
        for i in range(2, len(self.STAGES) + 1):
            h = self.get_submodule(f"refine{i}")(stages.pop(), h)
        return self.end_conv(F.elu(self.normalizer(h))).to(x.dtype)

    @property
    def stride(self) -> int:
        """Pixels per position of the coarsest stage."""
        return 2 ** sum(stage.halve for stage in self.STAGES)

    def _check(self, x: Tensor) -> None:
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise ValueError(f"this prior takes images (B, {self.channels}, H, W), not {tuple(x.shape)}")
        # A single position has no spatial variance for the norms to divide by.
        if any(n % self.stride or n < 2 * self.stride for n in x.shape[-2:]):
            height, width = x.shape[-2:]
            raise ValueError(
                f"images of {height} x {width} do not fit this network: crop or pad height and width to "
                f"multiples of {self.stride}, at least {2 * self.stride}"
            )


class NCSNv2Deeper(NCSNv2):
    """The network for images of about 128x128 (LSUN: 83.4 million parameters); sizes are multiples of 4."""

    STAGES: ClassVar = (
        Stage(1),
        Stage(2, halve=True),
        Stage(2, halve=True),
        Stage(4, dilation=2),
        Stage(4, dilation=4),
    )
    SIGMAS: ClassVar = (190.0, 0.01, 1086)

    name: str = "ncsnv2deeper"


def _conv(width: int, out: int, dilation: int = 1, bias: bool = True) -> nn.Conv2d:
    return nn.Conv2d(width, out, 3, padding=dilation, dilation=dilation, bias=bias)


def _encoder_stage(stage: Stage, width: int, out: int) -> nn.Sequential:
    d = stage.dilation
    if stage.halve:
        leave, shortcut = HalvingConv(width, out, 3), HalvingConv(width, out, 1)
    else:
        leave, shortcut = _conv(width, out, d), _conv(width, out, d) if d > 1 else nn.Identity()
    second = ResidualBlock(out, d, _conv(out, out, d), nn.Identity())
    return nn.Sequential(ResidualBlock(width, d, leave, shortcut), second)
