"""One restoration of the web page: what a form may ask, how it is run, and what comes back."""

from __future__ import annotations

import shlex
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from snips import InverseProblem, Restoration, make_operator
from snips.cli import app
from snips.images import load_image
from snips.posing.pictures import AUTO
from snips.priors import load_prior
from snips.restoration import Interrupted
from snips.running import costs
from snips.web import downloads, views
from snips.web.examples import EXAMPLES, write_examples
from snips.web.jobs import Cancelled
from snips.web.limits import Limits
from snips.web.task import GAUSSIAN, Task, build_problem, problems, run, task_prior
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

    with pytest.raises(Interrupted) as caught:
        restored(task, report=stop)
    assert steps == [1, 2, 3]
    assert caught.value.finished is None


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


def test_the_noise_of_a_degraded_picture_is_estimated(task, tmp_path):
    """128 x 128 of white noise around grey: an estimate, and no doubt about it; and of 16 x 16 a guess."""
    noise = 0.1 * np.random.default_rng(0).standard_normal((128, 128))
    Image.fromarray((255 * (0.5 + noise).clip(0, 1)).round().astype(np.uint8)).save(tmp_path / "noisy.png")
    noisy = replace(task, picture=tmp_path / "noisy.png", simulate=False, problem="denoise", sigma=AUTO)
    posed = build_problem(noisy, replace(LIMITS, pixels=128 * 128))
    assert posed.problem.sigma_0 == pytest.approx(0.1, rel=0.05)
    prior = load_prior("faces")
    told = views.notes(posed, task_prior(noisy, posed.problem.operator.image_shape))
    assert f"sigma_0 = {posed.problem.sigma_0:.4g}, estimated from the finest wavelets" in told
    assert "Beware" not in told
    assert "Beware" in views.notes(posed, prior)  # made for 64 x 64
    guess = build_problem(replace(noisy, picture=task.picture), LIMITS)
    assert "<strong>Beware:</strong> sigma_0 = " in views.notes(guess, task_prior(noisy, (3, 16, 16)))
    assert restored(replace(noisy, picture=task.picture)).settings["noise"] == str(guess.noise)


def test_a_simulation_cannot_estimate_its_noise(task):
    with pytest.raises(ValueError, match="needs to know its noise"):
        build_problem(replace(task, sigma=AUTO), LIMITS)


def test_what_was_done_to_a_picture_is_said(task, tmp_path):
    odd = photo(tmp_path / "odd.png", 16, 17)
    posed = build_problem(replace(task, picture=odd), LIMITS)
    assert "<li>Cropped to 16 x 16 pixels, which the factor 2 divides.</li>" in views.notes(
        posed, task_prior(task, (3, 16, 16))
    )
    plain = build_problem(task, LIMITS)
    assert views.notes(plain, task_prior(task, (3, 16, 16))) == ""


@pytest.mark.parametrize("change", [{}, {"simulate": False, "sigma": AUTO, "seed": 3}])
def test_the_command_of_a_result_repeats_it(change, task, tmp_path, monkeypatch):
    result = restored(replace(task, **change))
    monkeypatch.chdir(tmp_path)
    words = shlex.split(result.settings["command"])
    again = CliRunner().invoke(app, [*words[1:], "--out", "again"])
    assert again.exit_code == 0, again.output
    torch.testing.assert_close(Restoration.load(tmp_path / "again").samples, result.samples, rtol=0, atol=0)


def test_a_call_of_the_denoiser_stays_small(tmp_path):
    """So that Cancel need not wait long: large pictures go through the denoiser one sample at a time."""
    side = 144
    assert side * side > costs.CHUNK_PIXELS
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


def test_without_noise_there_is_no_verdict():
    truth = torch.full((1, 1, 16, 16), 0.5)
    problem = InverseProblem(make_operator("denoise", (1, 16, 16)), truth, 0.0)
    result = Restoration(problem, truth[None], {"seconds": 1.0, "prior": "gaussian"})
    assert downloads.captions(result) == ["Sample 1"]
    assert "cannot be tested" in views.verdicts(result)


def test_what_visitors_write_is_not_html():
    assert "<script>" not in views.status("<script>alert(1)</script>", "error")
    assert "<script>" not in views.picture(torch.zeros(1, 2, 2), '"><script>alert(1)</script>')
