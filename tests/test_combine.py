"""Composition, stacking and whitening: the matrix is the product, and `.how` says where the SVD comes from."""

from __future__ import annotations

import pytest
import torch

import snips
from operator_cases import random
from snips import InverseProblem, StationaryGaussian, check_operator, make_operator, operators
from snips.operators import CircularBlur, Deblurring, Inpainting, MaskedTransform, compose, stack
from snips.operators.combine import scale_rows

SHAPE = (3, 8, 8)


def blur(shape=SHAPE):
    return Deblurring(shape, random(3), random(4))


def mask(shape=SHAPE):
    return random(*shape) > 0


COMPOSITIONS = {
    "rows_after_blur": (make_operator("inpaint", SHAPE), blur(), True),
    "rectangle_after_blur": (Inpainting(SHAPE, torch.arange(64).reshape(8, 8) % 8 < 5), blur(), True),
    "weights_after_blur": (MaskedTransform(SHAPE, random(8, 1) * random(1, 8)), blur(), True),
    "blur_after_smaller": (blur((3, 4, 4)), make_operator("sr2", SHAPE), True),
    "smaller_after_blur": (make_operator("sr2", SHAPE), blur(), True),
    "grey_after_blur": (make_operator("colorize", SHAPE), blur(), True),
    "circular_twice": (CircularBlur(SHAPE, random(2, 3)), CircularBlur(SHAPE, random(2, 4)), True),
    "circular_by_channel": (CircularBlur(SHAPE, random(3, 3, 5)), CircularBlur(SHAPE, random(4, 2)), True),
    "mask_after_fourier": (
        MaskedTransform((2, 8, 8), mask((2, 8, 8))),
        MaskedTransform((2, 8, 8), random(2, 8, 8), "fourier"),
        True,
    ),
    "identity_last": (make_operator("denoise", SHAPE), CircularBlur(SHAPE, random(3, 3)), True),
    "identity_first": (CircularBlur(SHAPE, random(3, 3)), make_operator("denoise", SHAPE), True),
    "random_mask_after_blur": (Inpainting(SHAPE, mask((8, 8))), blur(), False),
    "mask_after_circular": (Inpainting(SHAPE, mask()), CircularBlur(SHAPE, random(3, 3)), False),
    "circular_after_separable": (CircularBlur(SHAPE, random(3, 3)), blur(), False),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_compose(name):
    outer, inner, exact = COMPOSITIONS[name]
    H = compose(outer, inner).double()
    torch.testing.assert_close(H.as_matrix(), outer.double().as_matrix() @ inner.double().as_matrix())
    report = check_operator(H)
    assert report, str(report)
    assert H.measurement_shape == outer.measurement_shape
    assert H.how.startswith("exact structure: " if exact else "computed: full SVD")


STACKS = {
    "twice": ([blur(), blur()], True),
    "blur_and_noisy_image": ([CircularBlur(SHAPE, random(3, 3)), make_operator("denoise", SHAPE)], True),
    "two_blurs": ([CircularBlur(SHAPE, random(3, 3)), CircularBlur(SHAPE, random(2, 5))], True),
    "blur_and_fourier": ([CircularBlur(SHAPE, random(3, 3)), make_operator("mri", SHAPE)], True),
    "masks": ([Inpainting(SHAPE, mask()), MaskedTransform(SHAPE, random(8, 8))], True),
    "identities": ([make_operator("denoise", SHAPE)] * 3, True),
    "blur_and_mask": ([blur(), Inpainting(SHAPE, mask())], False),
    "separable_and_circular": ([blur(), CircularBlur(SHAPE, random(3, 3))], False),
}


@pytest.mark.parametrize("name", STACKS)
def test_stack(name):
    parts, exact = STACKS[name]
    H = stack(*parts).double()
    torch.testing.assert_close(H.as_matrix(), torch.cat([part.double().as_matrix() for part in parts]))
    report = check_operator(H)
    assert report, str(report)
    assert H.how.startswith("exact structure" if exact else "computed: full SVD")


class Half(operators.LinearOperator):
    """As somebody may write one, with a plain buffer for the singular values."""

    def __init__(self, image_shape):
        super().__init__(image_shape, image_shape)
        self.register_buffer("singular_values", torch.full((1, 1, 1), 0.5))

    def forward(self, x):
        return x / 2

    def Vt(self, x):
        return x

    V = Ut = U = Vt


def test_stack_of_an_operator_with_plain_buffers():
    H = stack(Half(SHAPE), Half(SHAPE))
    assert check_operator(H)
    x = random(1, *SHAPE)
    torch.testing.assert_close(H.double()(x), torch.cat([x.flatten(1), x.flatten(1)], 1) / 2)


def test_a_truncated_svd_is_not_called_exact():
    A = torch.linalg.qr(random(40, 40)).Q * 0.5 ** torch.arange(40) @ random(40, 64)
    truncated = snips.as_operator(A, (1, 8, 8), rank=10)
    assert "truncated SVD with 10" in compose(truncated, make_operator("denoise", (1, 8, 8))).how
    assert "truncated SVD with 10" in stack(truncated, truncated).how
    assert "truncated SVD with 10" in scale_rows(truncated, torch.full((40,), 2.0)).how


def test_split_undoes_join():
    H = stack(CircularBlur(SHAPE, random(3, 3)), make_operator("mri", SHAPE))
    measured = [random(2, *SHAPE), random(2, 3, 16, 2)]
    for a, b in zip(H.split(H.join(measured)), measured, strict=True):
        assert torch.equal(a, b)


WEIGHTED = {
    "denoise": (make_operator("denoise", SHAPE), True),
    "inpaint": (Inpainting(SHAPE, mask()), True),
    "cs": (make_operator("cs4", SHAPE), True),
    "masked": (MaskedTransform((2, 8, 8), random(2, 8, 8), "fourier"), True),
    "stack": (stack(Inpainting(SHAPE, mask()), MaskedTransform(SHAPE, random(8, 8))), True),
    "blur": (blur(), False),
    "mri": (make_operator("mri", SHAPE), False),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_scale_rows(name):
    operator, exact = WEIGHTED[name]
    weights = random(*operator.measurement_shape).exp()
    H = scale_rows(operator, weights).double()
    torch.testing.assert_close(H.as_matrix(), weights.reshape(-1, 1) * operator.double().as_matrix())
    report = check_operator(H)
    assert report, str(report)
    assert H.how.startswith("exact structure" if exact else "computed: full SVD")


@pytest.mark.parametrize(
    "operator", [make_operator("deblur_motion", (1, 6, 6)), blur((1, 6, 6))], ids=["circular", "zero"]
)
def test_whitened_posterior_is_that_of_unequal_noise(operator):
    """Against the posterior written with the noise's covariance, in matrices."""
    prior = StationaryGaussian.natural((1, 6, 6)).as_gaussian().double()
    sigma = 0.05 * random(1, 6, 6).exp()
    y = operator.double()(prior.sample(1, seed=2)) + sigma * random(1, 1, 6, 6)
    posterior = prior.posterior(snips.whiten(operator, y, sigma))
    H, precision = operator.as_matrix(), torch.diag(sigma.flatten() ** -2)
    covariance = torch.linalg.inv(torch.linalg.inv(prior.covariance) + H.T @ precision @ H)
    mean = prior.mean.flatten() + covariance @ H.T @ precision @ (y.flatten() - H @ prior.mean.flatten())
    torch.testing.assert_close(posterior.covariance, covariance, rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(posterior.mean.flatten(), mean, rtol=1e-5, atol=1e-8)


def test_two_measurements_are_sampled_as_their_joint_posterior():
    """300 samples; a perfect sampler fails once in 1,000 (4.5 standard errors, 36 pixels); 8 % are allowed on top."""
    shape = (1, 6, 6)
    prior = StationaryGaussian.natural(shape).as_gaussian().double()
    x = prior.sample(1, seed=2)
    circular, identity = make_operator("deblur_motion", shape).double(), make_operator("denoise", shape).double()
    measured = [(circular, circular(x) + 0.02 * random(1, *shape), 0.02), (identity, x + 0.2 * random(1, *shape), 0.2)]
    problem = snips.stack_measurements(measured, truth=x)
    assert problem.sigma_0 == 1
    assert problem.operator.how == "exact structure: one basis for all parts"
    samples = snips.restore(problem, prior, samples=300, nfe=60).samples[:, 0].flatten(1)
    posterior = prior.posterior(problem)
    std = posterior.covariance.diagonal().sqrt()
    assert ((samples.mean(0) - posterior.mean.flatten()) / std).abs().max() < 4.5 / 300**0.5 + 0.08
    assert (samples.var(0) / std**2 - 1).abs().max() < 4.5 * (2 / 300) ** 0.5 + 0.08


def test_equal_levels_change_nothing():
    operator = make_operator("sr2", SHAPE)
    problem = InverseProblem.simulate(operator, torch.rand(1, *SHAPE), 0.1)
    whitened = snips.whiten(operator, problem.y, torch.tensor(0.1))
    prior = StationaryGaussian.natural(SHAPE)
    options = {"samples": 2, "nfe": 12}
    a, b = (snips.restore(p, prior, **options).samples for p in (problem, whitened))
    torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


def test_refused_with_one_line():
    with pytest.raises(ValueError, match=r"the first operator measures \(3, 4, 4\), the second takes"):
        compose(blur(), make_operator("sr2", SHAPE))
    with pytest.raises(ValueError, match="the same images"):
        stack(blur(), blur((1, 8, 8)))
    with pytest.raises(ValueError, match="positive and finite"):
        snips.whiten(blur(), torch.zeros(1, *SHAPE), torch.zeros(SHAPE))
    with pytest.raises(ValueError, match="do not fit"):
        snips.whiten(blur(), torch.zeros(1, *SHAPE), torch.ones(5))


def test_convolved_kernels_keep_their_centre():
    delta = torch.zeros(1, 2, 2, dtype=torch.float64)
    delta[0, 1, 1] = 1  # an even kernel's middle: the identity
    twice = operators.circular.convolved(delta, delta)
    assert twice.shape == (1, 4, 4)
    assert twice[0, 2, 2] == 1


def test_axes_that_are_places_stay_places():
    """A measurement (H, W) without channels has neighbours along both axes, also when combined."""
    picture = snips.as_operator(torch.eye(64), (1, 8, 8), svd=False)
    picture.measured_channels = 0
    assert compose(picture, CircularBlur((1, 8, 8), random(3, 3))).measured_channels == 0
    assert scale_rows(picture, random(64).exp()).measured_channels == 0


def test_pixels_stay_pixels_and_numbers_numbers():
    """What comes out has the scale of the image only where every step keeps it."""
    smooth, gain = CircularBlur(SHAPE, torch.ones(3, 3) / 9), CircularBlur(SHAPE, torch.ones(3, 3))
    smaller = operators.SuperResolution(SHAPE, 2)
    assert [part.pixel_values for part in (smooth, gain, smaller)] == [True, False, True]
    assert compose(smooth, smooth).pixel_values
    assert compose(smaller, smooth).pixel_values  # neither axis by axis nor circular: decomposed
    assert compose(operators.Denoising(SHAPE), smooth).pixel_values
    assert not compose(smooth, gain).pixel_values
    assert not compose(smaller, gain).pixel_values
    assert not compose(operators.MaskedTransform(SHAPE, torch.ones(SHAPE), "hadamard"), smooth).pixel_values
    assert not scale_rows(smooth, torch.full(SHAPE, 3.0)).pixel_values


def test_a_column_times_a_row_keeps_the_brightness_of_both():
    """Each alone is known up to a factor only."""
    kernel = torch.outer(torch.tensor([1.0, 2, 1]), torch.tensor([3.0, 1])) / 16
    for border in operators.blurs.BORDERS:
        assert operators.blurs.blur(SHAPE, kernel, border).pixel_values
        assert not operators.blurs.blur(SHAPE, 2 * kernel, border).pixel_values
    assert operators.blurs.open_blur(SHAPE, kernel).pixel_values
