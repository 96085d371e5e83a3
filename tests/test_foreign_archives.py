"""Archives that are no stored measurement are refused for what they are, whatever options stand beside them."""

from __future__ import annotations

import numpy as np
import pytest

from command_line import refused, run

OPTIONS = [[], ["--problem", "sr2"], ["--simulate"], ["--range", "0,1"], ["--shape", "1,8,8"]]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_damaged_archive(options, tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK\3\4 and nothing more")
    line = refused(run("restore", tmp_path / "bad.npz", *options, "--out", tmp_path / "out"))
    assert "bad.npz cannot be read as an archive of arrays" in line


@pytest.mark.parametrize("options", OPTIONS)
def test_two_plain_arrays(options, tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros((8, 8)), b=np.zeros((8, 8)))
    line = refused(run("restore", tmp_path / "two.npz", *options, "--out", tmp_path / "out"))
    assert "two.npz holds a, b: save the image alone, or give a measurement" in line
