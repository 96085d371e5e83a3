"""InverseProblem, random streams, and bad input to the library."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from snips import PROBLEMS, InverseProblem, make_operator
from snips.inverse_problem import check_tensor
from snips.operators import CircularBlur, CompressiveSensing, Deblurring, Denoising, Dense, Inpainting
from snips.streams import Chain, Streams, stream_key

SHAPE = (3, 8, 8)


def test_simulated_noise_has_the_level_asked_for():
    """12,288 values: a standard deviation within 3 % (5 standard errors)."""
    problem = InverseProblem.simulate(make_operator("denoise", (3, 64, 64)), torch.zeros(1, 3, 64, 64), 0.2, seed=3)
    assert problem.y.std().item() == pytest.approx(0.2, rel=0.03)
    assert torch.equal(problem.truth, torch.zeros(1, 3, 64, 64))


def test_simulated_noise_depends_on_seed_and_image_alone():
    x, H = torch.rand(3, *SHAPE), make_operator("sr2", SHAPE)
    first, again, other = (InverseProblem.simulate(H, x, 0.1, seed=s) for s in (0, 0, 1))
    assert torch.equal(first.y, again.y)
    assert not torch.equal(first.y, other.y)
    assert torch.equal(first.y[:1], InverseProblem.simulate(H, x[:1], 0.1, seed=0).y)


def test_operator_follows_the_dtype_of_y():
    H = make_operator("deblur_uniform", SHAPE)
    problem = InverseProblem(H, torch.zeros(1, *SHAPE, dtype=torch.float64), 0.1)
    assert problem.operator.singular_values.dtype == torch.float64
    assert H.singular_values.dtype == torch.float32  # the caller's is left alone


def test_parts_of_a_problem():
    problem = InverseProblem.simulate(make_operator("sr2", SHAPE), torch.rand(3, *SHAPE), 0.1, seed=0)
    assert torch.equal(problem[1].y, problem.y[1:2])
    assert problem[-1].first_image == problem[2:].first_image == problem[1:][1:].first_image == 2
    for nothing in (slice(2, 1), slice(0, 3, 2)):
        with pytest.raises(ValueError, match="part of a problem"):
            problem[nothing]
    for image in (3, -4, np.int64(3)):
        with pytest.raises(IndexError, match="out of range"):
            problem[image]
    assert [part.first_image for part in problem] == [0, 1, 2]
    assert problem[np.int64(-1)].first_image == problem[torch.tensor(2)].first_image == 2


def test_a_whole_number_of_any_size_is_a_width_in_pixels():
    wide = make_operator("deblur_gauss", SHAPE, std=10**30).double().as_matrix()
    torch.testing.assert_close(wide, make_operator("deblur_uniform", SHAPE).double().as_matrix())


def test_streams_never_meet():
    keys = {stream_key(0, 0, sample) for sample in range(-1, 1000)}
    assert len(keys) == 1001
    streams = Streams(0, [Chain(0, 0), Chain(0, 1), Chain(1, 0)])
    a, b, c = streams.normal(torch.empty(3, 1000))
    assert abs(torch.corrcoef(torch.stack([a, b, c])).fill_diagonal_(0)).max() < 0.15


def test_seed_0_is_a_seed():
    assert stream_key(0, 0, 0) != stream_key(1, 0, 0)


@given(
    shape=st.lists(st.integers(0, 9), min_size=1, max_size=5).map(tuple),
)
def test_any_other_shape_of_y_is_refused(shape):
    H = Denoising((2, 3, 4))
    if len(shape) == 4 and shape[1:] == (2, 3, 4) and shape[0] > 0:
        InverseProblem(H, torch.zeros(shape), 0.1)
    else:
        with pytest.raises(ValueError, match="shape"):
            InverseProblem(H, torch.zeros(shape), 0.1)


@given(place=st.integers(0, 191), value=st.sampled_from([math.nan, math.inf, -math.inf]))
def test_not_finite_anywhere_is_refused(place, value):
    y = torch.zeros(192)
    y[place] = value
    with pytest.raises(ValueError, match="NaN or Inf"):
        InverseProblem(Denoising(SHAPE), y.reshape(1, *SHAPE), 0.1)
    with pytest.raises(ValueError, match="NaN or Inf"):
        InverseProblem.simulate(Denoising(SHAPE), y.reshape(1, *SHAPE), 0.1, seed=0)


@given(sigma_0=st.one_of(st.floats(max_value=-1e-300), st.sampled_from([math.nan, math.inf, None, "much"])))
def test_bad_sigma_0_is_refused(sigma_0):
    with pytest.raises(ValueError, match="sigma_0 must be"):
        InverseProblem(Denoising(SHAPE), torch.zeros(1, *SHAPE), sigma_0)


def test_integers_and_arrays_are_not_measurements():
    for value in (torch.zeros(1, *SHAPE, dtype=torch.int64), torch.zeros(1, *SHAPE).half(), [0.0]):
        with pytest.raises(ValueError, match="must be a tensor of float"):
            check_tensor("y", value, SHAPE)


def test_truth_must_match():
    with pytest.raises(ValueError, match="1 measurements but 2"):
        InverseProblem(Denoising(SHAPE), torch.zeros(1, *SHAPE), 0.1, truth=torch.zeros(2, *SHAPE))


@given(name=st.text(max_size=12))
def test_unknown_problems_list_the_known(name):
    if name not in PROBLEMS:
        with pytest.raises(ValueError, match="unknown problem") as caught:
            make_operator(name, SHAPE)
        assert "deblur_uniform" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_nearest_name_is_suggested():
    with pytest.raises(ValueError, match="did you mean deblur_uniform"):
        make_operator("deblur_unifrom", SHAPE)


@given(factor=st.integers(2, 9), height=st.integers(1, 40), width=st.integers(1, 40))
def test_sizes_must_divide(factor, height, width):
    from snips.operators import SuperResolution

    if height % factor or width % factor:
        with pytest.raises(ValueError, match="does not divide"):
            SuperResolution((1, height, width), factor)
    else:
        assert SuperResolution((1, height, width), factor).measurement_shape == (1, height // factor, width // factor)


@given(
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
    bad=st.sampled_from([0.0, math.nan, math.inf]),
    place=st.integers(0, 24),
)
def test_bad_kernels_are_refused(rows, columns, bad, place):
    kernel = torch.zeros(rows * columns)
    kernel[place % len(kernel)] = bad
    with pytest.raises(ValueError, match="kernel"):
        CircularBlur(SHAPE, kernel.reshape(rows, columns))
    with pytest.raises(ValueError, match="kernel"):
        Deblurring(SHAPE, kernel)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Denoising((3, 0, 4)), "image_shape"),
        (lambda: Denoising((3, 4)), "image_shape"),
        (lambda: Inpainting(SHAPE, torch.ones(7, 8)), "mask has shape"),
        (lambda: Inpainting(SHAPE, torch.full((8, 8), 0.5)), "True and False"),
        (lambda: CompressiveSensing(SHAPE, 0), "choose between 1 and 64"),
        (lambda: CompressiveSensing(SHAPE, 65), "choose between"),
        (lambda: CompressiveSensing((1, 3, 5), 2, "hadamard"), "power of two"),
        (lambda: CompressiveSensing(SHAPE, 2, "fourier"), "unknown transform"),
        (lambda: Dense(torch.zeros(3, 5), SHAPE), "5 columns"),
        (lambda: Dense(torch.full((3, 192), math.nan), SHAPE), "not finite"),
        (lambda: Dense(torch.zeros(3, 192, dtype=torch.complex64), SHAPE), "real"),
        (lambda: make_operator("mri", SHAPE, acceleration=0.5), "acceleration"),
        (lambda: make_operator("mri", SHAPE, complex_image=True), "pairs of channels"),
        (lambda: make_operator("deblur_uniform", SHAPE, width=0), "whole number from 1"),
        (lambda: make_operator("deblur_uniform", SHAPE, width=10**12), "whole number from 1"),
        (lambda: make_operator("deblur_motion", SHAPE, length=1e9), "length from 1"),
        (lambda: make_operator("deblur_kernel", SHAPE, kernel=torch.ones(2, 2) * 1j), "complex"),
        (lambda: make_operator("cs4", SHAPE, seed=-1), "seed"),
        (lambda: make_operator("cs4", SHAPE, seed=10**30), "seed"),
        (lambda: make_operator("denoise", "abc"), "image_shape"),
        (lambda: make_operator(["sr2"], SHAPE), "unknown problem"),
        (lambda: make_operator("deblur_gauss", SHAPE, std=-1), "positive"),
        (lambda: make_operator("deblur_kernel", SHAPE), "needs the option kernel"),
        (lambda: make_operator("deblur_kernel", SHAPE, kernel={}), "the kernel must be an array of numbers"),
        (lambda: make_operator("deblur_kernel", SHAPE, kernel=[None]), "the kernel must be an array of numbers"),
        (lambda: make_operator("matrix", SHAPE, matrix={}), "the matrix must be an array of numbers"),
        (lambda: make_operator("deblur_gauss", SHAPE, std=10**400), "deblur_gauss cannot take std=1000"),
        (lambda: make_operator("deblur_motion", SHAPE, length=0), "length"),
        (lambda: make_operator("sr2", SHAPE, method="nearest"), "unknown method"),
        (lambda: make_operator("deblur_uniform", SHAPE, width="wide"), "whole number"),
        (lambda: make_operator("sr2", SHAPE, factor=3), "cannot take factor=3"),
    ],
)
def test_bad_operators_are_refused_with_one_line(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_too_large_for_memory_says_how_large_and_what_to_use():
    image = (3, 512, 512)
    with pytest.raises(ValueError, match=r"GiB.*hadamard"):
        CompressiveSensing(image, 100, "dense")
    with pytest.raises(ValueError, match=r"GiB.*Deblurring"):
        Dense(torch.zeros(1).expand(400_000, 3 * 512 * 512), image)
    with pytest.raises(ValueError, match=r"GiB"):
        make_operator("denoise", image).as_matrix()


@pytest.mark.parametrize(
    ("name", "options"), [("deblur_uniform", {}), ("deblur_gauss", {"border": "open"}), ("sr2", {})]
)
def test_the_memory_of_a_separable_operator_is_that_of_its_svd(name, options, monkeypatch):
    """The matrix of 64 pixels alone takes 32 KiB, its SVD with all copies 176 and more."""
    monkeypatch.setattr("snips.memory.available_memory", lambda: 100 * 2**10)
    with pytest.raises(ValueError, match=r"^the SVD of .* 64 pixels.* needs .*: crop the image$"):
        make_operator(name, (1, 64, 64), **options)
    monkeypatch.setattr("snips.memory.available_memory", lambda: 300 * 2**10)
    make_operator(name, (1, 64, 64), **options)
