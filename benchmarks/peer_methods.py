"""The samplers of deepinv as peers.py calls them: with an exact denoiser, a number of calls and a setting."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips import InverseProblem
from snips.integrations.torchvision import register_torchvision_operators
from snips.priors import GaussianMixture
from snips.samplers import fast

try:
    register_torchvision_operators()
    import deepinv
    from deepinv import sampling
except ImportError as error:
    print(f"peers: skipped, deepinv cannot be imported ({error}): benchmarks/peers.py says how to install it")
    sys.exit(0)

SIGMA_0 = 0.1
Setting = dict[str, Any]


class ExactDenoiser(deepinv.models.Denoiser):
    """A mixture's exact denoiser in deepinv's form, which counts its calls."""

    def __init__(self, prior: GaussianMixture) -> None:
        super().__init__(device="cpu")
        self.prior, self.calls = prior, 0

    def forward(self, x: Tensor, sigma: float | Tensor, **_: Any) -> Tensor:
        self.calls += 1
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


def ddrm(denoiser: ExactDenoiser, nfe: int, sigma_first: float = 1.0, **setting: Any) -> deepinv.models.Reconstructor:
    return sampling.DDRM(denoiser, sigmas=np.linspace(sigma_first, 0, nfe), **setting)


def diffpir(denoiser: ExactDenoiser, nfe: int, **setting: Any) -> deepinv.models.Reconstructor:
    fidelity = deepinv.optim.data_fidelity.L2()
    return sampling.DiffPIR(denoiser, fidelity, sigma=SIGMA_0, max_iter=nfe, **setting)


def dps(denoiser: ExactDenoiser, nfe: int, **setting: Any) -> deepinv.models.Reconstructor:
    return sampling.DPS(denoiser, num_steps=nfe + 1, **setting)


def guided(fidelity: type) -> Callable[..., deepinv.models.Reconstructor]:
    """PiGDM and moment matching: a term of the data in deepinv's posterior diffusion, with the solver of its DPS."""

    def build(denoiser: ExactDenoiser, nfe: int, **setting: Any) -> deepinv.models.Reconstructor:
        solver = sampling.DDPMSolver(timesteps=torch.linspace(1, 0, nfe + 1, dtype=torch.float64))
        sde = sampling.VariancePreservingDiffusion(alpha=1.0)
        return sampling.PosteriorDiffusion(fidelity(denoiser=denoiser, **setting), denoiser, sde, solver)

    return build


METHODS: dict[str, tuple[Callable[..., deepinv.models.Reconstructor], list[Setting]]] = {  # the first is the default
    "DDRM": (ddrm, [{}, {"eta": 0.2}, {"eta": 0.5}, {"eta": 1.0}, {"sigma_first": 5.0}]),
    "DiffPIR": (diffpir, [{}, {"lambda_": 3.0}, {"lambda_": 20.0}, {"zeta": 0.3}, {"lambda_": 3.0, "zeta": 0.3}]),
    "DPS": (dps, [{}, {"weight": 3.0}, {"weight": 10.0}, {"weight": 30.0}, {"guidance": "annealed"}]),
    "PiGDM": (guided(sampling.PiGDMDataFidelity), [{}, {"weight": 0.5}, {"weight": 2.0}, {"weight": 4.0}]),
    "moment matching": (guided(sampling.MomentMatchingDataFidelity), [{}, {"weight": 0.7}, {"weight": 1.5}]),
}


def draw(method: str, setting: Setting, nfe: int, prior: GaussianMixture, problem: InverseProblem, samples: int):
    """Samples (K, B, C, H, W), and calls for each."""
    if method == "fast":
        return fast(problem, prior, nfe=nfe, samples=samples, seed=7), nfe
    denoiser = ExactDenoiser(prior)
    torch.manual_seed(7)
    y = problem.y.repeat(samples, *[1] * (problem.y.ndim - 1))
    drawn = METHODS[method][0](denoiser, nfe, **setting)(y, physics(problem)).detach().float()
    return drawn.reshape(samples, len(problem), *problem.operator.image_shape), denoiser.calls
