"""What the rows of manifests and the slices of stacks are taken for, and how their truth is compared."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
import torch
import zarr
from PIL import Image

from batch_cases import run
from snips import InverseProblem, make_operator
from snips.batch import Item, read_items, stacks
from snips.batch.posed import posed_item
from snips.posing.measurement_files import save_measurement

COMPRESSED = {"problem": "cs4", "sigma": 0.1, "shape": "1,8,8"}
NOISY = {"problem": "denoise", "sigma": 0.1}


def stack(tmp_path, values):
    with h5py.File(tmp_path / "stack.h5", "w") as file:
        file["y"] = values
    return tmp_path / "stack.h5"


def first(tmp_path, values, said):
    item = read_items(stack(tmp_path, values), said, tmp_path / "out")[0]
    return posed_item(item, 0, make_operator, grey=True).problem


@pytest.mark.parametrize("kind", ["<f2", ">f4", ">f8", "longdouble", "<i4", "<u2"])
def test_measurements_of_any_number_type(kind, tmp_path):
    values = (100 * np.random.default_rng(0).random((2, 1, 16))).astype(kind)
    y = first(tmp_path, values, COMPRESSED).y
    assert torch.equal(y.double(), torch.from_numpy(values[:1].astype(np.float64)))


def test_the_range_holds_also_where_the_shape_is_said(tmp_path):
    """Numbers from 0 to 255 would be taken as 255 times too bright without a word."""
    values = 255 * np.random.default_rng(0).random((1, 1, 8, 8), dtype=np.float32)
    with pytest.raises(ValueError, match="not from 0 to 1: say which are black and white"):
        first(tmp_path, values, {**NOISY, "shape": "1,8,8"})
    assert first(tmp_path, values, {**NOISY, "shape": "1,8,8", "range": "0,255"}).y.max() <= 1
    with pytest.raises(ValueError, match="no black and white: leave out --range"):
        first(tmp_path, values.reshape(1, 1, 64)[..., :16], {**COMPRESSED, "range": "0,255"})


@pytest.mark.parametrize("shape", [(16,), (1, 16), (1, 1, 16)])
def test_an_item_may_be_a_flat_list_or_lack_its_channel(shape, tmp_path):
    """As the numbers of a file may."""
    values = np.random.default_rng(0).standard_normal((2, *shape))
    y = first(tmp_path, values, COMPRESSED).y
    assert torch.equal(y, torch.from_numpy(values[0].reshape(1, 1, 16)))


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_complex_frequencies_in_a_stack(kind, tmp_path):
    image = torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = make_operator("mri", (1, 8, 8)).double()(image)
    found = first(tmp_path, torch.view_as_complex(y).numpy().astype(kind), {**COMPRESSED, "problem": "mri"}).y
    torch.testing.assert_close(found.double(), y)


def test_complex_numbers_of_what_measures_real_ones(tmp_path):
    with pytest.raises(ValueError, match=r"complex128 and shape \(1, 16\) is not a measurement of cs4"):
        first(tmp_path, np.zeros((1, 1, 16), complex), COMPRESSED)


def test_a_stack_is_simulated_also_where_the_shape_is_said(tmp_path):
    values = np.random.default_rng(0).random((1, 1, 8, 8), dtype=np.float32)
    problem = first(tmp_path, values, {**NOISY, "shape": "1,8,8", "simulate": True})
    assert torch.equal(problem.truth, torch.from_numpy(values))


def test_an_item_is_one_image(tmp_path):
    """The table has a row for each item: the others would be missing in it."""
    with pytest.raises(ValueError, match="an item is one image, but this one holds 2"):
        first(tmp_path, np.zeros((1, 2, 3, 8, 8), np.float32), NOISY)
    operator = make_operator("denoise", (3, 8, 8))
    save_measurement(InverseProblem(operator, torch.zeros(2, 3, 8, 8), 0.1), tmp_path / "two.npz")
    with pytest.raises(ValueError, match="an item is one image, but this one holds 2"):
        posed_item(Item("two", {"file": str(tmp_path / "two.npz")}), 0, make_operator, grey=True)


def test_other_arrays_in_a_file_are_not_looked_for(tmp_path, monkeypatch):
    """There may be thousands, for each of thousands of items."""
    item = read_items(stack(tmp_path, np.zeros((2, 8, 8))), NOISY, tmp_path / "out")[0]
    monkeypatch.setattr(h5py.Group, "visititems", lambda *_: pytest.fail("all arrays are listed"))
    assert stacks.read(tmp_path / "stack.h5", item.row["dataset"], 1).shape == (8, 8)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff{}"])
def test_a_damaged_stack_is_named(damage, tmp_path):
    """What the library says is of some file in it, and names none."""
    zarr.create_array(str(tmp_path / "stack.zarr"), data=np.zeros((2, 8, 8)))
    (tmp_path / "stack.zarr" / "zarr.json").write_bytes(damage)
    with pytest.raises(ValueError, match="stack.zarr cannot be read: "):
        read_items(tmp_path / "stack.zarr", NOISY, tmp_path / "out")


def table(tmp_path, text):
    (tmp_path / "list.csv").write_text(text)
    return run(tmp_path / "list.csv", tmp_path / "out")


def test_the_truth_of_a_grey_picture_in_three_channels(tmp_path):
    grey = np.random.default_rng(0).integers(0, 255, (8, 8, 1), dtype=np.uint8).repeat(3, -1)
    Image.fromarray(grey).save(tmp_path / "a.png")
    (row,) = table(tmp_path, "file,problem,sigma,truth\na.png,denoise,0.01,a.png\n")
    assert row["psnr_mean"] > 35


def test_the_truth_has_the_range_of_the_measurement(tmp_path):
    """Where both are files of one kind: a picture of 8 bits has its own."""
    counts = np.random.default_rng(0).integers(0, 256, (8, 8)).astype(np.uint16)
    Image.fromarray(counts).save(tmp_path / "a.tif")
    Image.fromarray(counts.astype(np.uint8)).save(tmp_path / "a.png")
    rows = 'a.tif,tif,denoise,0.01,a.tif,"0,255"\na.tif,png,denoise,0.01,a.png,"0,255"\n'
    for row in table(tmp_path, f"file,key,problem,sigma,truth,range\n{rows}"):
        assert row["psnr_mean"] > 35


def test_a_truth_without_what_the_blur_reaches(tmp_path):
    """Beyond the picture nobody knows it; with another border nothing is sampled there."""
    Image.fromarray(np.zeros((8, 8, 3), np.uint8) + np.arange(3, dtype=np.uint8)).save(tmp_path / "a.png")
    rows = [f"a.png,{key},deblur_uniform,{border},a.png" for key, border in (("open", ""), ("zero", "zero"))]
    around, within = table(tmp_path, "\n".join(["file,key,problem,option.border,truth", *rows]))
    assert "say option.border zero or circular, or leave out truth" in around["error"]
    assert within["error"] is None
    assert len(within["psnr"]) == 3
