"""One restoration of the web page: what a form may ask, and how it is run."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from snips import Restoration
from snips.cli import app
from snips.images import load_image
from snips.posing.pictures import AUTO
from snips.priors import load_prior
from snips.restoration import Interrupted
from snips.running import costs
from snips.web import views
from snips.web.examples import EXAMPLES, write_examples
from snips.web.jobs import Cancelled
from snips.web.limits import Limits
from snips.web.task import GAUSSIAN, Task, build_problem, problems, task_prior
from web_pages import photo
from web_tasks import LIMITS, restored, small_task


@pytest.fixture
def task(tmp_path):
    return small_task(tmp_path)


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


@pytest.mark.parametrize("simulated", [True, False])
def test_the_restored_image_is_checked_before_its_operator_is_built(simulated, task, tmp_path, monkeypatch):
    problems(simulated)  # remembered: what is offered is found by small operators
    monkeypatch.setattr("snips.operators.blurs.blur", lambda *_: pytest.fail("it was built"))
    side = 65 if simulated else 64  # and 4 more for what lies around it
    large = replace(task, picture=photo(tmp_path / "large.png", side, side), problem="deblur_uniform")
    with pytest.raises(ValueError, match="the restored image has 6[58] x 6[58] pixels"):
        build_problem(replace(large, simulate=simulated), LIMITS)


def test_one_network_serves_all_sizes(task):
    natural = replace(task, prior="natural")
    assert task_prior(natural, (3, 16, 16)) is task_prior(natural, (3, 32, 48))
    assert task_prior(task, (3, 16, 16)) is not task_prior(task, (3, 32, 48))
