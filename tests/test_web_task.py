"""One restoration of the web page: what a form may ask, how it is run, and what comes back."""

from __future__ import annotations

import zipfile
from dataclasses import replace

import pytest
import torch
from PIL import Image

from snips import InverseProblem, Restoration, make_operator
from snips.images import load_image
from snips.web import downloads, views
from snips.web.examples import EXAMPLES, write_examples
from snips.web.jobs import Cancelled
from snips.web.limits import Limits
from snips.web.task import GAUSSIAN, PIXELS_PER_CALL, Task, build_problem, problems, run
from web_pages import photo

LIMITS = Limits(pixels=64 * 64, samples=4, calls=20)


def restored(task: Task, limits: Limits = LIMITS, report=lambda _: None) -> Restoration:
    return run(task, build_problem(task, limits), report)


@pytest.fixture
def task(tmp_path):
    return Task(photo(tmp_path / "photo.png", 16, 16), True, "sr2", 0.1, samples=2, calls=10, prior=GAUSSIAN)


def test_a_task_reports_each_step(task):
    heard = []
    result = restored(task, report=heard.append)
    assert [now.step for now in heard] == list(range(1, heard[-1].total + 1))
    assert heard[-1].total == 10
    assert heard[0].estimate.shape == heard[0].state.shape == (3, 16, 16)
    assert heard[0].seconds_left == pytest.approx(heard[0].seconds * 9)
    assert result.samples.shape == (2, 1, 3, 16, 16)
    assert result.settings["sampler_options"]["nfe"] == 10
    assert result.settings["prior"] == "gaussian"


def test_a_task_stops_where_it_is_told_to(task):
    steps = []

    def stop(now) -> None:
        steps.append(now.step)
        if now.step == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        restored(task, report=stop)
    assert steps == [1, 2, 3]


def test_a_call_of_the_denoiser_stays_small(tmp_path):
    """So that Cancel need not wait long: large pictures go through the denoiser one sample at a time."""
    side = 192
    assert side * side > PIXELS_PER_CALL
    large = Task(photo(tmp_path / "large.png", side, side), True, "denoise", 0.1, 2, 10, GAUSSIAN)
    result = restored(large, replace(LIMITS, pixels=side * side))
    assert result.settings["sampler_options"]["chunk"] == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples": 5}, "from 1 to 4 samples, not 5"),
        ({"samples": 0}, "from 1 to 4 samples, not 0"),
        ({"calls": 21}, "from 10 to 20 calls, not 21"),
        ({"sigma": 25.0}, "between 0 and 1, as pixels do, but is 25"),
        ({"sigma": float("nan")}, "between 0 and 1"),
        ({"problem": "deblur_kernel"}, "deblur_kernel cannot be chosen here"),
        ({"problem": "cs4", "simulate": False}, "cs4 cannot be chosen here"),
        ({"prior": "/etc/passwd"}, "there is no prior /etc/passwd here"),
        ({"problem": "sr4", "simulate": False, "picture": "wide"}, "the restored image has 80 x 64 pixels"),
    ],
)
def test_what_a_form_may_not_ask(change, words, task, tmp_path):
    if "picture" in change:
        change = {**change, "picture": photo(tmp_path / "wide.png", 16, 20)}
    with pytest.raises(ValueError, match=words):
        build_problem(replace(task, **change), LIMITS)


def test_errors_name_the_picture_but_not_its_folder(task, tmp_path):
    task.picture.write_text("changed since it was uploaded")
    with pytest.raises(ValueError, match="^photo.png cannot be read") as caught:
        restored(task)
    assert str(tmp_path) not in str(caught.value)


def test_which_problems_are_offered():
    assert {"denoise", "sr2", "sr4", "colorize", "deblur_motion"} <= set(problems(simulate=False))
    assert not {"cs4", "mri", "inpaint", "deblur_kernel"} & set(problems(simulate=False))
    assert {"cs4", "mri", "inpaint"} <= set(problems(simulate=True))


def test_every_offered_problem_runs_on_the_page(task):
    for problem in problems(simulate=True):
        restored(replace(task, problem=problem, samples=1))
    for problem in problems(simulate=False):
        if problem != "colorize":  # takes a grey picture
            restored(replace(task, problem=problem, samples=1, simulate=False))


def test_examples_fit_their_settings(tmp_path):
    write_examples(tmp_path / "examples")
    for example in EXAMPLES.values():
        path = tmp_path / "examples" / example.file
        task = Task(path, example.simulate, example.problem, example.sigma, 1, 10, GAUSSIAN)
        result = restored(task, Limits())
        assert torch.isfinite(result.samples).all()
    assert load_image(tmp_path / "examples" / "small-face.png").shape == (1, 3, 16, 16)


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


def test_the_gallery(task, tmp_path):
    result = restored(task)
    shown = downloads.write_gallery(result, tmp_path / "shown")
    assert [caption for _, caption in shown[:2]] == ["Original", "Degraded"]
    assert [caption for _, caption in shown[-2:]] == ["Mean of the samples", "Standard deviation x 4"]
    assert len(shown) == 6
    sizes = set()
    for file, _ in shown:
        with Image.open(file) as picture:
            sizes.add(picture.size)
    assert sizes == {(320, 320)}  # also the degraded picture, which has 8 x 8 pixels
    single = restored(replace(task, samples=1))
    assert "Standard deviation x 4" not in dict(downloads.write_gallery(single, tmp_path / "single")).values()
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
    assert "made for 64 x 64" in views.summary(result)


def test_without_noise_there_is_no_verdict():
    truth = torch.full((1, 1, 16, 16), 0.5)
    problem = InverseProblem(make_operator("denoise", (1, 16, 16)), truth, 0.0)
    result = Restoration(problem, truth[None], {"seconds": 1.0, "prior": "gaussian"})
    assert downloads.captions(result) == ["Sample 1"]
    assert "cannot be tested" in views.verdicts(result)


def test_what_visitors_write_is_not_html():
    assert "<script>" not in views.status("<script>alert(1)</script>", "error")
    assert "<script>" not in views.picture(torch.zeros(1, 2, 2), '"><script>alert(1)</script>')
