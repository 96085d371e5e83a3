"""Packages of others register problems, priors and operators by entry points; a broken one does not stop anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch

import snips
from snips.batch import Item
from snips.batch.posed import posed_item
from snips.plugins import PluginWarning, plugins

CODE = '''
import torch
from snips import StationaryGaussian
from snips.operators import Deblurring, Dense
from snips.problems import ProblemEntry

def lensless(image_shape, width=3):
    """Light through a phase mask.

    More about it.
    """
    return Deblurring(image_shape, torch.ones(width) / width)

entry = ProblemEntry(lensless, "the same, described", "width=3")

class Counts(Deblurring):
    def __init__(self, image_shape):
        super().__init__(image_shape, 10 * torch.ones(3))

counts = ProblemEntry(Counts, "photons", own_scale=True)

def grey():
    """Smooth pictures."""
    return StationaryGaussian.natural((3, 8, 8)).denoise

class Camera:
    pass

def convert(obj, image_shape):
    return Dense(torch.eye(192), image_shape) if isinstance(obj, Camera) else None

def wrong(image_shape):
    return "no operator"

def no_prior():
    raise RuntimeError("weights are missing")
'''
ENTRY_POINTS = """
[snips.problems]
lensless = optics_plugin:lensless
described = optics_plugin:entry
wrong = optics_plugin:wrong
counts = optics_plugin:counts

[snips.priors]
smooth = optics_plugin:grey
missing = optics_plugin:no_prior

[snips.operators]
camera = optics_plugin:convert
"""
BROKEN = """
[snips.problems]
broken = module_that_is_not_there:thing
sr2 = optics_plugin:lensless
"""


def install(folder, name, entry_points):
    """What pip leaves behind, without pip."""
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def optics(tmp_path, monkeypatch):
    (tmp_path / "optics_plugin.py").write_text(CODE)
    install(tmp_path, "optics", ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("optics_plugin", None)


def test_problems(optics):
    operator = snips.make_operator("lensless", (3, 8, 8), width=5)
    assert operator.recipe.name == "lensless"
    torch.testing.assert_close(
        operator.double()(torch.ones(1, 3, 8, 8).double())[0, 0, 4, 4], torch.tensor(1.0).double()
    )
    entries = snips.problems.all_problems()
    assert entries["lensless"].origin == entries["described"].origin == "optics 1.2"
    assert entries["lensless"].summary == "Light through a phase mask."
    assert entries["described"].options == "width=3"
    assert entries["sr2"].origin == "snips"
    with pytest.raises(ValueError, match="wrong of optics 1.2 built a str"):
        snips.make_operator("wrong", (3, 8, 8))


def test_numbers_of_a_plug_in_keep_their_units(optics, tmp_path):
    """In a file and in a stack alike, and so does their noise; those of one that measures pixels are a picture."""
    counts = np.linspace(0, 900, 192).reshape(1, 3, 8, 8)
    np.save(tmp_path / "y.npy", counts[0])
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file["y"] = counts
    for name in ("y.npy", "y.h5"):
        row = {"file": str(tmp_path / name), "problem": "counts", "sigma": "30", "shape": "3,8,8"}
        row |= {"dataset": "y", "index": 0} if name == "y.h5" else {}
        problem = posed_item(Item("a", row), 0, snips.make_operator, grey=False).problem
        assert problem.y.double().equal(torch.from_numpy(counts))
        assert problem.sigma_0 == 30
        with pytest.raises(ValueError, match="say which are black and white"):
            posed_item(Item("a", {**row, "problem": "lensless", "sigma": 0.1}), 0, snips.make_operator, grey=False)


def test_a_saved_restoration_of_a_plug_in_comes_back(optics, tmp_path):
    prior = snips.load_prior("smooth")
    problem = snips.InverseProblem.simulate(snips.make_operator("lensless", (3, 8, 8)), torch.rand(1, 3, 8, 8), 0.1)
    snips.restore(problem, prior, samples=1, nfe=6).save(tmp_path / "out")
    assert snips.Restoration.load(tmp_path / "out").problem.operator.recipe.name == "lensless"


def test_priors(optics):
    prior = snips.load_prior("smooth")
    assert prior.name == "smooth"
    exact = snips.StationaryGaussian.natural((3, 8, 8))
    x = torch.rand(1, 3, 8, 8)
    torch.testing.assert_close(prior.denoise(x, 0.1), exact.denoise(x, 0.1))
    with pytest.raises(ValueError, match=r"the prior missing of optics 1.2 cannot be loaded \(weights are missing\)"):
        snips.load_prior("missing")


def test_operators(optics):
    import optics_plugin

    assert isinstance(snips.as_operator(optics_plugin.Camera(), (3, 8, 8)), snips.operators.Dense)


def test_a_broken_one_is_left_out_with_a_warning(optics):
    install(optics, "broken-optics", BROKEN)
    with pytest.warns(PluginWarning) as caught:
        found = plugins("snips.problems", taken=snips.PROBLEMS)
    assert "lensless" in found
    assert "broken" not in found
    messages = sorted(str(w.message) for w in caught)
    assert messages[0] == "broken-optics 1.2 also offers sr2; that of snips is used"
    assert messages[1].startswith("the plug-in broken of broken-optics 1.2 is left out (ModuleNotFoundError")


def test_commands(optics):
    install(optics, "broken-optics", BROKEN)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(optics), *sys.path])}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "snips", *arguments], env=env, capture_output=True, text=True, check=False
        )

    result = run("problems", "--json")
    assert result.returncode == 0
    assert json.loads(result.stdout)["lensless"]["origin"] == "optics 1.2"
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 2
    assert all(line.startswith("snips: ") for line in lines)
    assert "optics 1.2" in run("problems").stdout
    assert json.loads(run("priors", "--json").stdout)["smooth"] == {
        "summary": "Smooth pictures.",
        "origin": "optics 1.2",
    }
