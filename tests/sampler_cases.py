"""What must hold for every sampler, and small problems to try it on."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from snips import make_operator
from snips.operators import Dense, LinearOperator, Zero
from snips.priors import Gaussian, Prior
from snips.problems import PROBLEMS
from snips.streams import Chain

SHAPE = (1, 4, 4)
N = math.prod(SHAPE)


def random_gaussian() -> Gaussian:
    """Over images of SHAPE, in float64."""
    random = torch.Generator().manual_seed(5)
    root = 0.2 * torch.randn(N, N, generator=random, dtype=torch.float64)
    mean = torch.rand(N, generator=random, dtype=torch.float64)
    return Gaussian(mean, root @ root.T + 0.01 * torch.eye(N), SHAPE).double()


def operators(shape: tuple[int, int, int] = SHAPE) -> Iterator[tuple[str, LinearOperator]]:
    """All problems, no measurement, and a matrix with singular values of many sizes."""
    small = {"deblur_kernel": {"kernel": torch.tensor([[1.0, 2.0], [0.5, 0.0]])}, "mri": {"acceleration": 2}}
    small["matrix"] = {"matrix": torch.eye(math.prod(shape[1:]))[::3]}
    for name in PROBLEMS:
        yield name, make_operator(name, shape, **small.get(name, {}))
    yield "zero", Zero(shape)
    random = torch.Generator().manual_seed(1)
    matrix = torch.randn(7, math.prod(shape), generator=random) * 10.0 ** torch.arange(-3, 4)[:, None]
    yield "dense", Dense(matrix, shape)


def check_resumed_run(steps, stop: int, total: int) -> None:
    """`steps(resume)` yields all steps, or those after a stored state: stopped and resumed, the end is the same."""
    whole = list(steps(None))[-1].state.x
    stored = next(info.state.tensors() for info in steps(None) if info.step == stop)
    rest = list(steps(stored))
    assert len(rest) == total - stop
    assert torch.equal(rest[-1].state.x, whole)


def directions(samples: torch.Tensor, posterior: Gaussian) -> torch.Tensor:
    """Variances over the posterior's, the smallest first: the eigenvalues of the covariance of whitened samples."""
    variances, axes = torch.linalg.eigh(posterior.covariance)
    white = (samples.flatten(1) - posterior.mean.flatten()) @ axes / variances.sqrt()
    return torch.linalg.eigvalsh(torch.cov(white.T))


def chains(K: int) -> list[Chain]:
    return [Chain(0, k) for k in range(K)]


class Counted(Prior):
    """Remembers how often each image was denoised."""

    def __init__(self, prior: Prior) -> None:
        super().__init__()
        self.prior, self.calls, self.sigmas = prior, 0, []

    def denoise(self, x, sigma):
        self.calls += len(x)
        self.sigmas.append(float(sigma))
        return self.prior.denoise(x, sigma)
