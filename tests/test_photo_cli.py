"""Photos through the command line: what comes out, and what is said about it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image

from command_line import refused, restored, run, size_and_mode
from photo_files import png16, random_pixels, saved_photo
from snips import Restoration
from snips.cli import problem_options
from snips.metrics import ssim
from snips.priors import registry


@pytest.fixture
def photo(tmp_path):
    return saved_photo(tmp_path / "photo.png", 12, 20)


@pytest.mark.parametrize(("problem", "factor"), [("denoise", 1), ("sr2", 2), ("sr4", 4), ("deblur_gauss", 1)])
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_any_aspect_grey_colour_and_alpha(mode, problem, factor, tmp_path):
    picture = Image.fromarray(random_pixels(12, 20, 3)).convert(mode)
    if mode in ("LA", "RGBA"):
        picture.putalpha(Image.linear_gradient("L").resize((20, 12)))
    picture.save(tmp_path / "photo.png")
    restored(tmp_path, tmp_path / "photo.png", "-p", problem, "-s", "0.1")
    for name in ("sample_00", "mean"):
        assert size_and_mode(tmp_path / "out" / f"{name}.png") == ((20 * factor, 12 * factor), mode)
    assert Restoration.load(tmp_path / "out").samples.shape[2] == (1 if mode in ("L", "LA") else 3)


def test_alpha_comes_back_unchanged(tmp_path):
    picture = Image.fromarray(random_pixels(8, 8, 4))
    picture.save(tmp_path / "photo.png")
    restored(tmp_path, tmp_path / "photo.png", "-s", "0.1")
    with Image.open(tmp_path / "out" / "mean.png") as mean:
        assert mean.getchannel("A").tobytes() == picture.getchannel("A").tobytes()
    assert Restoration.load(tmp_path / "out").alpha.shape == (1, 1, 8, 8)


def test_16_bits_reach_the_measurement(tmp_path):
    values = random_pixels(8, 8, 3, dtype=np.uint16)
    (tmp_path / "deep.png").write_bytes(png16(values))
    restored(tmp_path, tmp_path / "deep.png", "-s", "0.1")
    y = Restoration.load(tmp_path / "out").problem.y[0]
    torch.testing.assert_close(y, torch.tensor(values.transpose(2, 0, 1).astype(np.float32) / 65535))


def test_simulate_reports_quality_and_truth(photo, tmp_path):
    result = restored(tmp_path, photo, "-p", "sr", "--factor", "3", "--simulate", "--json")
    description = json.loads(result.stdout)
    assert description["operator"]["image_shape"] == [3, 12, 18]  # cropped, as 3 does not divide 20
    assert "cropped to 18 x 12" in description["settings"]["notes"][0]
    stored = Restoration.load(tmp_path / "out")
    assert stored.problem.truth is not None
    mean = stored.samples.clamp(0, 1).mean(0)
    assert description["ssim"]["mean"] == pytest.approx(ssim(mean, stored.problem.truth).tolist(), abs=1e-5)
    assert description["psnr"]["mean"][0] > 5
    assert size_and_mode(tmp_path / "out" / "truth.png")[0] == (18, 12)


def test_factor_mask_and_matrix_name_their_problem(photo, tmp_path):
    np.save(tmp_path / "mask.npy", np.eye(12, 20))
    np.save(tmp_path / "H.npy", np.eye(240))
    for option, value, name in (
        ("--factor", 3, "sr"),
        ("--mask", tmp_path / "mask.npy", "inpaint"),
        ("--matrix", tmp_path / "H.npy", "matrix"),
    ):
        result = restored(tmp_path, photo, option, value, "-s", "0.1", "--force", "--json")
        assert json.loads(result.stdout)["operator"]["problem"] == name


def test_numbers_measured_by_a_matrix(tmp_path):
    random = np.random.default_rng(0)
    H, x = 100 * random.standard_normal((40, 48)), random.random(48)
    np.save(tmp_path / "H.npy", H)
    np.save(tmp_path / "y.npy", H @ x)
    arguments = (tmp_path / "y.npy", "--matrix", tmp_path / "H.npy", "-s", "0.01")
    assert "--shape" in refused(run("restore", *arguments, "--out", tmp_path / "out"))
    restored(tmp_path, *arguments, "--shape", "1,6,8")
    result = Restoration.load(tmp_path / "out")
    assert result.samples.shape[2:] == (1, 6, 8)
    residual = H @ result.samples[0].flatten().double().numpy() - H @ x
    assert np.abs(residual).max() < 1  # of values in the hundreds


def test_a_grey_picture_saved_as_colour_is_colorized(photo, tmp_path):
    with Image.open(photo) as picture:
        picture.convert("L").convert("RGB").save(tmp_path / "grey.png")
    restored(tmp_path, tmp_path / "grey.png", "-p", "colorize", "-s", "0.1")
    assert size_and_mode(tmp_path / "out" / "mean.png")[1] == "RGB"
    assert "has colours" in refused(run("restore", photo, "-p", "colorize", "--out", tmp_path / "other"))


def test_sigma_auto_says_what_it_found(tmp_path):
    noise = np.random.default_rng(0).standard_normal((128, 128))
    np.save(tmp_path / "noisy.npy", 0.5 + 0.1 * noise)
    result = restored(tmp_path, tmp_path / "noisy.npy", "-s", "auto", "--prior", "gaussian")
    assert "estimated from the finest wavelets" in result.stderr
    assert "warning" not in result.stderr
    assert Restoration.load(tmp_path / "out").problem.sigma_0 == pytest.approx(0.1, rel=0.05)


def test_a_guess_is_a_warning_even_with_json(photo, tmp_path):
    result = restored(tmp_path, photo, "--json")
    assert "warning: sigma_0" in result.stderr
    assert "a guess" in json.loads(result.stdout)["settings"]["noise"]


def test_a_stored_measurement_may_be_given_another_noise(photo, tmp_path):
    run("degrade", photo, "-p", "mri", "-s", "0.1", "--out", tmp_path / "y.npz")
    restored(tmp_path, tmp_path / "y.npz", "--sigma", "0.2")
    assert Restoration.load(tmp_path / "out").problem.sigma_0 == 0.2


def test_a_stated_range(tmp_path):
    np.save(tmp_path / "raw.npy", np.full((8, 8), 2048.0))
    assert "--range" in refused(run("restore", tmp_path / "raw.npy", "--out", tmp_path / "out"))
    result = restored(tmp_path, tmp_path / "raw.npy", "--range", "0,4096", "-s", "0.1")
    assert "0 is black and 4096 is white" in result.stderr
    assert Restoration.load(tmp_path / "out").problem.y.unique().tolist() == [0.5]


def test_the_prior_is_chosen_and_named(photo, tmp_path):
    assert "prior: " in restored(tmp_path, photo, "-s", "0.1").stderr
    assert "prior: " not in restored(tmp_path, photo, "-s", "0.1", "--prior", "gaussian", "--force").stderr


def test_a_face_prior_on_a_larger_photo_says_what_will_happen(tmp_path):
    Image.fromarray(random_pixels(72, 72, 3)).save(tmp_path / "photo.png")
    arguments = ("--prior", "faces", "-s", "0.1", "--nfe", "4", "-k", "1", "--out", tmp_path / "out")
    result = run("restore", tmp_path / "photo.png", *arguments)
    assert result.exit_code == 0, result.output
    assert "made for aligned images of 64 x 64 pixels, this one has 72 x 72" in result.stderr


def test_sampling_without_an_svd(photo, tmp_path):
    restored(tmp_path, photo, "-s", "0.1", "--sampler", "matrix_free")
    assert Restoration.load(tmp_path / "out").settings["sampler"] == "matrix_free"


def test_natural_is_chosen_once_it_is_there(photo, monkeypatch, tmp_path):
    from snips.priors.choice import choose_prior

    monkeypatch.setattr(registry, "WEIGHTS", tmp_path)
    assert choose_prior((3, 64, 64)).name == "gaussian"
    for name in ("natural", "faces"):
        (tmp_path / f"{name}.safetensors").touch()
        assert choose_prior((1, 64, 64)).name == choose_prior((3, 64, 65)).name == "natural"
    assert choose_prior((3, 64, 64)).name == "faces"
    assert choose_prior((2, 64, 64)).name == "gaussian"


@pytest.mark.parametrize("typed", ["-s 25", "-s25", "--sigma=25", "--sigma 25"])
def test_the_command_to_repeat_has_the_noise_that_was_meant(typed):
    found = problem_options.with_sigma(f"snips restore photo-s25.png {typed} -k 25", "25", 25 / 255)
    assert found == f"snips restore photo-s25.png {typed.removesuffix('25')}0.0980392 -k 25"
    assert problem_options.with_sigma(f"snips restore a.png {typed}", "25", 25.0) == f"snips restore a.png {typed}"


def test_the_degraded_picture_keeps_transparency_too(tmp_path):
    Image.fromarray(random_pixels(12, 20, 4)).save(tmp_path / "photo.png")
    restored(tmp_path, tmp_path / "photo.png", "-s", "0.1", "--prior", "gaussian")
    assert size_and_mode(tmp_path / "out" / "degraded.png")[1] == "RGBA"
