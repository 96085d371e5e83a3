"""Results on their way to disk and back."""

from __future__ import annotations

import errno
import json

import numpy as np
import pytest
import torch
from PIL import Image

from restoration_cases import PRIOR, QUICK, SHAPE, small_restoration
from snips import InverseProblem, Restoration, make_operator, restore
from snips.operators import Denoising


@pytest.fixture(scope="module")
def result() -> Restoration:
    return small_restoration()


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
def test_operators_with_options_come_back(name, options, tmp_path):
    problem = InverseProblem.simulate(make_operator(name, SHAPE, **options), PRIOR.sample(1), 0.1, seed=0)
    restore(problem, PRIOR, samples=2, **QUICK).save(tmp_path / "out")
    operator = Restoration.load(tmp_path / "out").problem.operator
    x = torch.rand(1, *SHAPE)
    assert torch.equal(operator(x), problem.operator(x))


def test_an_operator_of_ones_own_is_given_back_by_the_caller(tmp_path):
    problem = InverseProblem.simulate(Denoising(SHAPE), PRIOR.sample(1), 0.1, seed=0)
    restore(problem, PRIOR, samples=2, **QUICK).save(tmp_path / "out")
    with pytest.raises(ValueError, match="operator="):
        Restoration.load(tmp_path / "out")
    assert Restoration.load(tmp_path / "out", operator=Denoising(SHAPE)).problem.sigma_0 == 0.1


def test_settings_of_other_libraries_are_stored_as_plain_numbers(tmp_path):
    operator = make_operator("deblur_uniform", SHAPE, width=np.int64(3))
    x = PRIOR.sample(1)
    problem = InverseProblem(operator, x, 0.1, truth=x)  # y and truth share their memory
    options = {"sampler": "langevin", "sigmas": np.array([3.0, 1.0]), "c": np.float32(0.5), "tau": 1}
    result = restore(problem, PRIOR, samples=2, seed=np.int64(3), **options)
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


def test_a_full_disk_names_the_folder(result, tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("snips.results.storage.write_pictures", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path / 'out'}'"):
        result.save(tmp_path / "out")
