"""Matrices and operators of SciPy and pylops come in with what they do unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.sparse.linalg import LinearOperator as ScipyOperator

import snips
from matrix_cases import SHAPE, from_matrix, matrix
from snips import as_operator, check_operator


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SNIPS_CACHE", str(tmp_path / "cache"))


SOURCES = {
    "numpy": lambda A: A,
    "torch": torch.from_numpy,
    "torch_sparse": lambda A: torch.from_numpy(A).to_sparse(),
    "scipy_sparse": scipy.sparse.csr_matrix,
    "scipy_sparse_array": scipy.sparse.coo_array,
    "linear_operator": from_matrix,
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("options", [{}, {"svd": False}, {"rank": 40}], ids=["full", "matrix_free", "all_of_them"])
def test_sources(kind, options):
    A = matrix()
    H = as_operator(SOURCES[kind](A), SHAPE, **options).double()
    x, y = torch.randn(2, *SHAPE, dtype=torch.float64), torch.randn(2, 40, dtype=torch.float64)
    torch.testing.assert_close(H(x), x.flatten(1) @ torch.from_numpy(A).T)
    torch.testing.assert_close(H.adjoint(y).flatten(1), y @ torch.from_numpy(A))
    report = check_operator(H)
    assert report, str(report)
    assert H.how == ("matrix-free: no SVD" if options.get("svd") is False else "computed: full SVD")


def test_a_matrix_for_one_channel_serves_all():
    A = matrix(7, 30)
    H = as_operator(A, SHAPE).double()
    assert H.measurement_shape == (3, 7)
    x = torch.randn(2, *SHAPE, dtype=torch.float64)
    torch.testing.assert_close(H(x), x.flatten(2) @ torch.from_numpy(A).T)
    free = as_operator(A, SHAPE, svd=False).double()
    torch.testing.assert_close(free(x), H(x))
    torch.testing.assert_close(free.adjoint(H(x)), H.adjoint(H(x)))


def test_pylops_keeps_the_shape_of_its_data():
    pylops = pytest.importorskip("pylops", reason="pylops is not installed: pip install '.[pylops]'")
    blur = pylops.signalprocessing.Convolve2D((6, 5), h=matrix(3, 3), offset=(1, 1), dtype="float64")
    H = as_operator(blur, (1, 6, 5)).double()
    assert H.measurement_shape == (6, 5)
    x = torch.randn(1, 1, 6, 5, dtype=torch.float64)
    np.testing.assert_allclose(H(x)[0], (blur @ x.numpy().ravel()).reshape(6, 5), atol=1e-12)
    assert check_operator(H)


@pytest.mark.parametrize(("dims", "image_shape"), [((5, 7), (1, 7, 5)), ((5, 7, 3), (3, 5, 7)), ((3, 7, 5), (3, 5, 7))])
def test_pylops_with_axes_in_another_order(dims, image_shape):
    pylops = pytest.importorskip("pylops", reason="pylops is not installed: pip install '.[pylops]'")
    with pytest.raises(ValueError, match="channels first"):
        as_operator(pylops.FirstDerivative(dims, axis=0), image_shape)


@pytest.mark.parametrize(("dims", "image_shape"), [((5, 7), (1, 5, 7)), ((5, 7), (3, 5, 7)), ((3, 5, 7), (3, 5, 7))])
def test_pylops_with_the_images_axes(dims, image_shape):
    pylops = pytest.importorskip("pylops", reason="pylops is not installed: pip install '.[pylops]'")
    along_columns = as_operator(pylops.FirstDerivative(dims, axis=-1, kind="forward"), image_shape)
    ramp = torch.arange(7.0).expand(1, *image_shape)
    assert along_columns(ramp).reshape(-1, 7)[:, :6].allclose(torch.ones(()))


def test_sparse_tensors_stay_sparse():
    """As a dense matrix this one would need half a terabyte."""
    n = 512
    places = torch.arange(n * n)
    indices, values = torch.stack([places, places]), 2 * torch.ones(n * n)
    identity = torch.sparse_coo_tensor(indices, values, (n * n, n * n), check_invariants=True)
    x = torch.rand(1, 1, n, n)
    torch.testing.assert_close(as_operator(identity, (1, n, n))(x).flatten(), 2 * x.flatten())
    small = torch.eye(12)[:5]
    for kind in (small.to_sparse(), small.to(torch.bfloat16)):
        torch.testing.assert_close(as_operator(kind, (1, 3, 4)).as_matrix(), small)


def test_our_own_operators_pass_through():
    H = snips.make_operator("sr2", (3, 8, 8))
    assert as_operator(H, (3, 8, 8)) is H
    with pytest.raises(ValueError, match="measures images"):
        as_operator(H, (3, 8, 6))


A = matrix()

BAD = {
    "not linear: H\\(2a \\+ b\\)": from_matrix(A, matvec=lambda x: np.abs(A @ x.ravel())),
    "not linear": from_matrix(A, matvec=lambda x: A @ x.ravel() + 1),
    "dot test <H x, y> = <x, H\\^T y> fails": from_matrix(A, rmatvec=lambda y: 1.01 * A.T @ y.ravel()),
    "NaN or Inf": from_matrix(A, matvec=lambda x: A @ x.ravel() / 0.0),
    "has no adjoint": ScipyOperator(A.shape, matvec=lambda x: A @ x.ravel(), dtype=np.float64),
    "complex": A + 1j,
    "is complex": from_matrix(A, matvec=lambda x: 1j * (A @ x.ravel())),
    "two axes": np.zeros(5),
    "no operator that is known": "identity",
    "91 values, but an image": np.zeros((4, 91)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, of the division
@pytest.mark.parametrize("message", BAD)
def test_bad_operators_are_named(message):
    with pytest.raises(ValueError, match=message) as caught:
        as_operator(BAD[message], SHAPE)
    assert "\n" not in str(caught.value)


def test_the_documentation_runs(capsys):
    """The first two pieces of code need no other library."""
    page = (Path(__file__).parents[1] / "docs" / "bring_your_own.md").read_text()
    pieces = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for piece in pieces[:2]:
        exec(compile(piece, "bring_your_own.md", "exec"), {})
    expected = re.findall(r"print\(.*?\)  # (.*)", "".join(pieces[:2]))
    assert capsys.readouterr().out.splitlines() == expected
    assert len(expected) == 4
