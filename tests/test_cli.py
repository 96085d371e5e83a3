"""The command line, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import snips
from command_line import QUICK, refused, run, size_and_mode
from photo_files import saved_photo
from snips.cli import restoring
from snips.operators import compose
from snips.problems import ProblemEntry


@pytest.fixture
def image(tmp_path):
    return saved_photo(tmp_path / "photo.png", 16, 16)


def test_restore_simulated(image, tmp_path):
    result = run("restore", image, "-p", "sr2", "--simulate", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "PSNR" in result.output
    assert (tmp_path / "out" / "grid.png").exists()
    assert (tmp_path / "out" / "sample_01.png").exists()


@pytest.mark.parametrize(("problem", "size"), [("sr2", (32, 32)), ("deblur_uniform", (16, 16)), ("denoise", (16, 16))])
def test_restore_takes_the_file_as_y(problem, size, image, tmp_path):
    result = run("restore", image, "-p", problem, "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert size_and_mode(tmp_path / "out" / "mean.png")[0] == size
    assert "PSNR" not in result.output


def test_the_sampler_without_an_svd(image, tmp_path):
    arguments = ("--sampler", "matrix_free", "--nfe", "5", "-k", "2", "--out", tmp_path / "out", "--json")
    result = run("restore", image, "-p", "sr2", "--sigma", "0.1", "--prior", "gaussian", *arguments)
    assert result.exit_code == 0, result.output
    settings = json.loads(result.stdout)["settings"]
    assert settings["sampler"] == "matrix_free"
    assert settings["sampler_options"]["nfe"] == 5


def test_the_papers_sampler(image, tmp_path):
    arguments = ("--sampler", "langevin", "--levels", "8", "-k", "2", "--out", tmp_path / "out", "--json")
    result = run("restore", image, "-p", "sr2", *arguments)
    assert json.loads(result.stdout)["settings"]["sampler"] == "langevin"
    assert "warning: 8 levels are too few: noise of about 16 stays in the samples" in result.stderr


def test_restore_colours(image, tmp_path):
    Image.new("L", (16, 16), 99).save(tmp_path / "grey.png")
    result = run("restore", tmp_path / "grey.png", "-p", "colorize", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert size_and_mode(tmp_path / "out" / "mean.png")[1] == "RGB"


def test_inpaint_with_a_mask_image(image, tmp_path):
    mask = Image.new("L", (16, 16), 255)
    mask.paste(0, (4, 4, 12, 12))
    mask.save(tmp_path / "mask.png")
    out = tmp_path / "out"
    result = run("restore", image, "-p", "inpaint", "--mask", tmp_path / "mask.png", "--out", out, "--json", *QUICK)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["operator"]["problem"] == "inpaint"


def test_kernel_file(image, tmp_path):
    np.save(tmp_path / "kernel.npy", np.array([[0.0, 1.0, 2.0]]))
    arguments = ("-p", "deblur_kernel", "--kernel", tmp_path / "kernel.npy", "--out", tmp_path / "out", *QUICK)
    assert run("restore", image, *arguments).exit_code == 0


def test_problems():
    listed = run("problems").output
    assert "deblur_uniform" in listed
    assert "--option width=7" in listed  # how to give what the table names
    assert set(json.loads(run("problems", "--json").stdout)) == set(snips.PROBLEMS)


def test_same_seed_same_pictures(image, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run("restore", image, "--out", tmp_path / name, "--seed", seed, *QUICK)
    a, b, c = ((tmp_path / name / "sample_00.png").read_bytes() for name in "abc")
    assert a == b != c


def test_existing_output_is_kept(image, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("precious")
    assert "exists already" in refused(run("restore", image, "--out", out, *QUICK))
    assert (out / "mine.txt").exists()
    assert run("restore", image, "--out", out, "--force", *QUICK).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "sr3"], "did you mean"),
        (["-s", "abc"], "--sigma"),
        (["--smaples", "3"], "--samples"),
        (["-p", "cs4", "--simulate", "-o", "seed=a"], "seed"),
        (["-p", "deblur_motion", "-o", "length=1e9"], "length"),
        (["-o", "image_shape=1"], "name=value"),
        (["-p", "cs4"], "not a measurement of cs4"),
        (["-p", "deblur_kernel"], "needs the option kernel"),
        (["-p", "deblur_kernel", "-o", "kernel={}"], "the kernel must be an array"),
        (["-p", "deblur_kernel", "-o", "kernel=[null]"], "the kernel must be an array"),
        (["-p", "matrix", "--shape", "3,16,16", "-o", "matrix={}"], "the matrix must be an array"),
        (["-p", "deblur_gauss", "-o", f"std={10**400}"], "cannot take std=1000"),
        (["-p", "denoise", "--range", "0,1e-300"], "beyond what pixels can hold"),
        (["-p", "denoise", "--range", "0,1e300"], "beyond what pixels can hold"),
        (["-s", "-1"], "sigma_0 must be"),
        (["-s", "nan"], "--sigma takes a finite number or auto"),
        (["-p", "inpaint", "--mask", "nothing.png"], "no image file"),
        (["-o", "width"], "name=value"),
        (["-p", "deblur_uniform", "-o", "with=3"], "cannot take with=3"),
        (["-p", "deblur_uniform", "-o", "width=wide"], "whole number"),
        (["--samples", "0"], "samples must be"),
        (["--sampler", "langevin", "--levels", "0"], "at least one level"),
        (["--sampler", "langevin", "--preset", "celebs"], "did you mean celeba"),
        (["--sampler", "fsat"], "did you mean fast"),
        (["--nfe", "1"], "nfe"),
        (["--prior", "fases"], "fases"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_bad_input_is_one_line(arguments, message, image, tmp_path):
    calls = [] if "langevin" in arguments else QUICK
    line = refused(run("restore", image, "--out", tmp_path / "out", *calls, *arguments))
    assert message in line
    assert not (tmp_path / "out").exists()


def test_masks_with_nan_are_refused(image, tmp_path):
    np.save(tmp_path / "mask.npy", np.full((16, 16), np.nan))
    arguments = ("-p", "inpaint", "--mask", tmp_path / "mask.npy", "--out", tmp_path / "out")
    assert "finite" in refused(run("restore", image, *arguments))


@pytest.mark.parametrize("option", ["--mask", "--kernel"])
def test_empty_arrays_are_refused(option, image, tmp_path):
    np.save(tmp_path / "empty.npy", np.zeros((0, 16)))
    line = refused(run("restore", image, option, tmp_path / "empty.npy", "--out", tmp_path / "out"))
    assert "is empty: its shape is (0, 16)" in line


def test_the_cost_of_an_operator_without_svd_is_that_of_its_sampler(image, tmp_path, monkeypatch):
    """As a plug-in may offer one; `fast` becomes `matrix_free`, in the estimate too, and sigma is estimated."""

    def blur(image_shape):
        H = snips.make_operator("deblur_uniform", image_shape)
        return compose(H, snips.operators.CircularBlur(image_shape, np.ones((2, 2)) / 4), svd=False)

    monkeypatch.setitem(snips.PROBLEMS, "free", ProblemEntry(blur, "no SVD"))
    monkeypatch.setattr(restoring, "ESTIMATE_FROM", 1)
    result = run("restore", image, "-p", "free", "--prior", "gaussian", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "2 samples of 16 x 16 pixels will take about" in result.stderr
    assert snips.Restoration.load(tmp_path / "out", blur((3, 16, 16))).settings["sampler"] == "matrix_free"


def test_not_an_image(tmp_path):
    (tmp_path / "photo.png").write_text("hello")
    assert "cannot be read" in refused(run("restore", tmp_path / "photo.png", "--out", tmp_path / "out"))


def test_installed_command():
    done = subprocess.run([sys.executable, "-m", "snips", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == snips.__version__


@pytest.mark.parametrize("command", ["train --help", "doctor --json"])
def test_a_reader_that_has_seen_enough_is_no_mistake(command):
    """As `snips doctor | head -1`."""
    done = subprocess.run(f"{sys.executable} -m snips {command} | true", shell=True, capture_output=True, text=True)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("sampler", "option"),
    [
        ("fast", ("--levels", "7")),
        ("fast", ("--preset", "lsun")),
        ("matrix_free", ("--actual-noise",)),
        ("langevin", ("--nfe", "5")),
    ],
)
def test_options_without_effect_are_refused(sampler, option, image):
    told = refused(run("restore", image, "--problem", "sr4", "--sampler", sampler, *option))
    assert f"{option[0]} is for" in told
    assert "no effect" in told
