"""Numbers that people read off a result, and results that must not be lost on the way to the disk."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from command_line import refused, run
from photo_files import random_pixels
from snips import InverseProblem, Restoration, load_prior, make_operator, restore
from snips.operators import MaskedTransform
from snips.report import colours, panels
from snips.report.page import page
from snips.results import storage
from snips.web.limits import Limits, load_upload

QUICK = ("--nfe", "6", "-k", "6", "--prior", "gaussian")


@pytest.fixture
def dusty():
    """Three hidden pixels of 64 x 64: far fewer than a thousandth are uncertain."""
    mask = torch.ones(64, 64, dtype=torch.bool)
    mask[[10, 30, 50], [10, 40, 20]] = False
    x = torch.rand(1, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    problem = InverseProblem.simulate(make_operator("inpaint", (1, 64, 64), mask=mask), x, sigma_0=0.005)
    return restore(problem, "gaussian", samples=8, nfe=10)


def test_the_page_reads_the_std_of_a_few_uncertain_pixels(dusty):
    (data,) = re.findall(r"id=\"data\">(.*?)</script>", page(dusty))
    found = json.loads(data)
    largest = float(dusty.std.max())
    assert found["top"] < largest / 2  # colours end earlier, so that the rest is not dark
    assert largest <= found["most"] <= 10 * largest


def test_the_bar_says_where_there_is_more(dusty, monkeypatch):
    told = []
    bar = colours.with_bar
    monkeypatch.setattr(colours, "with_bar", lambda *given, has_more: (told.append(has_more), bar(*given, has_more))[1])
    colours.std_map(dusty.std[0])
    colours.std_map(torch.rand(3, 16, 16))
    assert told == [True, False]


def test_numbers_that_a_matrix_shall_measure_have_the_range_of_pixels(tmp_path):
    """As the truth of a simulation they are an image; only as a measurement may they have a scale of their own."""
    np.save(tmp_path / "image.npy", 4000 * np.random.default_rng(0).random((8, 8)))
    np.save(tmp_path / "H.npy", np.random.default_rng(1).standard_normal((16, 64)))
    arguments = ("--matrix", tmp_path / "H.npy", "-s", "0.05", "--out", tmp_path / "out", *QUICK)
    assert "--range" in refused(run("restore", tmp_path / "image.npy", "--simulate", *arguments))


def test_a_stored_measurement_of_a_matrix_may_have_much_noise(tmp_path):
    np.save(tmp_path / "image.npy", np.random.default_rng(0).random((8, 8)))
    np.save(tmp_path / "H.npy", np.random.default_rng(1).standard_normal((16, 64)))
    stored = ("degrade", tmp_path / "image.npy", "--matrix", tmp_path / "H.npy", "-s", "5", "--out", tmp_path / "m.npz")
    assert run(*stored).exit_code == 0
    result = run("restore", tmp_path / "m.npz", "-s", "4", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert Restoration.load(tmp_path / "out").problem.sigma_0 == 4


def test_a_stored_measurement_of_pixels_may_not(tmp_path):
    Image.fromarray(random_pixels(8, 8)).save(tmp_path / "photo.png")
    assert run("degrade", tmp_path / "photo.png", "-p", "sr2", "-s", "0.1", "--out", tmp_path / "m.npz").exit_code == 0
    line = refused(run("restore", tmp_path / "m.npz", "-s", "25", "--out", tmp_path / "out", *QUICK))
    assert "did you mean --sigma 0.09804" in line


def test_an_archive_that_unpacks_to_much_is_refused_unopened(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "zeros.npz", a=np.zeros((2000, 2000), np.float32))
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    with pytest.raises(ValueError, match=r"zeros\.npz would unpack to 15.3 MB; at most 4,096 pixels"):
        load_upload(tmp_path / "zeros.npz", Limits(pixels=4096))


def test_a_finished_result_gets_the_verdict_it_lacks(tmp_path):
    Image.fromarray(random_pixels(8, 8)).save(tmp_path / "photo.png")
    command = ("restore", tmp_path / "photo.png", "-s", "0.1", "--out", tmp_path / "out", *QUICK, "--resume")
    assert run(*command).exit_code == 0
    before = Restoration.load(tmp_path / "out")
    assert "verification" not in before.settings
    again = run(*command, "--verify")
    assert again.exit_code == 0, again.output
    after = Restoration.load(tmp_path / "out")
    assert after.settings["verification"]["verdict"] in " ".join(again.stdout.split())
    assert torch.equal(before.samples, after.samples)


def test_samples_are_kept_where_their_pictures_cannot_be_drawn(dusty, tmp_path, monkeypatch):
    def without_memory(*_):
        raise MemoryError

    monkeypatch.setattr(storage, "write_pictures", without_memory)
    with pytest.raises(MemoryError):
        dusty.save(tmp_path / "out")
    assert torch.equal(Restoration.load(tmp_path / "out").samples, dusty.samples)


def test_the_plots_show_what_was_measured_alone(monkeypatch):
    """Entries of y that nothing was measured for are 0, and no noise."""
    seen = torch.zeros(1, 16, 16)
    seen[:, ::2, ::2] = 1
    operator = MaskedTransform((1, 16, 16), seen)
    x = torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    noise = 0.1 * torch.randn(1, 1, 16, 16, generator=torch.Generator().manual_seed(1))
    problem = InverseProblem(operator, seen * (x + noise), 0.1)
    plotted = []
    monkeypatch.setattr(panels.plots, "histogram", lambda values: plotted.append(values) or "")
    panels.sample_panel(problem, x[0], 0, 0, "")
    assert len(plotted[0]) == 64
    assert np.abs(plotted[0]).min() > 0


@pytest.mark.parametrize("prior", ["faces", load_prior("faces")], ids=["by name", "loaded"])
def test_python_says_that_a_face_prior_does_not_fit(prior):
    with pytest.warns(UserWarning, match="64 x 64"):
        restore(random_pixels(40, 48, 3), prior, sigma_0=0.1, samples=1, nfe=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        restore(random_pixels(64, 64, 3), prior, sigma_0=0.1, samples=1, nfe=4)
