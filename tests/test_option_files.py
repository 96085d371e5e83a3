"""Masks and kernels from files: what is transparent in them, and numbers in .npz."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from command_line import refused, run
from photo_files import random_pixels
from snips.posing.from_files import file_options


def test_a_transparent_kernel_is_refused_as_its_shape_would_be_lost(tmp_path):
    Image.fromarray(random_pixels(16, 16)).save(tmp_path / "photo.png")
    strokes = np.full((5, 5, 2), 255, np.uint8)  # white everywhere, but seen in one row only
    strokes[..., 1] = 0
    strokes[2, :, 1] = 255
    Image.fromarray(strokes, "LA").save(tmp_path / "kernel.png")
    line = refused(run("restore", tmp_path / "photo.png", "--kernel", tmp_path / "kernel.png", "--out", tmp_path / "o"))
    assert "the kernel" in line
    assert "is transparent in places: fill them" in line


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32])
def test_numbers_are_taken_as_they_are(suffix, kind, tmp_path):
    numbers, file = np.array([[0, 1, 0], [4, 6, 4], [0, 1, 0]], kind), tmp_path / f"numbers{suffix}"
    np.save(file, numbers) if suffix == ".npy" else np.savez(file, numbers=numbers)
    options = file_options(mask=file, kernel=file, factor=None, matrix=None)
    assert torch.equal(options["mask"], torch.tensor(numbers >= 3))
    torch.testing.assert_close(options["kernel"], torch.tensor(numbers / 16, dtype=torch.float64))


def test_a_mask_in_an_archive_of_several_arrays(tmp_path):
    Image.fromarray(random_pixels(16, 16)).save(tmp_path / "photo.png")
    np.savez(tmp_path / "two.npz", a=np.ones((16, 16)), b=np.ones((16, 16)))
    line = refused(run("restore", tmp_path / "photo.png", "--mask", tmp_path / "two.npz", "--out", tmp_path / "out"))
    assert "two.npz: expected one array, found a, b" in line
