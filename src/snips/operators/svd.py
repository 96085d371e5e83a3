"""Singular value decompositions of operators that are only known by what they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator as ScipyOperator
from scipy.sparse.linalg import svds
from torch import Tensor

from snips.operators.linear_map import LinearMap

Progress = Callable[[str, int, int], None]  # what is done, steps done, steps in all

FEW = 64  # singular values up to which Lanczos bidiagonalisation (PROPACK) is preferred to random blocks
OVERSAMPLING = 16  # extra random vectors
PASSES = 6  # of subspace iteration
PROBES, ROUNDS = 4, 12  # of the power iteration that measures what was cut off


@dataclass(frozen=True)
class Factors:
    """H ~ left diag(s) right^T with `rank` columns each, in float64."""

    left: Tensor  # (M, r), orthonormal
    s: Tensor  # (r,), falling
    right: Tensor  # (N, r), orthonormal
    lost: float  # an estimate of |H - left diag(s) right^T|, the largest singular value that was cut off


def truncated_svd(H: LinearMap, rank: int, progress: Progress | None = None) -> Factors:
    """The `rank` largest singular values and their vectors.

    A basis Q of the range comes from PROPACK or from random blocks, then the small matrix Q^T H is decomposed exactly.
    So left^T H = diag(s) right^T holds to rounding, however good Q is: left^T y is an exact measurement of x, and
    cutting off loses information but falsifies none.
    """
    basis = _lanczos_basis if rank <= FEW else _random_basis
    Q = basis(H, rank, progress or _silent)
    small = H.adjoint_columns(Q).T  # Q^T H
    U, s, Vt = torch.linalg.svd(small, full_matrices=False)
    floor = torch.finfo(H.precision).eps * max(H.size) * s.max()
    kept = min(rank, int((s > floor).sum()))
    left = Q @ U[:, :kept]
    return Factors(left, s[:kept].clone(), Vt[:kept].T.contiguous(), what_is_lost(H, left, progress or _silent))


def _lanczos_basis(H: LinearMap, rank: int, progress: Progress) -> Tensor:
    """Left singular vectors by SciPy's PROPACK."""
    calls = [0]

    def matvec(x: np.ndarray) -> np.ndarray:
        calls[0] += 1
        progress("singular vectors (PROPACK)", calls[0], max(calls[0] + 1, 3 * rank))
        return H.columns(torch.from_numpy(np.array(x, dtype=np.float64).reshape(-1, 1))).numpy()[:, 0]

    def rmatvec(y: np.ndarray) -> np.ndarray:
        return H.adjoint_columns(torch.from_numpy(np.array(y, dtype=np.float64).reshape(-1, 1))).numpy()[:, 0]

    scipy_map = ScipyOperator(H.size, matvec=matvec, rmatvec=rmatvec, dtype=np.float64)  # pyright: ignore
    start = np.random.default_rng(0).standard_normal(H.size[0])
    tolerance = float(torch.finfo(H.precision).eps) ** 0.75
    U = svds(scipy_map, rank, v0=start, tol=tolerance, solver="propack")[0]
    return torch.linalg.qr(torch.from_numpy(np.ascontiguousarray(U))).Q


def _random_basis(H: LinearMap, rank: int, progress: Progress) -> Tensor:
    """Subspace iteration from random images (Halko, Martinsson and Tropp 2011)."""
    m, n = H.size
    width = min(rank + OVERSAMPLING, m, n)
    x = torch.randn(n, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    Q = torch.linalg.qr(H.columns(x)).Q
    for i in range(PASSES):
        Q = torch.linalg.qr(H.columns(torch.linalg.qr(H.adjoint_columns(Q)).Q)).Q
        progress("singular vectors (random blocks)", i + 1, PASSES)
    return Q


def what_is_lost(H: LinearMap, left: Tensor, progress: Progress) -> float:
    """|(I - left left^T) H| by power iteration: a lower bound that is close after a few rounds."""
    if left.shape[1] >= min(H.size):
        return 0.0
    random = torch.Generator().manual_seed(1)
    x = torch.randn(H.size[1], PROBES, generator=random, dtype=torch.float64)
    lost = 0.0
    for i in range(ROUNDS):
        rest = H.columns(x / x.norm(dim=0).clamp(min=1e-300))
        rest = rest - left @ (left.T @ rest)
        lost = float(rest.norm(dim=0).max())
        x = H.adjoint_columns(rest)
        progress("truncation error", i + 1, ROUNDS)
    return lost


def _silent(what: str, done: int, total: int) -> None:
    """Nobody watches."""
