"""Blocks of the denoiser network: residual, starting as the identity."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def zeroed(layer: nn.Module) -> nn.Module:
    """The layer with all its weights at zero."""
    for p in layer.parameters():
        nn.init.zeros_(p)
    return layer


class ConvBlock(nn.Module):
    """x + conv(relu(conv(x) * gain + shift)), gain and shift from the noise level; starts as the identity."""

    def __init__(self, width: int, hidden: int, embedding: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(width, hidden, 3, padding=1)
        self.modulate = zeroed(nn.Linear(embedding, 2 * hidden))
        self.leave = zeroed(nn.Conv2d(hidden, width, 3, padding=1))

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        gain, shift = self.modulate(level)[..., None, None].chunk(2, 1)
        return x + self.leave(torch.addcmul(shift, self.enter(x), 1 + gain).relu_())


class DepthwiseBlock(nn.Module):
    """x + point(a relu(b)), (a, b) = depthwise(point(normalised x * gain + shift)): depth for few operations.

    The product lets the block adapt to its surroundings from the first step on. It also squares what is large:
    each position is normalised over its channels first, or one unusual image overflows after some blocks.
    """

    def __init__(self, width: int, hidden: int, embedding: int) -> None:
        super().__init__()
        self.modulate = zeroed(nn.Linear(embedding, 2 * width))
        self.enter = nn.Conv2d(width, 2 * hidden, 1)
        self.spread = nn.Conv2d(2 * hidden, 2 * hidden, 3, padding=1, groups=2 * hidden)
        self.leave = zeroed(nn.Conv2d(hidden, width, 1))

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        gain, shift = self.modulate(level)[..., None, None].chunk(2, 1)
        a, b = self.spread(self.enter(torch.addcmul(shift, _normalised(x), 1 + gain))).chunk(2, 1)
        return x + self.leave(a * b.relu())


def _normalised(x: Tensor) -> Tensor:
    """Mean 0 and variance 1 over the channels of each position; channels are last in memory, so this is one pass."""
    return F.layer_norm(x.permute(0, 2, 3, 1), x.shape[1:2]).permute(0, 3, 1, 2)


BLOCKS = {"conv": ConvBlock, "depthwise": DepthwiseBlock}


class Attention(nn.Module):
    """x + self-attention over all positions, with unit queries and keys in place of a norm."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.enter = nn.Conv2d(width, 3 * width, 1)
        self.sharpness = nn.Parameter(torch.full((heads, 1, 1), 4.0))
        self.leave = zeroed(nn.Conv2d(width, width, 1))

    def forward(self, x: Tensor) -> Tensor:
        batch, width, height, breadth = x.shape
        q, k, v = self.enter(x).view(batch, 3, self.heads, -1, height * breadth).transpose(-1, -2).unbind(1)
        q = F.normalize(q, dim=-1) * self.sharpness
        mixed = F.scaled_dot_product_attention(q, F.normalize(k, dim=-1), v, scale=1.0)
        mixed = mixed.transpose(-1, -2).reshape(batch, width, height, breadth)
        return x + self.leave(mixed.contiguous(memory_format=torch.channels_last))


class NoiseLevel(nn.Module):
    """A vector for each noise level: cosines of log sigma through one hidden layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = nn.Linear(16, width)
        self.leave = nn.Linear(width, width)

    def forward(self, log_sigma: Tensor) -> Tensor:
        angles = log_sigma[:, None] * torch.linspace(0.1, 1.5, 8, dtype=log_sigma.dtype, device=log_sigma.device)
        return F.silu(self.leave(F.silu(self.enter(torch.cat([angles.cos(), angles.sin()], 1)))))
