"""restore(), what it returns, and the way to disk and back."""

from __future__ import annotations

import base64
import errno
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from snips import InverseProblem, Restoration, StationaryGaussian, make_operator, restore
from snips.operators import Denoising
from snips.report import degraded_view
from snips.restoration import Interrupted
from snips.schedules import geometric

SHAPE = (3, 16, 16)
QUICK = {"sampler": "langevin", "sigmas": geometric(10, 0.01, 10), "c": 0.1, "tau": 1}


@pytest.fixture(scope="module")
def prior() -> StationaryGaussian:
    return StationaryGaussian.natural(SHAPE)


@pytest.fixture(scope="module")
def result(prior) -> Restoration:
    problem = InverseProblem.simulate(make_operator("sr2", SHAPE), prior.sample(2, seed=1), 0.1, seed=0)
    return restore(problem, prior, samples=3, seed=5, **QUICK)


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


def test_one_sample_has_no_std(result, prior):
    single = restore(result.problem, prior, samples=1, **QUICK)
    with pytest.raises(ValueError, match="at least 2 samples"):
        _ = single.std


def test_save_and_load_are_equal(result, tmp_path):
    result.save(tmp_path / "out")
    loaded = Restoration.load(tmp_path / "out")
    assert torch.equal(loaded.samples, result.samples)
    assert torch.equal(loaded.problem.y, result.problem.y)
    assert torch.equal(loaded.problem.truth, result.problem.truth)
    assert loaded.problem.sigma_0 == result.problem.sigma_0
    assert loaded.settings == result.settings
    x = torch.rand(1, *SHAPE)
    assert torch.equal(loaded.problem.operator(x), result.problem.operator(x))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("inpaint", {"mask": torch.rand(3, 16, 16) > 0.5}),
        ("deblur_kernel", {"kernel": torch.rand(3, 4, dtype=torch.float64)}),
        ("cs4", {"seed": 7, "transform": "dct"}),
        ("mri", {"acceleration": 2, "centre": 0.2}),
        ("colorize", {"weights": [0.2, 0.3, 0.5]}),
    ],
)
def test_operators_with_options_come_back(name, options, prior, tmp_path):
    problem = InverseProblem.simulate(make_operator(name, SHAPE, **options), prior.sample(1), 0.1, seed=0)
    restore(problem, prior, samples=2, **QUICK).save(tmp_path / "out")
    operator = Restoration.load(tmp_path / "out").problem.operator
    x = torch.rand(1, *SHAPE)
    assert torch.equal(operator(x), problem.operator(x))


def test_an_operator_of_ones_own_is_given_back_by_the_caller(prior, tmp_path):
    problem = InverseProblem.simulate(Denoising(SHAPE), prior.sample(1), 0.1, seed=0)
    restore(problem, prior, samples=2, **QUICK).save(tmp_path / "out")
    with pytest.raises(ValueError, match="operator="):
        Restoration.load(tmp_path / "out")
    assert Restoration.load(tmp_path / "out", operator=Denoising(SHAPE)).problem.sigma_0 == 0.1


def test_settings_of_other_libraries_are_stored_as_plain_numbers(prior, tmp_path):
    operator = make_operator("deblur_uniform", SHAPE, width=np.int64(3))
    x = prior.sample(1)
    problem = InverseProblem(operator, x, 0.1, truth=x)  # y and truth share their memory
    options = {"sampler": "langevin", "sigmas": np.array([3.0, 1.0]), "c": np.float32(0.5), "tau": 1}
    result = restore(problem, prior, samples=2, seed=np.int64(3), **options)
    assert Restoration.load(result.save(tmp_path / "out")).settings == result.settings


def test_result_json_is_strict_json(result, tmp_path):
    """A perfect sample has infinite PSNR and a residual without a p-value: null, as JSON has no other word."""
    perfect = InverseProblem(make_operator("denoise", SHAPE), result.problem.truth, 0.1, truth=result.problem.truth)
    folder = Restoration(perfect, result.problem.truth[None]).save(tmp_path / "out")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    description = json.loads((folder / "result.json").read_text(), parse_constant=refuse)
    assert description["psnr"]["samples"] == [[None, None]]


def test_files_on_disk(result, tmp_path):
    folder = result.save(tmp_path / "out")
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    pictures = {"sample_00.png", "sample_01.png", "sample_02.png", "mean.png", "std.png", "degraded.png"}
    pictures |= {"truth.png", "std_map.png", "samples.webp", "report.html"}
    expected = {f"image_{i:03d}/{name}" for i in range(2) for name in pictures}
    assert names == expected | {"grid.png", "samples.safetensors", "result.json"}
    brightness = 4 * result.std[0, :, 0, 0].clamp(0, 0.25) * 255
    with Image.open(folder / "image_000" / "std.png") as std:
        assert std.size == (16, 16)
        assert std.getpixel((0, 0)) == pytest.approx(brightness.tolist(), abs=1)
    description = json.loads((folder / "result.json").read_text())
    assert description["settings"]["seed"] == 5
    assert description["operator"]["problem"] == "sr2"
    assert set(description["versions"]) == {"snips", "torch", "python"}


