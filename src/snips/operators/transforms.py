"""Fast orthonormal transforms along the last axis."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor


def hadamard(x: Tensor) -> Tensor:
    """The orthonormal Walsh-Hadamard transform in natural order; its own inverse. (..., 2^k) -> (..., 2^k).

    H_n is the Kronecker product of small Hadamard matrices, so the index is split into groups of binary digits and
    each group is multiplied by its own: matrix products without transpositions.
    """
    n = x.shape[-1]
    if n & (n - 1):
        raise ValueError(f"a Hadamard transform needs a power of two, not {n}")
    shape, below = x.shape, n
    while below > 1:
        block = _hadamard_matrix(min(below.bit_length() - 1, 6), x.dtype, x.device)  # at most 64 x 64
        below //= len(block)
        x = block @ x.reshape(-1, len(block), below) if below > 1 else x.reshape(-1, len(block)) @ block
    return x.reshape(shape)


@lru_cache(maxsize=64)
def _hadamard_matrix(digits: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The orthonormal 2^digits x 2^digits Hadamard matrix, by Sylvester's construction."""
    matrix = torch.ones(1, 1, dtype=torch.float64)
    for _ in range(digits):
        matrix = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64), matrix)
    return (matrix / math.sqrt(2**digits)).to(device=device, dtype=dtype)


SMALL = 256  # up to this length a product with the matrix of cosines is faster than an FFT


def dct(x: Tensor) -> Tensor:
    """The orthonormal DCT-II for any length; long ones by one FFT of the even entries and the reversed odd ones."""
    if x.shape[-1] <= SMALL:
        return x @ _cosines(x.shape[-1], x.dtype, x.device).T
    reordered = torch.cat([x[..., ::2], x[..., 1::2].flip(-1)], -1)
    return (torch.fft.fft(reordered) * _quarter_turns(x)).real * _scale(x)


def idct(x: Tensor) -> Tensor:
    """The inverse of `dct` (the orthonormal DCT-III)."""
    n = x.shape[-1]
    if n <= SMALL:
        return x @ _cosines(n, x.dtype, x.device)
    x = x / _scale(x)
    mirrored = torch.cat([torch.zeros_like(x[..., :1]), x[..., 1:].flip(-1)], -1)  # x_(n - k), with x_n = 0
    reordered = torch.fft.ifft(torch.complex(x, -mirrored) * _quarter_turns(x).conj()).real
    out = torch.empty_like(x)
    out[..., ::2] = reordered[..., : (n + 1) // 2]
    out[..., 1::2] = reordered[..., (n + 1) // 2 :].flip(-1)
    return out


def dct2(x: Tensor) -> Tensor:
    """The two-dimensional DCT of the last two axes."""
    x = dct(x)
    return _cosines(x.shape[-2], x.dtype, x.device) @ x if x.shape[-2] <= SMALL else dct(x.mT).mT


def idct2(x: Tensor) -> Tensor:
    """The inverse of `dct2`."""
    x = idct(x)
    return _cosines(x.shape[-2], x.dtype, x.device).T @ x if x.shape[-2] <= SMALL else idct(x.mT).mT


@lru_cache(maxsize=64)
def _cosines(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The orthonormal DCT-II matrix (n, n), rows are frequencies."""
    k, i = torch.arange(n, dtype=torch.float64)[:, None], torch.arange(n, dtype=torch.float64)
    basis = torch.cos(math.pi * k * (2 * i + 1) / (2 * n)) * math.sqrt(2 / n)
    basis[0] /= math.sqrt(2)
    return basis.to(device=device, dtype=dtype)


def _quarter_turns(x: Tensor) -> Tensor:
    """exp(-i pi k / 2n)."""
    n = x.shape[-1]
    angle = -math.pi / (2 * n) * torch.arange(n, dtype=torch.float64)
    return torch.polar(torch.ones_like(angle), angle).to(device=x.device, dtype=x.dtype.to_complex())


def _scale(x: Tensor) -> Tensor:
    """sqrt(1 / n) for the constant, sqrt(2 / n) for the others."""
    scale = torch.full(x.shape[-1:], math.sqrt(2 / x.shape[-1]), dtype=x.dtype, device=x.device)
    scale[0] = math.sqrt(1 / x.shape[-1])
    return scale
