"""Items of a batch from manifests and stacks of arrays, and what is refused about them."""

from __future__ import annotations

import errno
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import zarr

from batch_cases import SETTINGS, assert_same_bits, items_of, pictures, run, tensors
from snips import Restoration
from snips.batch import Item, RunFolder, read_items, run_batch
from snips.batch.items import checked_items


@pytest.fixture
def source(tmp_path):
    return pictures(tmp_path / "in")


def test_csv_and_parquet_say_the_same(source, tmp_path):
    rows = [
        {"file": "in/picture_0.png", "key": "a", "problem": "denoise", "sigma": 0.2, "_patient": "x"},
        {"file": "in/picture_1.png", "key": "b/c", "problem": None, "sigma": None, "_patient": "y"},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "list.parquet")
    lines = ["file,key,problem,sigma,_patient"]
    lines += [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
    (tmp_path / "list.csv").write_text("\n".join(lines))
    for kind in ("csv", "parquet"):
        table = run(tmp_path / f"list.{kind}", tmp_path / kind)
        assert [(row["key"], row["problem"], row["sigma_0"]) for row in table] == [
            ("a", "denoise", 0.2),
            ("b/c", "sr2", 0.1),
        ]
    assert_same_bits(tmp_path / "csv", tmp_path / "parquet")


def test_masks_options_and_truth_by_row(source, tmp_path):
    np.save(tmp_path / "mask.npy", np.eye(8))
    (tmp_path / "list.csv").write_text(
        "file,key,mask,problem,option.width,truth\n"
        "in/picture_0.png,masked,mask.npy,inpaint,,in/picture_0.png\n"
        "in/picture_1.png,blurred,,deblur_uniform,3,\n"
    )
    masked, blurred = run(tmp_path / "list.csv", tmp_path / "out")
    assert masked["error"] is None
    assert blurred["error"] is None
    assert len(masked["psnr"]) == 3
    assert blurred["psnr"] is None
    assert Restoration.load(tmp_path / "out" / masked["folder"]).problem.y.shape == (1, 3, 8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,sigme\na.png,1", "did you mean sigma"),
        ("name\na.png", "unknown column 'name'"),
        ("problem\nsr2", "no column `file`"),
        ("file\na.png\na.png", "same"),
        ("file,key\na.png,A\nb.png,a", "same"),
        ("file,key\na.png,1\nb.png,1", "same"),  # Python keeps one object for all strings of this one letter
        ("file,sigma\na.png,1,2", "more cells"),
        ("file\n", "no measurements"),
        ("", "list.csv is empty"),
        ("file,sigma,sigma\na.png,0.1,0.2", "several columns 'sigma'"),
        ("file,sigma\na.png,0.1\n\n,0.1", "list.csv, line 4 names no file"),
        ("file\na.png\nb\0.png", "line 3: file cannot be|line contains NUL"),  # NUL is an error of csv before 3.11
        ("file;sigma\na.png;0,1", "has ';' between its columns: save it with commas"),
        ("file\tsigma\na.png\t0.1", r"has '\\t' between its columns"),
        ("file,factor\na.png,2.5", "line 2: factor cannot be '2.5': it takes a whole number"),
    ],
)
def test_bad_manifests(text, message, tmp_path):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_items(tmp_path / "list.csv", {}, tmp_path / "out")


def test_a_manifest_that_is_not_utf8(tmp_path):
    (tmp_path / "list.csv").write_bytes("file\ncafé.png".encode("latin-1"))
    with pytest.raises(ValueError, match="list.csv cannot be read as CSV .*: save it as UTF-8"):
        read_items(tmp_path / "list.csv", {}, tmp_path / "out")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("shape", ["a"]),
        ("range", [[0, 1]]),
        ("range", 5),
        ("sigma", [0.1]),
        ("sigma", True),
        ("problem", 3),
        ("factor", 2.5),
        ("factor", [2]),
        ("mask", 3),
        ("file", 3),
        ("key", [1]),
        ("option.width", b"3"),
    ],
)
def test_cells_of_a_wrong_type_are_refused_with_their_row(column, value, tmp_path):
    pq.write_table(pa.Table.from_pylist([{"file": "a.png", column: value}]), tmp_path / "list.parquet")
    with pytest.raises(ValueError, match=rf"list.parquet, row 1: {column} cannot be"):
        read_items(tmp_path / "list.parquet", {}, tmp_path / "out")


