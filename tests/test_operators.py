"""The contract of every operator: the identities of an aligned SVD, and that forward agrees with it."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from operator_cases import CASES
from snips import check_operator, make_operator
from snips.operators import Denoising, FourierSampling, LinearOperator

DTYPES = {torch.float32: 2e-5, torch.float64: 1e-12}


@pytest.fixture(params=CASES, ids=[name for name, _, _ in CASES])
def operator(request) -> LinearOperator:
    _, build, shape = request.param
    return build(*shape)


@pytest.fixture(params=DTYPES, ids=["float32", "float64"])
def setting(request, operator):
    """The operator in one precision, a batch of images and measurements, and what rounding allows."""
    dtype = request.param
    H = operator.to(dtype)
    x = torch.randn(3, *H.image_shape, dtype=dtype)
    y = torch.randn(3, *H.measurement_shape, dtype=dtype)
    scale = float(H.singular_values.max().clamp(min=1))
    return H, x, y, DTYPES[dtype] * scale * max(1.0, float(x[0].numel()) ** 0.5)


def close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


def test_forward_agrees_with_the_svd(setting):
    H, x, _, tolerance = setting
    close(H(x), H.U(H.singular_values * H.Vt(x)), tolerance)


def test_V_is_orthogonal(setting):
    H, x, _, tolerance = setting
    close(H.V(H.Vt(x)), x, tolerance)
    close(H.Vt(x).abs().square().flatten(1).sum(1), x.square().flatten(1).sum(1), 10 * tolerance)


def test_U_is_orthogonal_on_the_range(setting):
    H, _, y, tolerance = setting
    y_bar = H.Ut(y)
    close(H.Ut(H.U(y_bar)), y_bar, tolerance)
    close(H.U(y_bar).square().sum(), y_bar.abs().square().sum(), 100 * tolerance)


def test_nothing_is_measured_where_s_is_0(setting):
    H, _, y, _ = setting
    assert (H.Ut(y) * (H.singular_values == 0) == 0).all()


def test_shapes_are_aligned(setting):
    H, x, y, _ = setting
    assert H(x).shape == y.shape == H.U(H.Ut(y)).shape
    assert H.Vt(x).shape == H.Ut(y).shape
    assert torch.broadcast_shapes(H.singular_values.shape, H.Vt(x).shape[1:]) == H.Vt(x).shape[1:]
    assert H.V(H.Vt(x)).shape == x.shape
    assert not H.singular_values.is_complex()


def test_adjoint(setting):
    H, x, y, tolerance = setting
    close((H(x) * y).sum(), (x * H.adjoint(y)).sum(), 100 * tolerance)


def test_adjoint_and_pinv_are_those_of_the_matrix(operator):
    H = operator.double()
    matrix, y = H.as_matrix(), torch.randn(2, *H.measurement_shape, dtype=torch.float64)
    close(H.adjoint(y).flatten(1), y.flatten(1) @ matrix, 1e-10)
    rank_cut = 1e-11
    expected = y.flatten(1) @ torch.linalg.pinv(matrix, rtol=rank_cut).T if matrix.numel() else torch.zeros(2, 0)
    if matrix.numel():
        close(H.pinv(y).flatten(1), expected, 1e-6 * float(expected.abs().max().clamp(min=1)))


def test_singular_values_are_those_of_the_matrix(operator):
    H = operator.double()
    matrix = H.as_matrix()
    claimed = H.singular_values.expand(H.Vt(torch.zeros(1, *H.image_shape, dtype=torch.float64)).shape[1:]).flatten()
    if isinstance(H, FourierSampling) and H.complex_image:
        claimed = claimed.repeat_interleave(2)  # one complex coordinate is two real ones
    claimed = claimed.sort(descending=True).values
    actual = torch.zeros(matrix.shape[1], dtype=torch.float64)
    if matrix.numel():
        values = torch.linalg.svdvals(matrix)
        actual[: len(values)] = values
    close(claimed, actual, 1e-12 * float(actual.max().clamp(min=1)) * matrix.shape[1])


def test_batch_is_image_by_image(operator):
    x = torch.randn(3, *operator.image_shape)
    together = operator(x)
    for i in range(3):
        close(together[i : i + 1], operator(x[i : i + 1]), 1e-4)


def test_double_is_exact_even_after_float(operator):
    """Casting down and up again must not leave rounding errors behind."""
    there_and_back = copy.deepcopy(operator).float().double()
    report = check_operator(there_and_back)
    assert report, str(report)


def test_pickle_and_deepcopy(operator):
    x = torch.randn(2, *operator.image_shape)
    for twin in (pickle.loads(pickle.dumps(operator)), copy.deepcopy(operator)):
        close(twin(x), operator(x), 0)
        close(twin.V(twin.Vt(x)), operator.V(operator.Vt(x)), 0)


def test_no_complex_buffers(operator):
    assert not any(buffer.is_complex() for buffer in operator.buffers())


def test_check_operator_accepts_what_is_right(operator):
    assert check_operator(operator)
    assert check_operator(operator.double())


class WrongForward(Denoising):
    def forward(self, x):
        return 0.98 * x


class WrongBasis(Denoising):
    def Vt(self, x):
        return 1.01 * x


class NotLinear(Denoising):
    def forward(self, x):
        return x.abs()


class WrongShape(Denoising):
    def forward(self, x):
        return x[..., ::2]


class ForgottenValues(Denoising):
    def __init__(self, image_shape):
        super().__init__(image_shape)
        del self.singular_values
        self._exact.clear()


class Typo(Denoising):
    def Vt(self, x):
        return self.baiss @ x


@pytest.mark.parametrize(("wrong", "word"), [(ForgottenValues, "singular_values"), (Typo, "baiss")])
def test_check_operator_reports_what_cannot_be_computed(wrong, word):
    report = check_operator(wrong((3, 8, 8)))
    assert not report
    failed = [check for check in report.checks if not check.passed]
    assert any(f"AttributeError: '{wrong.__name__}' object has no attribute '{word}'" in c.reason for c in failed)
    assert f"has no attribute '{word}'" in str(report)
    assert any(check.passed for check in report.checks)


@pytest.mark.parametrize("wrong", [WrongForward, WrongBasis, NotLinear, WrongShape])
def test_check_operator_refuses_what_is_wrong(wrong):
    report = check_operator(wrong((3, 8, 8)))
    assert not report
    assert "FAIL" in str(report)


@pytest.mark.parametrize(
    ("name", "shape", "measured"),
    [
        ("denoise", (3, 64, 64), (3, 64, 64)),
        ("inpaint", (3, 64, 64), (3, 44 * 64)),
        ("deblur_uniform", (3, 64, 48), (3, 64, 48)),
        ("deblur_gauss", (1, 33, 17), (1, 33, 17)),
        ("deblur_motion", (3, 32, 32), (3, 32, 32)),
        ("sr2", (3, 64, 32), (3, 32, 16)),
        ("sr4", (3, 64, 64), (3, 16, 16)),
        ("cs4", (3, 64, 64), (3, 1024)),
        ("cs8", (3, 15, 17), (3, 15 * 17 // 8)),
        ("cs16", (1, 64, 64), (1, 256)),
        ("colorize", (3, 64, 64), (1, 64, 64)),
        ("mri", (1, 64, 64), (1, 1024, 2)),
        ("mri", (2, 64, 64), (1, 1024, 2)),
    ],
)
def test_problem_shapes(name, shape, measured):
    operator = make_operator(name, shape)
    assert operator.measurement_shape == measured
    assert operator.recipe is not None
    assert operator.recipe.name == name
