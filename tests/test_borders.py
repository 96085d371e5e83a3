"""A blurred photo shows what its surroundings brought into it: with an open border, the image is larger than y."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.signal import convolve2d

from command_line import refused, run
from photo_files import random_pixels
from snips import InverseProblem, Restoration, make_operator, restore, whiten
from snips.operators import CircularBlur, Deblurring, MatrixFree, check_operator, compose, stack
from snips.operators.pictures import framed
from snips.photos.photo import as_photo
from snips.posing.pictures import simulate
from snips.report.grid import comparison_columns

SHAPE = (3, 24, 20)
KERNEL = torch.tensor([[0.0, 1, 2], [3, 4, 0], [5, 0, 6], [1, 1, 1]], dtype=torch.float64)  # 4 x 3, not separable
QUICK = ("--nfe", "6", "-k", "2", "--prior", "gaussian")


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("deblur_uniform", {}, Deblurring),
        ("deblur_gauss", {"std": 1.0, "width": 4}, Deblurring),
        ("deblur_motion", {"length": 5, "angle": 30}, MatrixFree),
        ("deblur_motion", {"length": 5, "angle": 0}, Deblurring),
        ("deblur_kernel", {"kernel": KERNEL}, MatrixFree),
        ("deblur_kernel", {"kernel": KERNEL[:, :1] * KERNEL[2]}, Deblurring),
        ("deblur_kernel", {"kernel": torch.stack([KERNEL, KERNEL.flip(0), KERNEL.flip(1)])}, MatrixFree),
    ],
)
def test_an_open_border_measures_the_middle_of_what_a_circular_one_does(name, options, kind):
    """Where the kernel stays inside the image, all borders agree."""
    x = torch.rand(2, *SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    opened, wrapped = (make_operator(name, SHAPE, border=border, **options) for border in ("open", "circular"))
    assert isinstance(opened, kind)
    assert isinstance(wrapped, CircularBlur)
    torch.testing.assert_close(opened(x), framed(wrapped(x), opened), rtol=0, atol=1e-12)
    report = check_operator(opened)
    assert report.ok, report


def test_the_kernel_is_not_flipped():
    x = torch.rand(1, 1, 9, 8, dtype=torch.float64)
    seen = make_operator("deblur_kernel", (1, 9, 8), kernel=KERNEL, border="open")(x)
    np.testing.assert_allclose(seen[0, 0], convolve2d(x[0, 0], KERNEL, mode="valid"), atol=1e-12)


@pytest.mark.parametrize("name", ["deblur_uniform", "deblur_gauss"])
def test_the_usual_border_of_the_papers_blurs_is_zero(name):
    x = torch.rand(1, *SHAPE)
    torch.testing.assert_close(make_operator(name, SHAPE)(x), make_operator(name, SHAPE, border="zero")(x))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"border": "mirror"}, "unknown border 'mirror'"),
        ({"border": "zero", "kernel": KERNEL}, "a column times a row: choose circular or open"),
        ({"border": "open", "kernel": torch.ones(25, 3)}, "25 pixels does not fit into 24"),
        ({"border": "open", "kernel": torch.rand(2, 4, 3)}, "2 kernels for 3 channels"),
    ],
)
def test_wrong_borders(options, words):
    with pytest.raises(ValueError, match=words):
        make_operator("deblur_kernel", SHAPE, **{"kernel": KERNEL, **options})


@pytest.fixture
def blurred(tmp_path):
    """A scene, and the picture that a camera with a box blur takes of its middle."""
    smooth = np.add.outer(np.arange(28.0), np.arange(36.0)) / 64
    scene = smooth + 0.1 * np.random.default_rng(0).standard_normal((28, 36))
    seen = convolve2d(scene, np.full((5, 5), 0.04), mode="valid")
    np.save(tmp_path / "blurred.npy", (seen + 0.02 * np.random.default_rng(1).standard_normal(seen.shape)).clip(0, 1))
    return tmp_path / "blurred.npy"


def restored(picture, *options):
    out = picture.parent / "out"
    result = run("restore", picture, "-p", "deblur_uniform", "-s", "0.02", "--out", out, *QUICK, *options)
    assert result.exit_code == 0, result.output
    return result, Restoration.load(out)


def test_a_photo_has_surroundings(blurred):
    """The samples hold them, the pictures show what the photo showed, and the verdict passes."""
    told, result = restored(blurred, "--nfe", "40")
    assert "the blur reaches beyond the picture, so 36 x 28 pixels are sampled" in " ".join(told.stderr.split())
    assert result.samples.shape == (2, 1, 1, 28, 36)
    for name in ("sample_00", "mean", "std", "degraded"):
        with Image.open(blurred.parent / "out" / f"{name}.png") as picture:
            assert picture.size == (32, 24), name
    faithful = result.faithfulness().faithful
    assert faithful is not None
    assert faithful.all()


def test_with_the_wrong_border_the_verdict_fails(blurred):
    _, result = restored(blurred, "--nfe", "40", "-o", "border=zero")
    assert result.samples.shape == (2, 1, 1, 24, 32)
    faithful = result.faithfulness().faithful
    assert faithful is not None
    assert not faithful.any()


def test_transparency_stays_with_the_picture(tmp_path):
    picture = Image.fromarray(random_pixels(12, 16)).convert("RGBA")
    picture.putalpha(Image.linear_gradient("L").resize((16, 12)))
    picture.save(tmp_path / "clear.png")
    restored(tmp_path / "clear.png")
    with Image.open(tmp_path / "out" / "sample_00.png") as sample:
        assert sample.getchannel("A").tobytes() == picture.getchannel("A").tobytes()
    posed = simulate(as_photo(picture), "deblur_uniform", 0.1, 0, {"border": "open"})
    assert posed.alpha is not None
    torch.testing.assert_close(posed.alpha, framed(as_photo(picture).alpha, posed.problem.operator))


def test_a_stated_shape_is_that_of_the_image(blurred):
    """Then nothing lies around the picture."""
    _, result = restored(blurred, "--shape", "1,24,32")
    assert result.samples.shape == (2, 1, 1, 24, 32)


def test_arrays_in_python_are_photos_too():
    pixels = np.random.default_rng(0).random((12, 16))
    result = restore(pixels, "gaussian", operator="deblur_uniform", sigma_0=0.1, nfe=6)
    assert result.samples.shape[2:] == (1, 16, 20)


def test_a_blur_larger_than_the_picture_is_refused(blurred):
    line = refused(run("restore", blurred, "-p", "deblur_uniform", "-o", "width=25", "--out", blurred.parent / "out"))
    assert "the kernel has 25 x 25 pixels, more than the image of 24 x 32" in line


def seen(operator, x):
    """The shapes of all columns of a report, in which y and the samples must show the same part of the image."""
    problem = InverseProblem(operator, operator(x), 0.1, truth=x)
    return {tuple(images.shape[-2:]) for _, images in comparison_columns(problem, x[None])}


@pytest.mark.parametrize("kernel", [KERNEL, KERNEL[:, :1] * KERNEL[2]])
def test_operators_made_of_an_open_blur_show_the_same_part(kernel):
    x = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(0))
    opened = make_operator("deblur_kernel", SHAPE, kernel=kernel, border="open")
    picture = opened.measurement_shape
    levels = torch.linspace(0.1, 0.2, picture[2])
    made = [
        whiten(opened, opened(x), torch.tensor(0.1), svd=False).operator,
        whiten(opened, opened(x), levels, svd=False).operator,
        compose(make_operator("denoise", picture), opened, svd=False),
        compose(CircularBlur(picture, torch.ones(3, 3) / 9), opened, svd=False),
        compose(opened, make_operator("denoise", SHAPE), svd=False),
    ]
    for operator in made:
        assert operator.surroundings == opened.surroundings == (1, 1, 1, 2)
        assert seen(operator, x) == {picture[1:]}


def test_surroundings_of_a_smaller_picture_count_in_its_pixels():
    """A blur of 3 pixels after halving leaves 2 out at each side of the image."""
    x = torch.rand(1, *SHAPE, generator=torch.Generator().manual_seed(0))
    blurred = compose(make_operator("deblur_uniform", (3, 12, 10), width=3, border="open"), make_operator("sr2", SHAPE))
    assert blurred.surroundings == (2, 2, 2, 2)
    smaller = compose(make_operator("sr2", (3, 22, 18)), make_operator("deblur_uniform", SHAPE, width=3, border="open"))
    assert smaller.surroundings == (1, 1, 1, 1)
    assert seen(smaller, x) == {(11, 9), (22, 18)}


def test_surroundings_of_any_number_of_channels():
    opened = make_operator("deblur_uniform", (2, 24, 20), width=3, border="open")
    assert compose(make_operator("denoise", opened.measurement_shape), opened).surroundings == (1, 1, 1, 1)


def test_what_is_no_picture_has_no_surroundings():
    opened = make_operator("deblur_uniform", SHAPE, width=3, border="open")
    hidden = compose(make_operator("inpaint", opened.measurement_shape), opened)
    direct = stack(make_operator("denoise", SHAPE), opened)
    assert hidden.surroundings == direct.surroundings == direct.parts[0].surroundings == (0, 0, 0, 0)
