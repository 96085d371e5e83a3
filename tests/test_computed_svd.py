"""The SVD that as_operator computes: whole, truncated or none, its cache, its memory."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

import snips
from matrix_cases import SHAPE, from_matrix, matrix
from snips import as_operator, check_operator
from snips.operators import Dense, MatrixFree, ThinSVD, decompose
from snips.operators.linear_map import LinearMap
from snips.operators.svd import truncated_svd


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SNIPS_CACHE", str(tmp_path / "cache"))


def decaying(m: int = 60, n: int = 80) -> np.ndarray:
    U, _, Vt = np.linalg.svd(matrix(m, n), full_matrices=False)
    return U * 0.8 ** np.arange(m) @ Vt


@pytest.mark.parametrize("few", [0, 64], ids=["random_blocks", "propack"])
def test_truncated_svd_and_its_stated_error(few, monkeypatch):
    monkeypatch.setattr("snips.operators.svd.FEW", few)
    A = decaying()
    H = as_operator(A, (1, 8, 10), rank=12).double()
    assert isinstance(H, ThinSVD)
    s = torch.from_numpy(np.linalg.svd(A, compute_uv=False))
    torch.testing.assert_close(H.singular_values.flatten()[:12], s[:12], rtol=1e-6, atol=0)
    assert (H.singular_values.flatten()[12:] == 0).all()
    assert f"12 of up to 60 singular values; the largest one left out is about {s[12]:.2g}" in H.how
    # V is complete and orthonormal, and what is kept of y measures x exactly: U^T H = s V^T
    x = torch.randn(3, 1, 8, 10, dtype=torch.float64)
    torch.testing.assert_close(H.V(H.Vt(x)), x)
    torch.testing.assert_close(H.Ut(H(x)), H.singular_values * H.Vt(x), rtol=0, atol=1e-12)


def test_what_truncation_leaves_out_of_y_does_not_matter():
    """The posterior of a truncated operator is the exact one of the kept measurements alone."""
    H = as_operator(decaying(), (1, 8, 10), rank=12).double()
    prior = snips.StationaryGaussian.natural((1, 8, 10)).double()
    y = H(prior.sample(1, seed=1))
    outside = torch.randn_like(y)
    outside = outside - H.U(H.Ut(outside))
    assert outside.norm() > 1
    options = {"samples": 2, "nfe": 10}
    a, b = (snips.restore(snips.InverseProblem(H, v, 0.05), prior, **options).samples for v in (y, y + outside))
    torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_thin_svd_in_float32():
    A = decaying(200, 5000)
    H = as_operator(A, (1, 50, 100), rank=150)
    x = torch.randn(2, 1, 50, 100)
    torch.testing.assert_close(H.V(H.Vt(x)), x, rtol=0, atol=2e-5)
    torch.testing.assert_close(H.Ut(H(x)), H.singular_values * H.Vt(x), rtol=0, atol=2e-5)


def test_wide_operators_need_no_square_matrix(monkeypatch):
    monkeypatch.setattr(decompose, "FULL", 64)
    H = as_operator(matrix(40), SHAPE).double()
    assert isinstance(H, ThinSVD)
    assert H.how == "computed: full SVD"
    report = check_operator(H)
    assert report, str(report)


def test_large_operators_get_no_svd_unasked(monkeypatch):
    monkeypatch.setattr(decompose, "FULL", 30)
    assert isinstance(as_operator(matrix(), SHAPE), MatrixFree)
    assert isinstance(as_operator(matrix(), SHAPE, svd=True), ThinSVD)


def test_cache_is_by_content(tmp_path, monkeypatch):
    big = np.random.default_rng(1).standard_normal((300, 300))
    first = as_operator(big, (3, 10, 10))
    files = list((tmp_path / "cache" / "svd").iterdir())
    assert [f.suffix for f in files] == [".safetensors"]
    stored = load_file(files[0])
    monkeypatch.setattr(decompose, "aligned_svd", None)  # a second decomposition would fail
    again = as_operator(torch.from_numpy(big.copy()), (3, 10, 10))
    assert torch.equal(again.singular_values, first.singular_values)
    with pytest.raises(TypeError):
        as_operator(big + 1e-6, (3, 10, 10))
    assert torch.equal(stored["s"].float().reshape(3, 10, 10), first.singular_values)


def test_a_damaged_cache_is_computed_again(tmp_path):
    big = np.random.default_rng(1).standard_normal((300, 300))
    first = as_operator(big, (3, 10, 10))
    file = next((tmp_path / "cache" / "svd").iterdir())
    file.write_bytes(file.read_bytes()[:1000])
    assert torch.equal(as_operator(big, (3, 10, 10)).singular_values, first.singular_values)
    assert len(load_file(file)) == 3


def test_a_cache_that_cannot_be_written_costs_nothing_else(tmp_path, monkeypatch, caplog):
    def full(*_):
        raise SafetensorError("File too large")

    monkeypatch.setattr("snips.operators.svd_cache.save_file", full)
    A = matrix(300, 400)
    H = as_operator(A, (1, 20, 20)).double()
    np.testing.assert_allclose(H.as_matrix(), A, atol=1e-10)
    assert "could not be stored" in caplog.text


def test_cache_folder(monkeypatch, tmp_path):
    from snips.files import cache_folder

    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("SNIPS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "snips"


def test_without_a_cache_nothing_is_written(tmp_path):
    as_operator(np.random.default_rng(1).standard_normal((300, 300)), (3, 10, 10), cache=False)
    assert not (tmp_path / "cache").exists()


def test_progress_is_reported(capsys):
    seen = []
    as_operator(matrix(), SHAPE, progress=lambda what, done, total: seen.append((what, done, total)))
    assert seen[0] == ("full SVD", 0, 1)
    assert seen[-1] == ("full SVD", 1, 1)
    seen.clear()
    as_operator(decaying(100, 120), (1, 10, 12), rank=70, progress=lambda *step: seen.append(step))
    assert {what for what, _, _ in seen} == {"singular vectors (random blocks)", "truncation error"}
    assert all(0 < done <= total for _, done, total in seen)


def test_memory_is_estimated_first(monkeypatch):
    monkeypatch.setattr("snips.memory.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"the SVD of a 40 x 90 operator needs .*GiB.*svd=False"):
        as_operator(from_matrix(matrix()), SHAPE)
    assert isinstance(as_operator(from_matrix(matrix()), SHAPE, svd=False), MatrixFree)


def test_truncated_svd_of_a_map_with_all_singular_values_loses_nothing():
    B = torch.from_numpy(matrix(20, 30))
    H = LinearMap((30,), (20,), lambda x: x @ B.T, lambda y: y @ B)
    factors = truncated_svd(H, 20)
    assert factors.lost == 0
    torch.testing.assert_close(factors.left * factors.s @ factors.right.T, B)


def test_dense_takes_a_known_svd():
    from snips.operators.separable import aligned_svd

    B = torch.from_numpy(matrix())
    assert check_operator(Dense(B, SHAPE, aligned_svd(B)).double())


def svd_files(tmp_path):
    return sorted((tmp_path / "cache" / "svd").glob("*"), key=lambda file: file.stat().st_mtime_ns)


def test_the_cache_keeps_what_was_used_last(tmp_path, monkeypatch):
    """Each takes 1.4 MB, so that two of them fit into 3."""
    monkeypatch.setenv("SNIPS_CACHE_MB", "3")
    a, b, c = (np.random.default_rng(seed).standard_normal((300, 300)) for seed in range(3))
    for big in (a, b):
        as_operator(big, (3, 10, 10))
    first, second = svd_files(tmp_path)
    for age, file in enumerate((second, first), start=1):  # the first is the older one
        os.utime(file, ns=(age * -(10**9) + 10**18,) * 2)
    as_operator(a, (3, 10, 10))  # now it is the one used last
    as_operator(c, (3, 10, 10))
    assert len(svd_files(tmp_path)) == 2
    assert first.exists()
    assert not second.exists()


def test_what_exceeds_the_cache_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("SNIPS_CACHE_MB", "1")
    as_operator(np.random.default_rng(1).standard_normal((300, 300)), (3, 10, 10))
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("SNIPS_CACHE_MB", "much")
    with pytest.raises(ValueError, match="SNIPS_CACHE_MB must be a whole number of megabytes, but is 'much'"):
        as_operator(np.random.default_rng(1).standard_normal((300, 300)), (3, 10, 10))


def test_files_of_another_format_are_not_read(tmp_path, monkeypatch):
    big = np.random.default_rng(1).standard_normal((300, 300))
    as_operator(big, (3, 10, 10))
    monkeypatch.setattr("snips.operators.svd_cache.FORMAT", 2)
    as_operator(big, (3, 10, 10))
    assert len(svd_files(tmp_path)) == 2


def test_noise_levels_fill_no_disk(tmp_path):
    H = as_operator(np.random.default_rng(1).standard_normal((300, 300)), (3, 10, 10), cache=False)
    y, levels = torch.ones(1, 300), torch.linspace(1, 2, 300)
    snips.whiten(H, y, levels)
    snips.stack_measurements([(H, y, levels), (H, y, 1.0)])
    assert not (tmp_path / "cache").exists()
    snips.whiten(H, y, levels, cache=True)
    assert len(svd_files(tmp_path)) == 1