def test_an_existing_folder_is_not_lost(result, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "precious.txt").write_text("mine")
    with pytest.raises(ValueError, match="exists already"):
        result.save(folder)
    assert (folder / "precious.txt").read_text() == "mine"
    result.save(folder, force=True)
    assert (folder / "precious.txt").read_text() == "mine"
    assert (folder / "grid.png").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_force_replaces_all_of_an_older_result(result, tmp_path):
    folder = result.save(tmp_path / "out")
    fewer = Restoration(result.problem, result.samples[:2], result.settings)
    fewer.save(folder, force=True)
    assert not list(folder.rglob("sample_02.png"))
    assert len(Restoration.load(folder).samples) == 2


def test_files_of_others_are_never_replaced(result, tmp_path):
    """Named as ours, but without a result that they belong to; or beside one, but not named as ours."""
    (tmp_path / "truth.png").write_bytes(b"mine")
    with pytest.raises(ValueError, match=r"holds truth.png, which would be replaced"):
        result.save(tmp_path, force=True)
    (tmp_path / "truth.png").rename(tmp_path / "sample_holiday.png")
    for _ in range(2):
        result.save(tmp_path, force=True)
    assert (tmp_path / "sample_holiday.png").read_bytes() == b"mine"


def test_values_of_any_range(prior):
    given = np.full((16, 16, 3), 127.5)
    result = restore(given, prior, operator="denoise", sigma_0=0.1, value_range=(0, 255), samples=1, nfe=5)
    assert result.problem.y.mean() == 0.5
    with pytest.raises(ValueError, match="an InverseProblem knows"):
        restore(result.problem, prior, value_range=(0, 255))


def test_noise_in_units_of_0_to_255_is_noticed(prior):
    with pytest.raises(ValueError, match=r"Then give 0.09804"):
        restore(np.full((16, 16, 3), 0.5), prior, operator="denoise", sigma_0=25.0)


def test_a_file_in_the_way(result, tmp_path):
    (tmp_path / "file").write_text("mine")
    for target in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(ValueError, match=r"is a file|cannot be created"):
            result.save(target, force=True)


