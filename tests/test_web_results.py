"""What comes back from a restoration of the web page: pictures, the archive, verdicts."""

from __future__ import annotations

import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from snips import InverseProblem, Restoration, make_operator
from snips.running import costs
from snips.web import downloads, views
from snips.web.jobs import Cancelled
from web_tasks import restored, small_task


@pytest.fixture
def task(tmp_path):
    return small_task(tmp_path)


def test_what_is_finished_when_a_task_is_stopped_is_kept(task, tmp_path, monkeypatch):
    """As Ctrl-C does: the samples of finished chunks, with their verdicts, and everything in the archive."""
    monkeypatch.setattr(costs, "CHUNK_PIXELS", 16 * 16)  # one sample at a time
    whole = restored(replace(task, samples=4))

    def stop(now) -> None:
        if now.step == 25:  # of 40
            raise Cancelled

    kept = restored(replace(task, samples=4), report=stop)
    assert torch.equal(kept.samples, whole.samples[:2])
    assert views.summary(kept).startswith("Stopped: 2 of 4 samples were finished and are kept; 2 samples in")
    assert len(downloads.write_gallery(kept, tmp_path / "shown")) == 6
    with zipfile.ZipFile(downloads.pack(kept, tmp_path, "kept")) as packed:
        assert {"kept/sample_01.png", "kept/report.html"} <= set(packed.namelist())
        assert "kept/sample_02.png" not in packed.namelist()


@pytest.mark.parametrize(("problem", "factor"), [("denoise", 1), ("sr2", 2)])
def test_transparency_is_kept(problem, factor, task, tmp_path):
    """As `snips restore` keeps it: in the pictures of the archive, and in those on the page."""
    colours = np.random.default_rng(0).integers(0, 256, (16, 16, 4), dtype=np.uint8)
    colours[..., 3] = 51
    colours[:8, :, 3] = 204
    Image.fromarray(colours).save(tmp_path / "clear.png")
    clear = replace(task, picture=tmp_path / "clear.png", simulate=False, problem=problem)
    result = restored(clear)
    side = 16 * factor
    with zipfile.ZipFile(downloads.pack(result, tmp_path, "clear")) as packed:
        for name in ("sample_00", "mean"):
            with packed.open(f"clear/{name}.png") as file, Image.open(file) as picture:
                assert (picture.mode, picture.size) == ("RGBA", (side, side))
                alpha = np.asarray(picture.getchannel("A"))
                assert (alpha[0, 0], alpha[-1, -1]) == (204, 51)
    shown = {caption.split(":")[0]: file for file, caption in downloads.write_gallery(result, tmp_path / "shown")}
    for caption in ("Sample 1", "Mean of the samples"):
        with Image.open(shown[caption]) as picture:
            assert picture.mode == "RGBA"
            assert picture.getchannel("A").getpixel((0, 0)) == 204


def test_the_zip_holds_what_save_writes(task, tmp_path):
    result = restored(task)
    archive = downloads.pack(result, tmp_path, "mine")
    assert archive == tmp_path / "mine.zip"
    assert not (tmp_path / "mine").exists()
    saved = result.save(tmp_path / "saved")
    with zipfile.ZipFile(archive) as packed:
        assert set(packed.namelist()) == {f"mine/{file.name}" for file in saved.iterdir()}
        packed.extractall(tmp_path)
    assert torch.equal(Restoration.load(tmp_path / "mine").samples, result.samples)


def size_of(file: str) -> tuple[int, int]:
    with Image.open(file) as picture:
        return picture.size


def test_the_gallery(task, tmp_path):
    result = restored(task)
    shown = downloads.write_gallery(result, tmp_path / "shown")
    assert [caption for _, caption in shown[:2]] == ["Original", "Degraded"]
    assert [caption for _, caption in shown[-2:]] == ["Mean of the samples", "Standard deviation"]
    assert len(shown) == 6
    sizes = [size_of(file) for file, _ in shown]
    assert set(sizes[:-1]) == {(320, 320)}  # also the degraded picture, which has 8 x 8 pixels
    assert sizes[-1] > (320, 320)  # with the bar of its colours
    single = restored(replace(task, samples=1))
    assert "Standard deviation" not in dict(downloads.write_gallery(single, tmp_path / "single")).values()
    assert len(downloads.write_gallery(single, tmp_path / "again")) == 4


def test_verdicts_agree_with_the_library():
    truth = torch.full((1, 1, 16, 16), 0.5)
    problem = InverseProblem.simulate(make_operator("denoise", (1, 16, 16)), truth, 0.1, seed=0)
    result = Restoration(problem, torch.stack([truth, truth + 0.3]), {"seconds": 1.0, "prior": "faces"})
    assert result.faithfulness().faithful.flatten().tolist() == [True, False]
    assert downloads.captions(result) == ["Sample 1: faithful", "Sample 2: not faithful"]
    table = views.verdicts(result)
    assert "1 of 2 samples explain the measurement" in table
    assert table.count(">yes<") == table.count(">no<") == 1
    assert "<li>Sample 2 does not pass all tests: the residual is" in table
    assert "times as strong as the noise" in table
    assert "Sample 1 does not" not in table


def test_samples_that_fail_the_same_tests_share_a_sentence():
    truth = torch.full((1, 1, 48, 48), 0.5)
    problem = InverseProblem.simulate(make_operator("denoise", (1, 48, 48)), truth, 0.1, seed=0)
    noise = problem.y - truth
    smooth = (noise + noise.roll(1, -1)) / 2**0.5
    samples = torch.stack(
        [truth, problem.y - 2 * noise, problem.y - smooth, problem.y - 3 * noise, problem.y - 4 * noise]
    )
    table = views.verdicts(Restoration(problem, samples, {"seconds": 1.0, "prior": "faces"}))
    assert table.count("<li>") == 2
    assert "It is the same with samples 4 and 5." in table
    assert "<li>Sample 3 does not pass all tests: neighbours along x are correlated" in table


def test_without_noise_there_is_no_verdict():
    truth = torch.full((1, 1, 16, 16), 0.5)
    problem = InverseProblem(make_operator("denoise", (1, 16, 16)), truth, 0.0)
    result = Restoration(problem, truth[None], {"seconds": 1.0, "prior": "gaussian"})
    assert downloads.captions(result) == ["Sample 1"]
    assert "cannot be tested" in views.verdicts(result)


def test_what_visitors_write_is_not_html():
    assert "<script>" not in views.status("<script>alert(1)</script>", "error")
    assert "<script>" not in views.picture(torch.zeros(1, 2, 2), '"><script>alert(1)</script>')
