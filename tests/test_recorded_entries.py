"""Which entries of a measurement are recorded: masks keep zeros elsewhere, and these are not taken for data."""

from __future__ import annotations

import pytest
import torch

from operator_cases import random
from snips import InverseProblem, make_operator
from snips.metrics import faithfulness
from snips.operators import CircularBlur, Deblurring, Inpainting, MaskedTransform, compose, stack
from snips.operators.combine import scale_rows

HALF = (1, 24, 24)
SEEN = random(*HALF) > 0
ROWS = torch.arange(24).reshape(24, 1) % 2 == 0
PARTLY_RECORDED = {
    "mask": (MaskedTransform(HALF, SEEN), SEEN),
    "mask_after_blur": (compose(MaskedTransform(HALF, SEEN), CircularBlur(HALF, torch.ones(3, 3) / 9)), SEEN),
    "rows_after_blur": (compose(MaskedTransform(HALF, ROWS), make_operator("deblur_uniform", HALF)), ROWS),
    "identity_after_mask": (compose(make_operator("denoise", HALF), MaskedTransform(HALF, SEEN)), SEEN),
    "masks": (compose(MaskedTransform(HALF, ROWS), MaskedTransform(HALF, SEEN)), SEEN & ROWS),
    "without_svd": (
        compose(MaskedTransform(HALF, SEEN), CircularBlur(HALF, torch.ones(3, 3) / 9), svd=False),
        SEEN,
    ),
    "stack": (
        stack(MaskedTransform(HALF, SEEN), make_operator("deblur_uniform", HALF)),
        torch.cat([SEEN.flatten(), torch.ones(24 * 24, dtype=torch.bool)]),
    ),
    "scaled": (
        scale_rows(compose(MaskedTransform(HALF, SEEN), CircularBlur(HALF, torch.ones(3, 3) / 9)), random(*HALF).exp()),
        SEEN,
    ),
}


@pytest.mark.parametrize("name", PARTLY_RECORDED)
def test_the_truth_explains_a_measurement_with_zeros_where_nothing_is_recorded(name):
    """Of 8 true images less than 5 pass the test of normality with probability 5e-4; their level is right."""
    operator, recorded = PARTLY_RECORDED[name]
    x = torch.rand(8, *HALF, generator=torch.Generator().manual_seed(2))
    noisy = InverseProblem.simulate(operator, x, 0.1, seed=0)
    found = faithfulness(InverseProblem(operator, noisy.y * recorded, 0.1), x[None])
    torch.testing.assert_close(found.std_ratio, torch.ones_like(found.std_ratio), rtol=0, atol=float(found.slack.max()))
    assert int(found.tests["p_value"].sum()) >= 5
    assert torch.equal(operator.recorded, recorded.expand(operator.measurement_shape))


def test_a_blur_after_a_mask_is_recorded_everywhere():
    """Its y is that of the blur, with noise in every entry."""
    for outer in (CircularBlur(HALF, torch.ones(3, 3)), make_operator("deblur_uniform", HALF)):
        assert compose(outer, MaskedTransform(HALF, ROWS)).recorded is None
    shape = (3, 8, 8)
    assert scale_rows(make_operator("deblur_uniform", shape), random(*shape).exp()).recorded is None
    blur_and_mask = Deblurring(shape, random(3), random(4)), Inpainting(shape, random(*shape) > 0)
    assert stack(*blur_and_mask).recorded is None
