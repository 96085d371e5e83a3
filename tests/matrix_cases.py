"""A random matrix, and operators of SciPy made of it."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator as ScipyOperator

SHAPE = (3, 6, 5)
N = 90


def matrix(m: int = 40, n: int = N) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((m, n))


def from_matrix(A: np.ndarray, **changes) -> ScipyOperator:
    functions = {"matvec": lambda x: A @ x.ravel(), "rmatvec": lambda y: A.T @ y.ravel(), **changes}
    return ScipyOperator(A.shape, dtype=np.float64, **functions)
