"""The samplers of deepinv as peers.py calls them: with an exact denoiser, a number of calls and a setting."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from snips import InverseProblem
from snips.integrations.torchvision import register_torchvision_operators
from snips.priors import Prior
from snips.samplers import fast

try:
    register_torchvision_operators()
    import deepinv
    from deepinv import sampling
    from deepinv.sampling import diffusion
except ImportError as error:
    print(f"peers: skipped, deepinv cannot be imported ({error}): benchmarks/peers.py says how to install it")
    sys.exit(0)

SIGMA_0 = 0.1
Setting = dict[str, Any]


class Counted(Prior):
    """A prior that counts its calls, ours and the peers' alike."""

    def __init__(self, prior: Prior) -> None:
        super().__init__()
        self.prior, self.mirrored, self.calls = prior, prior.mirrored, 0

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        self.calls += 1
        return self.prior.denoise(x, sigma)


class ExactDenoiser(deepinv.models.Denoiser):
    """A prior's exact denoiser in deepinv's form."""

    def __init__(self, prior: Prior) -> None:
        super().__init__(device="cpu")
        self.prior = prior

    def forward(self, x: Tensor, sigma: float | Tensor, **_: Any) -> Tensor:
        """E[x_clean | x] for x (B, C, H, W); sigma is a number or a tensor of 1 or B of them."""
        sigma = torch.as_tensor(sigma, dtype=x.dtype).flatten()
        return self.prior.denoise(x, sigma if len(sigma) == len(x) else float(sigma[0]))


def physics(problem: InverseProblem) -> deepinv.physics.DecomposablePhysics:
    """The same H through the same SVD."""
    H = problem.operator
    s = H.singular_values.expand(H.image_shape)[None]
    noise = deepinv.physics.GaussianNoise(problem.sigma_0)
    return deepinv.physics.DecomposablePhysics(
        U=H.U, U_adjoint=H.Ut, V=H.V, V_adjoint=H.Vt, mask=s, img_size=H.image_shape, noise_model=noise
    )


class RootOfTwoIsOne:
    """NumPy, but that sqrt(2.0) is 1."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def sqrt(x: float) -> float:
        return 1.0 if x == 2.0 else np.sqrt(x)


class MendedDDRM(sampling.DDRM):
    """DDRM with the noise of its paper.

    deepinv 0.5.0 has `std * torch.randn_like(x_bar) / np.sqrt(2.0)` in each step. That is the only root of 2 in its
    module, and the other root there is of 1 - eta^2, at most 1.
    """

    def forward(self, *args: Any, **options: Any) -> Tensor:
        with patch.object(diffusion, "np", RootOfTwoIsOne()):
            return super().forward(*args, **options)


Build = Callable[..., deepinv.models.Reconstructor]


def ddrm(kind: type[sampling.DDRM]) -> Build:
    def build(denoiser: ExactDenoiser, nfe: int, sigma_first: float = 1.0, power: float = 1.0, **setting: Any):
        return kind(denoiser, sigmas=sigma_first * np.linspace(1, 0, nfe) ** power, **setting)

    return build


def diffpir(denoiser: ExactDenoiser, nfe: int, **setting: Any) -> deepinv.models.Reconstructor:
    fidelity = deepinv.optim.data_fidelity.L2()
    return sampling.DiffPIR(denoiser, fidelity, sigma=SIGMA_0, max_iter=nfe, **setting)


def solver(nfe: int, power: float = 1.0) -> sampling.DDPMSolver:
    """What deepinv's DPS has by default, with time steps that `power` draws together near the image."""
    return sampling.DDPMSolver(timesteps=torch.linspace(1, 0, nfe + 1, dtype=torch.float64) ** power)


def dps(denoiser: ExactDenoiser, nfe: int, power: float = 1.0, **setting: Any) -> deepinv.models.Reconstructor:
    return sampling.DPS(denoiser, solver=solver(nfe, power), **setting)


def guided(fidelity: type) -> Build:
    """PiGDM and moment matching: a term of the data in deepinv's posterior diffusion, with the solver of its DPS."""

    def build(denoiser: ExactDenoiser, nfe: int, power: float = 1.0, **setting: Any) -> deepinv.models.Reconstructor:
        sde = sampling.VariancePreservingDiffusion(alpha=1.0)
        return sampling.PosteriorDiffusion(fidelity(denoiser=denoiser, **setting), denoiser, sde, solver(nfe, power))

    return build


def grid(**knobs: tuple[float, ...]) -> list[Setting]:
    """All combinations; the first value of each knob is its default, which a setting leaves out."""
    defaults = {name: values[0] for name, values in knobs.items()}
    chosen = (dict(zip(knobs, values, strict=True)) for values in product(*knobs.values()))
    return [{name: value for name, value in each.items() if value != defaults[name]} for each in chosen]


DDRM_SETTINGS = [
    *grid(eta=(0.85, 0.7, 1.0), power=(1.0, 2.0, 3.0)),
    *({"power": power} for power in (4.0, 5.0, 6.0)),
    {"eta": 0.5},
    {"etab": 0.9},
    {"sigma_first": 2.0},
]
METHODS: dict[str, tuple[Build, list[Setting]]] = {  # the first setting is the default
    "DDRM": (ddrm(sampling.DDRM), DDRM_SETTINGS),
    "DDRM, noise mended": (ddrm(MendedDDRM), DDRM_SETTINGS),
    "DiffPIR": (diffpir, grid(zeta=(0.1, 0.3, 0.6, 1.0), lambda_=(7.0, 3.0, 1.0, 0.3))),
    "DPS": (
        dps,
        [
            *grid(weight=(1.0, 3.0, 10.0, 20.0, 40.0), power=(1.0, 2.0, 3.0)),
            *({"weight": weight, "power": 4.0} for weight in (10.0, 20.0)),
            *({"guidance": "annealed", **setting} for setting in grid(weight=(1.0, 3.0, 6.0, 10.0))),
        ],
    ),
    "PiGDM": (
        guided(sampling.PiGDMDataFidelity),
        [
            *grid(weight=(1.0, 2.0, 4.0, 8.0), power=(1.0, 2.0, 3.0, 4.0)),
            *({"weight": 2.0, "power": power} for power in (5.0, 6.0)),
        ],
    ),
    "moment matching": (
        guided(sampling.MomentMatchingDataFidelity),
        [
            *grid(power=(1.0, 2.0, 3.0, 4.0, 5.0)),
            {"power": 3.0, "weight": 0.8},
            {"power": 3.0, "weight": 1.2},
            {"cg_max_iter": 10},
        ],
    ),
}


def draw(method: str, setting: Setting, nfe: int, prior: Prior, problem: InverseProblem, samples: int):
    """Samples (K, B, C, H, W), and calls of the prior for each."""
    counted = Counted(prior)
    if method == "fast":
        return fast(problem, counted, nfe=nfe, samples=samples, seed=7), counted.calls
    torch.manual_seed(7)
    y = problem.y.repeat(samples, *[1] * (problem.y.ndim - 1))
    drawn = METHODS[method][0](ExactDenoiser(counted), nfe, **setting)(y, physics(problem)).detach().float()
    return drawn.reshape(samples, len(problem), *problem.operator.image_shape), counted.calls