def test_a_failed_save_leaves_nothing_behind(result, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious.txt").write_text("mine")
    monkeypatch.setattr("snips.results.storage.write_pictures", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        result.save(tmp_path / "out", force=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "precious.txt"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "not json", "other json"])
def test_damaged_results_are_refused(damage, result, tmp_path):
    folder = result.save(tmp_path / "out")
    if damage == "missing":
        (folder / "samples.safetensors").unlink()
    elif damage == "truncated":
        whole = (folder / "samples.safetensors").read_bytes()
        (folder / "samples.safetensors").write_bytes(whole[: len(whole) // 2])
    else:
        (folder / "result.json").write_text("no" if damage == "not json" else "[]")
    with pytest.raises(ValueError, match="does not hold a saved restoration"):
        Restoration.load(folder)


def test_repr_and_notebook(result):
    assert "3 samples of 2 images 3x16x16" in repr(result)
    assert "faithful:" in repr(result)
    assert "data:image/png;base64," in result._repr_html_()


def test_grid_shows_every_column(result):
    width = 6 * 16  # pictures of 16 pixels are shown 6 times larger
    columns = 1 + 1 + 3 + 2  # original, degraded, samples, mean, std
    assert result.grid().width == columns * (width + 4) + 4


def test_degraded_view_is_y_or_its_pseudo_inverse(prior):
    x = prior.sample(1)
    blurred = InverseProblem.simulate(make_operator("deblur_uniform", SHAPE), x, 0.1, seed=0)
    assert torch.equal(degraded_view(blurred), blurred.y)
    projected = InverseProblem.simulate(make_operator("cs4", SHAPE), x, 0.1, seed=0)
    assert torch.equal(degraded_view(projected), projected.operator.pinv(projected.y))


def test_unknown_sampler(result, prior):
    with pytest.raises(ValueError, match="unknown sampler 'langevni' .did you mean langevin"):
        restore(result.problem, prior, sampler="langevni")


def test_options_that_a_sampler_does_not_know_are_named_with_those_it_does(result, prior):
    with pytest.raises(ValueError, match=r"option of the sampler fast 'nffe' .did you mean nfe.*: nfe, .*chunk"):
        restore(result.problem, prior, nffe=4)
    with pytest.raises(ValueError, match="option of the sampler langevin 'nfe'"):
        restore(result.problem, prior, sampler="langevin", nfe=4)


def test_a_function_is_told_how_to_become_a_prior(result):
    with pytest.raises(ValueError, match="not a function: snips.as_prior"):
        restore(result.problem, lambda x, sigma: x)


@pytest.mark.parametrize("options", [{"samples": True}, {"nfe": True}, {"nfe": 8, "chunk": True}])
def test_truth_values_are_no_numbers(options, result, prior):
    with pytest.raises(ValueError, match="must be a whole number.*but is True"):
        restore(result.problem, prior, **options)


def test_pictures_that_are_too_large_are_called_so():
    with pytest.raises(ValueError, match="^the picture has 9000 x 9000 pixels"):
        restore(np.zeros((9000, 9000), dtype=bool))


def test_photos_of_all_kinds_are_measurements():
    values = np.random.default_rng(0).integers(0, 255, (8, 12, 3), dtype=np.uint8)
    options = {"operator": "sr2", "sigma_0": 0.1, "samples": 2, "nfe": 8}
    from_array = restore(values, "gaussian", **options)
    assert from_array.samples.shape == (2, 1, 3, 16, 24)
    for same in (Image.fromarray(values), torch.tensor(values).permute(2, 0, 1)):
        assert torch.equal(restore(same, "gaussian", **options).samples, from_array.samples)
    batch = restore(torch.rand(2, 1, 8, 8), sigma_0=0.1, samples=2, nfe=8)
    assert batch.samples.shape == (2, 2, 1, 8, 8)


def test_an_operator_may_be_given_with_a_photo():
    operator = make_operator("deblur_uniform", (1, 8, 8), width=3)
    assert (
        restore(np.zeros((8, 8), np.float32), operator=operator, sigma_0=0.1, samples=1, nfe=8).problem.operator
        is operator
    )
    with pytest.raises(ValueError, match="is not a measurement of Deblurring"):
        restore(np.zeros((8, 9), np.float32), operator=operator, sigma_0=0.1)


def test_alpha_of_a_photo_is_kept():
    values = np.full((8, 8, 4), 128, np.uint8)
    result = restore(Image.fromarray(values), "gaussian", operator="sr2", sigma_0=0.1, samples=2, nfe=8)
    assert result.alpha.shape == (1, 1, 16, 16)
    assert result.alpha.unique().tolist() == pytest.approx([128 / 255])


def test_unknown_noise_is_estimated_and_a_guess_warned_about():
    random = torch.Generator().manual_seed(0)
    noisy = 0.5 + 0.1 * torch.randn(1, 96, 96, generator=random)
    result = restore(noisy, "gaussian", samples=1, nfe=8)
    assert result.problem.sigma_0 == pytest.approx(0.1, rel=0.05)
    assert "wavelets" in result.settings["noise"]
    with pytest.warns(UserWarning, match="a guess"):
        restore(noisy[:, :8, :8], "gaussian", samples=1, nfe=8)


def test_a_problem_knows_its_noise(result, prior):
    with pytest.raises(ValueError, match="leave these out"):
        restore(result.problem, prior, sigma_0=0.1)
    with pytest.raises(ValueError, match="a number or auto"):
        restore(np.zeros((8, 8)), sigma_0="much")


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


def test_interrupted_sampling_hands_over_what_is_finished(result, prior):
    def stop(info):
        if info.step == 2 * 10 + 1:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        restore(result.problem, prior, samples=3, seed=5, on_step=stop, chunk=2, **QUICK)
    finished = caught.value.finished
    assert finished.settings["interrupted"] == "2 of 3"
    torch.testing.assert_close(finished.samples, result.samples[:2])
    with pytest.raises(Interrupted) as caught:
        restore(result.problem, prior, samples=3, seed=5, on_step=stop, **{**QUICK, "tau": 3})
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


def test_a_full_disk_names_the_folder(result, tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("snips.results.storage.write_pictures", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path / 'out'}'"):
        result.save(tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operator": np.eye(4)}, "operator takes .* not a ndarray: snips.as_operator"),
        ({"operator": 3}, "operator takes .* not a int"),
        ({"sigma_0": [0.1]}, "sigma_0 must be a finite number"),
        ({"sigma_0": "loud"}, "a number or auto"),
        ({"value_range": 5}, "value_range takes two numbers"),
        ({"value_range": (0, 1, 2)}, "value_range takes two numbers"),
        ({"prior": 3}, "prior takes .* not a int: snips.as_prior"),
    ],
)
def test_arguments_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        restore(np.zeros((8, 8)), **{"sigma_0": 0.1, "samples": 1, "nfe": 4, **options})


def test_auto_in_capitals():
    noisy = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((64, 64))
    found = restore(noisy, "gaussian", sigma_0=" AUTO ", samples=1, nfe=4)
    assert found.problem.sigma_0 == pytest.approx(0.1, rel=0.1)