def test_lists_of_parquet_are_numbers_with_commas(source, tmp_path):
    """And a whole factor may be a float, as tables make it where a row has none."""
    row = {"file": "in/picture_0.png", "shape": [3, 16, 16], "range": [0, 255], "problem": "sr", "factor": 2.0}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "list.parquet")
    assert [row["error"] for row in run(tmp_path / "list.parquet", tmp_path / "out")] == [None]


def test_an_option_of_a_wrong_type_ends_its_item_only(source, tmp_path):
    rows = [
        {"file": f"in/picture_{i}.png", "problem": "deblur_uniform", "option.width": w} for i, w in ((0, [3]), (1, [5]))
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "list.parquet")
    table = run(tmp_path / "list.parquet", tmp_path / "out")
    assert all("width" in row["error"] for row in table)


@pytest.mark.parametrize("kind", ["h5", "zarr"])
def test_stacks_are_pictures_or_measurements(kind, tmp_path):
    values = np.random.default_rng(0).random((2, 3, 16), dtype=np.float32)
    path = tmp_path / f"stack.{kind}"
    if kind == "h5":
        with h5py.File(path, "w") as file:
            file["y"] = values
            file["group/pixels"] = values.reshape(2, 3, 2, 8)
    else:
        group = zarr.open_group(str(path), mode="w")
        group.create_array("y", data=values)
        group.create_array("group/pixels", data=values.reshape(2, 3, 2, 8))
    with pytest.raises(ValueError, match="--dataset"):
        read_items(path, {}, tmp_path)
    said = {"problem": "cs4", "sigma": 0.1, "shape": "3,8,8"}
    for name, more in (("y", said), ("group/pixels", {"problem": "denoise", "sigma": 0.1})):
        items = read_items(path, more, tmp_path, name)
        assert [item.key for item in items] == ["000000", "000001"]
        out = tmp_path / name.replace("/", "_")
        scores = run_batch(items, RunFolder(out), SETTINGS)
        assert not scores.failed, scores.failed
        y = tensors(out)["000001/y"]
        assert torch.equal(y.flatten(), torch.from_numpy(values[1]).flatten())


def test_results_in_the_source_are_no_items(source):
    run(source, source / "out")
    assert len(items_of(source, source / "out")) == 3


def test_results_of_other_commands_are_no_items(source, tmp_path):
    """An older batch in the source, and what `snips restore` writes beside its photo."""
    run(source, source / "older")
    (source / "older" / "items" / "picture_0.png").rename(source / "restored")
    assert [item.key for item in items_of(source, tmp_path / "out")] == [f"picture_{i}.png" for i in range(3)]


def test_a_link_to_nothing_is_an_item_that_fails(source, tmp_path):
    """It was meant to be restored; without a word it would be missed among ten thousand."""
    (source / "lost.png").symlink_to(tmp_path / "elsewhere.png")
    (source / "again").symlink_to(source)
    lost, *others = run(source, tmp_path / "out")
    assert "lost.png cannot be read: No such file" in lost["error"]
    assert [row["error"] for row in others] == [None, None, None]


def test_a_folder_that_must_not_be_read_is_told(source, tmp_path, monkeypatch):
    """Its measurements would be missed without a word."""
    (source / "secret").mkdir()
    iterdir = Path.iterdir

    def refused(path):
        if path.name == "secret":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(OSError, match=r"Permission denied: .*secret"):
        items_of(source, tmp_path / "out")


def test_names_that_no_table_can_hold_are_refused(tmp_path):
    """Linux lets a name be any bytes."""
    with pytest.raises(ValueError, match=r"the name 'caf\\udce9.png' is not UTF-8: rename it"):
        checked_items([Item("caf\udce9.png", {})], tmp_path)
