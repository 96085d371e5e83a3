"""What restore() returns: samples, their statistics, and the ways to look at them."""

from __future__ import annotations

import base64
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from restoration_cases import PRIOR, QUICK, SHAPE, small_restoration
from snips import InverseProblem, Restoration, make_operator, restore
from snips.priors import Prior
from snips.report import degraded_view
from snips.restoration import Broken, Interrupted


@pytest.fixture(scope="module")
def result() -> Restoration:
    return small_restoration()


def test_mean_and_std(result):
    assert result.samples.shape == (3, 2, *SHAPE)
    torch.testing.assert_close(result.mean, result.samples.sum(0) / 3)
    variance = ((result.samples - result.mean) ** 2).sum(0) / 2
    torch.testing.assert_close(result.std, variance.sqrt())


def test_samples_are_not_clamped(result):
    assert result.samples.min() < 0
    assert result.samples.max() > 1


def test_psnr_clamps_samples_before_averaging(result):
    samples, mean = result.psnr()
    clamped, truth = result.samples.clamp(0, 1), result.problem.truth.clamp(0, 1)
    expected = 10 * torch.log10(1 / (clamped[1, 0] - truth[0]).square().mean())
    torch.testing.assert_close(samples[1, 0], expected)
    torch.testing.assert_close(mean[0], 10 * torch.log10(1 / (clamped[:, 0].mean(0) - truth[0]).square().mean()))


def test_one_sample_has_no_std(result):
    single = restore(result.problem, PRIOR, samples=1, **QUICK)
    with pytest.raises(ValueError, match="at least 2 samples"):
        _ = single.std


def test_the_summary_says_why_samples_are_not_faithful():
    """Of four samples of noise alone one is too strong and one is smoothed along both axes, which counts once."""
    noise = 0.1 * torch.randn(4, 1, 1, 48, 48, generator=torch.Generator().manual_seed(2))
    noise[1] *= 1.5
    noise[2] = (noise[2] + noise[2].roll(1, -1) + noise[2].roll(1, -2) + noise[2].roll((1, 1), (-1, -2))) / 2
    problem = InverseProblem(make_operator("denoise", (1, 48, 48)), torch.full((1, 1, 48, 48), 0.5), 0.1)
    said = repr(Restoration(problem, 0.5 - noise))
    assert "faithful: 2 of 4 samples (1 wrong strength, 1 correlated), residual std" in said
    assert "faithful: 1 of 1 sample, residual std" in repr(Restoration(problem, 0.5 - noise[:1]))


def test_repr_and_notebook(result):
    assert "3 samples of 2 images 3x16x16" in repr(result)
    assert "faithful:" in repr(result)
    assert "data:image/png;base64," in result._repr_html_()


def test_grid_shows_every_column(result):
    width = 6 * 16  # pictures of 16 pixels are shown 6 times larger
    columns = 1 + 1 + 3 + 2  # original, degraded, samples, mean, std
    assert result.grid().width == columns * (width + 4) + 4


def test_degraded_view_is_y_or_its_pseudo_inverse():
    x = PRIOR.sample(1)
    blurred = InverseProblem.simulate(make_operator("deblur_uniform", SHAPE), x, 0.1, seed=0)
    assert torch.equal(degraded_view(blurred), blurred.y)
    projected = InverseProblem.simulate(make_operator("cs4", SHAPE), x, 0.1, seed=0)
    assert torch.equal(degraded_view(projected), projected.operator.pinv(projected.y))


def test_arrays_and_labelled_arrays(result):
    assert np.array_equal(result.to_numpy(), result.samples.numpy())
    pytest.importorskip("xarray")
    dataset = result.to_xarray()
    assert dataset["samples"].dims == ("sample", "image", "channel", "row", "column")
    np.testing.assert_allclose(dataset["samples"].mean("sample"), dataset["mean"], atol=1e-6)
    np.testing.assert_allclose(dataset["samples"].std("sample", ddof=1), dataset["std"], atol=1e-6)
    assert dataset.attrs["sigma_0"] == 0.1
    assert json.loads(dataset.attrs["settings"]) == result.settings


def test_without_xarray_the_extra_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ValueError, match=r"\.\[xarray\]"):
        result.to_xarray()


def test_interrupted_sampling_hands_over_what_is_finished(result):
    def stop(info):
        if info.step == 2 * 10 + 1:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        restore(result.problem, PRIOR, samples=3, seed=5, on_step=stop, chunk=2, **QUICK)
    finished = caught.value.finished
    assert finished.settings["interrupted"] == "2 of 3"
    torch.testing.assert_close(finished.samples, result.samples[:2])
    with pytest.raises(Interrupted) as caught:
        restore(result.problem, PRIOR, samples=3, seed=5, on_step=stop, **{**QUICK, "tau": 3})
    assert caught.value.finished is None


class GivesUp(Prior):
    """A prior that returns NaN from some call on."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def denoise(self, x, sigma):
        self.left -= 1
        return PRIOR.denoise(x, sigma) * (1 if self.left >= 0 else float("nan"))


def test_a_prior_that_fails_loses_nothing_that_is_finished(result):
    options = {"samples": 3, "seed": 5, "chunk": 2, **QUICK}
    with pytest.raises(Broken, match=r"NaN or Inf at level 2 of \d+ \(call 2 of \d+\), sigma") as caught:
        restore(result.problem, GivesUp(2 * 10 + 1), **options)
    assert caught.value.finished.settings["interrupted"] == "2 of 3"
    torch.testing.assert_close(caught.value.finished.samples, result.samples[:2])
    with pytest.raises(Broken) as caught:
        restore(result.problem, GivesUp(1), **options)
    assert caught.value.finished is None


def test_one_sample_has_no_column_of_its_std(result):
    one = replace(result, samples=result.samples[:1])
    assert one.grid().width == (1 + 1 + 1 + 1) * (6 * 16 + 4) + 4  # original, degraded, sample, mean


@pytest.mark.parametrize(("samples", "images"), [(200, 1), (2, 200)])
def test_a_notebook_shows_many_samples_and_many_images(samples, images):
    shape = (1, 64, 64)
    problem = InverseProblem(make_operator("denoise", shape), torch.rand(images, *shape), 0.1)
    shown = Restoration(problem, torch.rand(samples, images, *shape))._repr_html_()
    with Image.open(io.BytesIO(base64.b64decode(shown.split("base64,")[1].split("'")[0]))) as grid:
        assert grid.width < 2000
        assert grid.height > 60 * images
