"""A small restoration, as fast as Algorithm 1 can be."""

from __future__ import annotations

import torch

from snips import InverseProblem, Restoration, StationaryGaussian, make_operator, restore
from snips.schedules import geometric

SHAPE = (3, 16, 16)
PRIOR = StationaryGaussian.natural(SHAPE)
QUICK = {"sampler": "langevin", "sigmas": geometric(10, 0.01, 10), "c": 0.1, "tau": 1}


def small_restoration() -> Restoration:
    """3 samples for each of 2 images."""
    problem = InverseProblem.simulate(make_operator("sr2", SHAPE), PRIOR.sample(2, seed=1), 0.1, seed=0)
    return restore(problem, PRIOR, samples=3, seed=5, **QUICK)


def groups(K: int, shift: float = 0.0, scale: float = 1.0, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Two times K samples, the first ones shifted and scaled."""
    random = torch.Generator().manual_seed(seed)
    smooth = torch.randn(2 * K, 1, 4, generator=random).repeat_interleave(25, 2)  # pixels that move together
    return smooth[:K] * scale + shift, smooth[K:]
