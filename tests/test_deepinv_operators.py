"""deepinv's physics come in with their own structure, and as what their `A` really does."""

from __future__ import annotations

import pytest
import torch

from deepinv_cases import COMPUTED, STRUCTURED, P
from snips import InverseProblem, StationaryGaussian, as_operator, check_operator, restore
from snips.operators import MatrixFree


@pytest.mark.parametrize("name", [*STRUCTURED, *COMPUTED])
def test_does_what_A_does(name):
    physics, shape = {**STRUCTURED, **COMPUTED}[name]()
    H = as_operator(physics, shape)
    x = torch.randn(2, *shape)
    expected = physics.A(x)
    torch.testing.assert_close(H(x), expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
    y = torch.randn_like(expected)
    torch.testing.assert_close(H.adjoint(y), physics.A_adjoint(y), rtol=0, atol=2e-5 * float(y.norm()))
    report = check_operator(H)
    assert report, str(report)
    assert H.how.startswith("exact" if name in STRUCTURED and name != "single_pixel" else "computed: full SVD")


@pytest.mark.parametrize("name", STRUCTURED)
def test_singular_values_are_those_of_A(name):
    """Their own masks are not: of half a spectrum, of an economy SVD, of a number."""
    physics, shape = STRUCTURED[name]()
    H = as_operator(physics, shape)
    n = torch.Size(shape).numel()
    A = physics.A(torch.eye(n).reshape(n, *shape)).reshape(n, -1).T
    claimed = H.singular_values.expand(H.Vt(torch.zeros(1, *shape)).shape[1:]).flatten().sort(descending=True).values
    actual = torch.zeros(n)
    values = torch.linalg.svdvals(A.double()).float()
    actual[: len(values)] = values
    torch.testing.assert_close(claimed, actual, rtol=0, atol=2e-6 * float(values.max()))


def test_structure_is_not_believed_where_a_subclass_differs():
    class Shifted(P.Inpainting):
        def A(self, x, mask=None, **kwargs):
            return super().A(x.roll(1, -1), mask, **kwargs)

        def A_adjoint(self, y, mask=None, **kwargs):
            return super().A_adjoint(y, mask, **kwargs).roll(-1, -1)

    physics = Shifted((1, 6, 6), mask=(torch.rand(1, 6, 6) > 0.5).float())
    H = as_operator(physics, (1, 6, 6))
    assert H.how == "computed: full SVD"
    x = torch.randn(2, 1, 6, 6)
    torch.testing.assert_close(H(x), physics.A(x))


def test_unmeasured_entries_do_not_count_in_faithfulness():
    physics, shape = STRUCTURED["demosaicing"]()
    prior = StationaryGaussian.natural(shape)
    x = prior.sample(1, seed=1)
    H = as_operator(physics, shape)
    y = physics.A(x) + 0.1 * physics.mask * torch.randn(1, *shape)
    result = restore(InverseProblem(H, y, 0.1), prior, samples=4, nfe=30)
    ratio = result.faithfulness().std_ratio
    assert ratio is not None
    assert (ratio - 1).abs().max() < 0.35  # 64 entries; with the 128 zeros it would be 0.58 of that
    assert int(H.recorded.sum()) == 64


def test_without_svd():
    physics, shape = COMPUTED["tomography"]()
    H = as_operator(physics, shape, svd=False)
    assert isinstance(H, MatrixFree)
    A = H.as_matrix()
    assert H.largest() == pytest.approx(1.01 * float(torch.linalg.svdvals(A)[0]), rel=1e-3)
    assert check_operator(H)


def test_refused_with_one_line():
    with pytest.raises(ValueError, match="not a deepinv LinearPhysics"):
        as_operator(P.SinglePhotonLidar(device="cpu"), (1, 8, 8))
    with pytest.raises(ValueError, match="2 masks, one for each image"):
        as_operator(P.Inpainting((1, 4, 4), mask=torch.ones(2, 1, 4, 4)), (1, 4, 4))
    with pytest.raises(ValueError, match=r"snips\.stack"):
        as_operator(P.stack(P.Denoising(), P.Denoising()), (1, 4, 4))
    wrong = P.LinearPhysics(A=lambda x: 2 * x, A_adjoint=lambda y: y)
    with pytest.raises(ValueError, match="adjoint of LinearPhysics is wrong: the dot test"):
        as_operator(wrong, (1, 4, 4))
    bent = P.LinearPhysics(A=lambda x: x**2, A_adjoint=lambda y: y)
    with pytest.raises(ValueError, match="LinearPhysics is not linear"):
        as_operator(bent, (1, 4, 4))
