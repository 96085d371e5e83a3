"""Matrices and SciPy's operators: anything with a shape, a product and a transposed product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.linalg import LinearOperator as ScipyOperator
from torch import Tensor

from snips.buffers import in_own_memory
from snips.operators.linear_map import LinearMap


def is_matrix(obj: Any) -> bool:
    return isinstance(obj, (np.ndarray, Tensor)) or scipy.sparse.issparse(obj)


def matrix_map(obj: Any, image_shape: tuple[int, int, int]) -> LinearMap:
    """A NumPy array, a torch tensor (dense or sparse) or a SciPy sparse matrix, (M, N)."""
    if isinstance(obj, Tensor):
        obj = _from_torch(obj.detach().cpu())
    if obj.ndim != 2:
        raise ValueError(f"a matrix has two axes, (measurements, pixels), but this array has shape {tuple(obj.shape)}")
    check_real(obj, "the matrix")
    matrix = obj.astype(np.float64)
    return product_map(lambda x: matrix @ x, lambda y: matrix.T @ y, matrix.shape)


def _from_torch(matrix: Tensor) -> np.ndarray | scipy.sparse.coo_array:
    """In float64, or complex as it is; a sparse matrix stays sparse."""
    matrix = matrix if matrix.is_complex() else matrix.double()
    if matrix.layout == torch.strided:
        return matrix.numpy()
    matrix = matrix.to_sparse_coo().coalesce()
    return scipy.sparse.coo_array((matrix.values().numpy(), matrix.indices().numpy()), shape=tuple(matrix.shape))


def is_scipy_operator(obj: Any) -> bool:
    return isinstance(obj, ScipyOperator)


def scipy_map(obj: Any, image_shape: tuple[int, int, int]) -> LinearMap:
    """A scipy.sparse.linalg.LinearOperator; its `rmatvec` must be given."""
    check_real(obj, "the LinearOperator")
    try:
        obj.rmatvec(np.zeros(obj.shape[0]))
    except (NotImplementedError, TypeError) as error:
        raise ValueError("the LinearOperator has no adjoint: give it rmatvec or rmatmat") from error
    return product_map(obj.matmat, obj.rmatmat, obj.shape, precision_of(obj.dtype))


def product_map(
    matmat: Callable[[np.ndarray], np.ndarray],
    rmatmat: Callable[[np.ndarray], np.ndarray],
    shape: tuple[int, int],
    precision: torch.dtype = torch.float64,
    measurement_shape: tuple[int, ...] | None = None,
) -> LinearMap:
    """Products of NumPy arrays (N, k) -> (M, k) and back as a LinearMap of torch tensors."""

    def through(product: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
        def apply(x: Tensor) -> Tensor:
            columns = np.ascontiguousarray(x.detach().cpu().double().flatten(1).numpy().T)
            out = np.asarray(product(columns)) if columns.shape[1] else np.zeros((int(np.prod(shape)), 0))
            values = in_own_memory(torch.from_numpy(out.T)).reshape(len(x), *shape).to(x.device)
            return values if values.is_complex() else values.to(x.dtype)

        return apply

    rows, columns = (int(n) for n in shape)
    measured = measurement_shape or (rows,)
    return LinearMap((columns,), measured, through(matmat, measured), through(rmatmat, (columns,)), precision)


def check_real(obj: Any, what: str) -> None:
    if np.issubdtype(obj.dtype, np.complexfloating):
        raise ValueError(f"{what} is complex, but real numbers are expected: stack its real and imaginary parts")


def precision_of(dtype: Any) -> torch.dtype:
    return torch.float32 if dtype is not None and np.dtype(dtype).itemsize <= 4 else torch.float64
