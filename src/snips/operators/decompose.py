"""From a LinearMap to an operator: a full SVD where it is small, a truncated one where asked for, else none."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import torch
from torch import Tensor

from snips.memory import available_memory, check_memory
from snips.operators.base import LinearOperator
from snips.operators.dense import Dense
from snips.operators.foreign import MatrixFree, ThinSVD, acts_per_channel
from snips.operators.linear_map import LinearMap, check_map
from snips.operators.reshaped import Reshaped
from snips.operators.separable import aligned_svd
from snips.operators.svd import OVERSAMPLING, Factors, Progress, truncated_svd
from snips.operators.svd_cache import cached
from snips.operators.svd_memory import svd_memory

log = logging.getLogger("snips")
FULL = 4096  # the largest smaller side of H whose full SVD is computed unasked: a minute on one core
WIDEST = 1024  # singular values of a truncated SVD, where their number is not given
BYTES_PER_ENTRY = 32  # of a truncated SVD's vectors: float64, in about four copies
ADVICE = "choose a smaller rank=, or svd=False for sampling without an SVD"


Shapes = dict[str, tuple[int, ...] | None]  # of the tensors in a file, None = any
THIN: Shapes = {"left": None, "s": None, "right": None, "lost": ()}


def decompose(
    H: LinearMap,
    image_shape: tuple[int, ...],
    *,
    svd: bool | None = None,
    rank: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    name: str = "the operator",
) -> LinearOperator:
    """The operator of a LinearMap, checked, with the SVD that fits its size; `.how` says which.

    Args:
        svd: None computes a full SVD up to 4096 on the smaller side and none beyond; True always computes one, where
            needed a truncated one; False never does (MatrixFree).
        rank: compute this many singular values only.
        cache: keep the result on disk under a hash of what H does.
        progress: called with what is done, the steps done, and their number.
    """
    per_channel = acts_per_channel(H, image_shape)  # refused before the work, not after it
    check_map(H, name)
    operator = _decomposed(H, image_shape, svd, rank, cache, progress, name)
    operator.measured_channels = 1 if per_channel else H.measured_channels
    return operator


def _decomposed(
    H: LinearMap,
    image_shape: tuple[int, ...],
    svd: bool | None,
    rank: int | None,
    cache: bool,
    progress: Progress | None,
    name: str,
) -> LinearOperator:
    smaller = min(H.size)
    if rank is not None and rank < 1:
        raise ValueError(f"rank must be at least 1, but is {rank}")
    if svd is False or (svd is None and rank is None and smaller > FULL):
        return MatrixFree(H, image_shape)
    if smaller == 0 or (smaller <= FULL and (rank is None or rank >= smaller)):
        return _full(H, image_shape, cache, progress)
    rank = min(rank or automatic_rank(H.size), smaller - 1)
    needed = truncated_memory(H.size, rank)
    check_memory(needed, f"a truncated SVD with {rank} singular values of {_size(H)}", ADVICE)
    log.info("%s: truncated SVD with %d singular values of %s, %s", name, rank, _size(H), _gib(needed))
    stored = _stored(H, f"rank{rank}", THIN, cache, lambda: _as_tensors(truncated_svd(H, rank, progress)))
    return ThinSVD(H, _from_tensors(stored), image_shape)


def truncated_memory(size: tuple[int, int], rank: int) -> int:
    """Bytes at the peak: the block on both sides, its images, and the copies that stay."""
    return BYTES_PER_ENTRY * (size[0] + size[1]) * (rank + OVERSAMPLING)


def full_memory(size: tuple[int, int]) -> int:
    """Bytes at the peak: matrix, factors and work space in float64, and the copies that stay."""
    m, n = size
    return svd_memory(m, n) if n <= FULL else 8 * 6 * m * n


def automatic_rank(size: tuple[int, int]) -> int:
    """As many as a quarter of the free memory takes, at most 1024."""
    return max(1, min(WIDEST, available_memory() // 4 // (BYTES_PER_ENTRY * sum(size)) - OVERSAMPLING))


def _full(H: LinearMap, image_shape: tuple[int, ...], cache: bool, progress: Progress | None) -> LinearOperator:
    check_memory(full_memory(H.size), f"the SVD of {_size(H)}", ADVICE)
    log.info("full SVD of %s, %s", _size(H), _gib(full_memory(H.size)))
    report = progress or (lambda what, done, total: None)

    def matrix() -> Tensor:
        return H.matrix(on_block=lambda done, total: report("matrix of the operator", done, total))

    report("full SVD", 0, 1)
    operator = (_dense if H.size[1] <= FULL else _thin)(H, image_shape, cache, matrix)
    report("full SVD", 1, 1)
    return operator


def _dense(H: LinearMap, image_shape: tuple[int, ...], cache: bool, build: Callable[[], Tensor]) -> LinearOperator:
    (m, n), matrix = H.size, build()
    shapes: Shapes = {"left": (m, n), "s": (n,), "right": (n, n)}
    found = _stored(H, "full", shapes, cache, lambda: _aligned(matrix, H.precision))
    operator = Dense(matrix, image_shape, (found["left"], found["s"], found["right"]))
    shape = operator.measurement_shape[:-1] + tuple(H.measurement_shape)
    return operator if shape == operator.measurement_shape else Reshaped(operator, shape)


def _thin(H: LinearMap, image_shape: tuple[int, ...], cache: bool, build: Callable[[], Tensor]) -> LinearOperator:
    found = _stored(H, "thin", THIN, cache, lambda: _as_tensors(_thin_factors(build(), H.precision)))
    return ThinSVD(H, _from_tensors(found), image_shape)


def _aligned(matrix: Tensor, precision: torch.dtype) -> dict[str, Tensor]:
    """Singular values below the precision of H itself count as 0."""
    left, s, right = aligned_svd(matrix)
    s = _above_rounding(s, matrix, precision)
    return {"left": left * (s > 0), "s": s, "right": right}


def _thin_factors(matrix: Tensor, precision: torch.dtype) -> Factors:
    U, s, Vt = torch.linalg.svd(matrix, full_matrices=False)
    kept = int((_above_rounding(s, matrix, precision) > 0).sum())
    return Factors(U[:, :kept], s[:kept], Vt[:kept].T.contiguous(), 0.0)


def _above_rounding(s: Tensor, matrix: Tensor, precision: torch.dtype) -> Tensor:
    floor = torch.finfo(precision).eps * max(matrix.shape) * (s.max() if len(s) else 0)
    return torch.where(s > floor, s, 0)


def _stored(
    H: LinearMap, kind: str, shapes: Shapes, cache: bool, compute: Callable[[], dict[str, Tensor]]
) -> dict[str, Tensor]:
    return cached(f"{kind}-{H.fingerprint()}", shapes, compute) if cache and min(H.size) > 256 else compute()


def _as_tensors(factors: Factors) -> dict[str, Tensor]:
    lost = torch.tensor(factors.lost, dtype=torch.float64)
    return {"left": factors.left, "s": factors.s, "right": factors.right, "lost": lost}


def _from_tensors(tensors: dict[str, Tensor]) -> Factors:
    return Factors(tensors["left"], tensors["s"], tensors["right"], float(tensors["lost"]))


def _size(H: LinearMap) -> str:
    return "a {} x {} operator".format(*H.size)


def _gib(needed: int) -> str:
    return f"about {needed / 2**30:.2g} GiB" if needed > 2**27 else f"about {math.ceil(needed / 2**20)} MiB"
