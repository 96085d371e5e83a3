"""The command line, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import snips
from command_line import refused, run
from snips.cli import restoring
from snips.operators import compose
from snips.problems import ProblemEntry

QUICK = ["--nfe", "10", "--samples", "2"]


@pytest.fixture
def image(tmp_path):
    values = np.random.default_rng(0).integers(0, 255, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(values).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def size_and_mode(path):
    with Image.open(path) as picture:
        return picture.size, picture.mode


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


def test_degrade_then_restore(image, tmp_path):
    measured = tmp_path / "measured.npz"
    result = run("degrade", image, "-p", "cs4", "-s", "0.05", "-o", "seed=3", "--out", measured, "--json")
    assert json.loads(result.stdout)["measurement_shape"] == [3, 64]
    result = run("restore", measured, "--out", tmp_path / "out", "--json", *QUICK)
    assert result.exit_code == 0, result.output
    description = json.loads(result.stdout)
    assert description["operator"] == {"problem": "cs4", "image_shape": [3, 16, 16], "options": {"seed": 3}}
    assert description["sigma_0"] == 0.05


def test_degrade_to_a_picture(image, tmp_path):
    assert run("degrade", image, "-p", "sr4", "--out", tmp_path / "small.png").exit_code == 0
    assert size_and_mode(tmp_path / "small.png")[0] == (4, 4)
    assert "ends in .npz" in refused(run("degrade", image, "-p", "cs4", "--out", tmp_path / "y.png"))


def test_kernel_file(image, tmp_path):
    np.save(tmp_path / "kernel.npy", np.array([[0.0, 1.0, 2.0]]))
    arguments = ("-p", "deblur_kernel", "--kernel", tmp_path / "kernel.npy", "--out", tmp_path / "out", *QUICK)
    assert run("restore", image, *arguments).exit_code == 0


def test_problems():
    assert "deblur_uniform" in run("problems").output
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
    line = refused(run("restore", image, "--out", tmp_path / "out", *QUICK, *arguments))
    assert message in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x93NUMPY"])
def test_broken_measurement_files(content, tmp_path):  # and see the fuzz test below
    (tmp_path / "y.npz").write_bytes(content)
    assert "cannot be read as an archive of arrays" in refused(
        run("restore", tmp_path / "y.npz", "--out", tmp_path / "out")
    )


@pytest.mark.parametrize(
    "description",
    [
        "[]",
        "{}",
        '{"operator": {}, "sigma_0": 0.1}',
        '{"operator": "sr2", "sigma_0": 0.1}',
        '{"operator": {"problem": "sr2", "image_shape": null, "options": {}}, "sigma_0": 0.1}',
        '{"operator": {"problem": "sr2", "image_shape": [1000000000, 1000000000, 2], "options": {}}, "sigma_0": 0.1}',
        '{"operator": {"problem": ["sr2"], "image_shape": [1, 4, 4], "options": {}}, "sigma_0": 0.1}',
        '{"operator": {"problem": "sr2", "image_shape": [1, 4, 4], "options": null}, "sigma_0": 0.1}',
        '{"operator": {"problem": "sr2", "image_shape": [1, 4, 4], "options": {}}, "sigma_0": null}',
        "[" * 100_000,
    ],
)
def test_measurements_with_a_damaged_description(description, tmp_path):
    np.savez(tmp_path / "y.npz", y=np.zeros((1, 1, 2, 2), np.float32), description=np.array(description))
    refused(run("restore", tmp_path / "y.npz", "--out", tmp_path / "out"))


def test_damaged_archives_are_refused(image, tmp_path):
    run("degrade", image, "-p", "cs4", "--out", tmp_path / "y.npz")
    whole, random = np.frombuffer((tmp_path / "y.npz").read_bytes(), np.uint8), np.random.default_rng(0)
    for _ in range(60):
        damaged = whole.copy()
        damaged[random.integers(0, len(whole), 20)] = random.integers(0, 256, 20)
        (tmp_path / "bad.npz").write_bytes(damaged.tobytes())
        result = run("restore", tmp_path / "bad.npz", "--out", tmp_path / "out", "--force", "--nfe", "8", "-k", "1")
        assert result.exit_code in (0, 2), result.output


def test_a_measurement_file_knows_its_problem(image, tmp_path):
    run("degrade", image, "-p", "sr2", "--out", tmp_path / "y.npz")
    assert "leave out" in refused(run("restore", tmp_path / "y.npz", "-p", "sr2", "--out", tmp_path / "out"))


def test_masks_with_nan_are_refused(image, tmp_path):
    np.save(tmp_path / "mask.npy", np.full((16, 16), np.nan))
    arguments = ("-p", "inpaint", "--mask", tmp_path / "mask.npy", "--out", tmp_path / "out")
    assert "finite" in refused(run("restore", image, *arguments))


@pytest.mark.parametrize("option", ["--mask", "--kernel"])
def test_empty_arrays_are_refused(option, image, tmp_path):
    np.save(tmp_path / "empty.npy", np.zeros((0, 16)))
    line = refused(run("restore", image, option, tmp_path / "empty.npy", "--out", tmp_path / "out"))
    assert "is empty: its shape is (0, 16)" in line


def test_endings_of_measurements_in_capitals(image, tmp_path):
    for name in ("y.NPZ", "y.PNG"):
        assert run("degrade", image, "-p", "sr2", "--out", tmp_path / name).exit_code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["photo.png", "y.NPZ", "y.PNG"]
    result = run("restore", tmp_path / "y.NPZ", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", ["new/y", "new/y.foo", "new/y.psd"])
def test_an_ending_that_says_nothing_is_refused_with_those_that_do(name, image, tmp_path):
    line = refused(run("degrade", image, "-p", "sr2", "--out", tmp_path / name))
    assert ".npz keeps the measurement exactly" in line
    assert not (tmp_path / "new").exists()


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


def test_brackets_in_names_are_only_names(image, tmp_path):
    result = run("degrade", image, "--out", tmp_path / "y[/b].npz")
    assert result.exit_code == 0, result.output
    assert "y[/b].npz" in result.output


def test_frequencies_are_not_a_picture(image, tmp_path):
    assert "ends in .npz" in refused(run("degrade", image, "-p", "mri", "--out", tmp_path / "y.png"))


def test_not_an_image(tmp_path):
    (tmp_path / "photo.png").write_text("hello")
    assert "cannot be read" in refused(run("restore", tmp_path / "photo.png", "--out", tmp_path / "out"))


def test_installed_command():
    done = subprocess.run([sys.executable, "-m", "snips", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == snips.__version__
