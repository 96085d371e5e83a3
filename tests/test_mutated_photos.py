"""Photos whose files are damaged at random, through the loader and through the whole command."""

from __future__ import annotations

import pytest
import torch

from command_line import refused, run
from photo_files import KINDS, SUFFIXES, mutations
from snips.photos.photo import load_photo


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_never_crash(kind, tmp_path):
    """1,000 files of each kind: an image of finite values, or one clear line."""
    path, outcomes = tmp_path / f"mutated{SUFFIXES.get(kind, '')}", set()
    for content in mutations(kind, 1000):
        path.write_bytes(content)
        try:
            photo = load_photo(path)
        except ValueError as error:
            assert "\n" not in str(error)
            outcomes.add("refused")
        else:
            assert torch.isfinite(photo.pixels).all()
            outcomes.add("read")
    assert outcomes == {"refused", "read"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_end_well(kind, tmp_path):
    """200 files of each kind through the whole command: results or one clear line, never a traceback."""
    path = tmp_path / f"mutated{SUFFIXES.get(kind, '.bin')}"
    quick = ("--nfe", "4", "-k", "1", "-s", "0.1", "--prior", "gaussian", "--json")
    for content in mutations(kind, 200):
        path.write_bytes(content)
        result = run("restore", path, *quick, "--out", tmp_path / "out", "--force")
        assert result.exit_code == 0 or refused(result)
