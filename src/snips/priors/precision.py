"""A network in lower precision, where the hardware is faster with it."""

from __future__ import annotations

import torch
from torch import Tensor

from snips.names import unknown_name
from snips.priors.base import Prior
from snips.priors.unet import Residual, UNet


class LowPrecision(Prior):
    """Our network with its products in bfloat16.

    Its linear filter stays in full precision: at large noise the image is far larger than what is asked of it, and
    three digits would not do.
    """

    def __init__(self, prior: Prior) -> None:
        super().__init__()
        if not isinstance(prior, UNet):
            raise ValueError(
                f"the prior {prior.name or type(prior).__name__} cannot be used in lower precision: only networks of "
                "this package can; leave out --precision"
            )
        self.prior, self.name = prior, f"{prior.name or type(prior).__name__}, bfloat16"
        self.mirrored = prior.mirrored

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        return self.estimate(x, sigma)[0].to(x.dtype)

    def estimate(self, x: Tensor, sigma: float | Tensor, residual: Residual | None = None) -> tuple[Tensor, Tensor]:
        """As the network's, around its residual in lower precision."""
        return self.prior.estimate(x, sigma, residual or self.residual)

    def residual(self, white: Tensor, linear: Tensor, level: Tensor) -> Tensor:
        with torch.autocast(white.device.type, torch.bfloat16):
            return self.prior.residual(white, linear, level).to(linear.dtype)


PRECISIONS = ("float32", "bfloat16")


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise ValueError(unknown_name("precision", precision, list(PRECISIONS)))


def with_precision(prior: Prior, precision: str) -> Prior:
    """The prior with its network in that precision."""
    check_precision(precision)
    return prior if precision == "float32" else LowPrecision(prior)
