"""A network in lower precision, where the hardware is faster with it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from snips.names import unknown_name
from snips.priors.base import Prior
from snips.priors.unet import Residual, UNet


def in_precision(name: str, precision: str) -> str:
    """What a prior is called whose products are in lower precision."""
    return f"{name}, {precision}"


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
        self.prior, self.name = prior, in_precision(prior.name or type(prior).__name__, "bfloat16")
        self.mirrored = prior.mirrored

    def with_stored_weights(self) -> Prior:
        return self.prior

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
    if precision == "float32":
        return prior
    low = LowPrecision(prior)
    if not bfloat16_works() and next(prior.parameters()).device.type == "cpu":
        raise ValueError(
            "products in bfloat16 crash on this processor, whose matrix unit (AMX) is hidden in part: use float32, "
            f"or set {WITHOUT_AMX[0]}={WITHOUT_AMX[1]} before the start"
        )
    return low


WITHOUT_AMX = ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # an environment variable that PyTorch's kernels obey
CPU_INFO = Path("/proc/cpuinfo")
PROBE = "import torch; a = torch.ones(256, 256, dtype=torch.bfloat16); a @ a"


@cache
def bfloat16_works() -> bool:
    """Whether the CPU survives a product in bfloat16: some virtual machines offer AMX and hide how to set it up.

    There PyTorch dies of an illegal instruction, so it is tried in a process of its own, where AMX is offered at all.
    """
    if not CPU_INFO.is_file() or "amx_tile" not in CPU_INFO.read_text():
        return True
    return subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False).returncode == 0
