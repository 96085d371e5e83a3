"""Hadamard and cosine transforms against those of SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import torch

from snips.operators.transforms import SMALL, dct, dct2, hadamard, idct, idct2


@pytest.mark.parametrize("n", [1, 2, 32, 64, 2048])
def test_hadamard_transform(n):
    x = torch.randn(3, n, dtype=torch.float64)
    np.testing.assert_allclose(hadamard(x).numpy(), x.numpy() @ scipy.linalg.hadamard(n) / math.sqrt(n), atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, SMALL, SMALL + 1, 2 * SMALL])
def test_dct_transform(n):
    x = torch.randn(3, n, dtype=torch.float64)
    np.testing.assert_allclose(dct(x).numpy(), scipy.fft.dct(x.numpy(), norm="ortho"), atol=1e-12)
    torch.testing.assert_close(idct(dct(x)), x)


@pytest.mark.parametrize("shape", [(4, 7), (SMALL + 3, 5), (5, SMALL + 2)])
def test_two_dimensional_dct(shape):
    x = torch.randn(2, *shape, dtype=torch.float64)
    np.testing.assert_allclose(dct2(x).numpy(), scipy.fft.dctn(x.numpy(), axes=(1, 2), norm="ortho"), atol=1e-11)
    torch.testing.assert_close(idct2(dct2(x)), x)
