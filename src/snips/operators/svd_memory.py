"""What a full SVD of a matrix needs, for all operators that compute one."""

from __future__ import annotations

from snips.memory import check_memory


def svd_memory(m: int, n: int) -> int:
    """Bytes at the peak of an aligned SVD: matrix, U, V and work space in float64, then the copies in float32."""
    return 8 * (5 * m * n + 3 * n * n)


def check_svd_memory(m: int, n: int, what: str, advice: str) -> None:
    """Refuse with a clear line an SVD that would not fit."""
    check_memory(svd_memory(m, n), what, advice)
