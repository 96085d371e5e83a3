"""The checker passes what is an MMSE denoiser and names the usual mistakes."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image

from command_line import refused, run
from snips import StationaryGaussian, as_prior, check_prior
from snips.priors import Prior

SHAPE = (3, 32, 32)


@pytest.fixture(scope="module")
def exact() -> StationaryGaussian:
    return StationaryGaussian.natural(SHAPE)


@pytest.fixture(scope="module")
def images(exact):
    return exact.sample(4, seed=1)


def test_an_exact_denoiser_passes(exact, images):
    report = check_prior(exact, images)
    assert report, str(report)
    for level in report.levels:
        assert level.psnr > level.psnr_noisy
        assert level.error_ratio == pytest.approx(1, abs=0.15)
        assert level.slope == pytest.approx(1, abs=0.1)
        assert level.asymmetry < 0.01


MISTAKES = {
    "sigma_scale=255": lambda p: lambda x, sigma: p.denoise(x, sigma / 255),
    "value_range=(-1.0, 1.0)": lambda p: lambda x, sigma: 2 * p.denoise((x + 1) / 2, sigma / 2) - 1,
    "value_range=(0.0, 255.0)": lambda p: lambda x, sigma: 255 * p.denoise(x / 255, sigma / 255),
    "sigma_scale=0.00392157": lambda p: lambda x, sigma: p.denoise(x, 255 * sigma),
    "sigma**2": lambda p: lambda x, variance: p.denoise(x, variance**0.5),
}


@pytest.mark.parametrize("fix", MISTAKES)
def test_wrong_units_are_named_with_their_remedy(fix, exact, images):
    report = check_prior(as_prior(MISTAKES[fix](exact)), images)
    assert not report
    assert len(report.mistakes) == 1
    assert fix in report.mistakes[0]


SYMPTOMS = {
    "blind: it ignores sigma": lambda p: lambda x: p.denoise(x, 0.1),
    "its mean is biased": lambda p: lambda x, sigma: p.denoise(x, sigma) + 0.05,
    "it does not reduce the noise": lambda p: lambda x, sigma: x + 0 * sigma,
    "its error does not fit": lambda p: lambda x, sigma: p.denoise(x, 4 * sigma),
    "its Jacobian is not symmetric": lambda p: lambda x, sigma: p.denoise(x, sigma).roll(1, -1),
    "what it removes is not white": lambda p: lambda x, sigma: 0.8 * p.denoise(x, sigma),
}


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_what_is_not_an_mmse_denoiser_is_named(symptom, exact, images):
    report = check_prior(as_prior(SYMPTOMS[symptom](exact)), images)
    assert any(mistake.startswith(symptom) for mistake in report.mistakes), str(report)


def test_a_shape_that_changes_is_refused(images):
    class Smaller(Prior):
        def denoise(self, x, sigma):
            return x[..., ::2]

    with pytest.raises(ValueError, match="changed the shape"):
        check_prior(Smaller(), images)


@pytest.fixture
def photos(tmp_path, images):
    (tmp_path / "photos").mkdir()
    for i, image in enumerate(images[:2]):
        pixels = (image.clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0)
        Image.fromarray(np.asarray(pixels)).save(tmp_path / "photos" / f"{i}.png")
    return tmp_path / "photos"


def test_command(photos, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from snips import StationaryGaussian\n"
        f"exact = StationaryGaussian.natural({SHAPE})\n"
        "def wrong(x, sigma):\n    return exact.denoise(x, sigma / 255)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = run("check-prior", "mine:exact", "--images", photos, "--sigmas", "0.05,0.2")
    assert result.exit_code == 0, result.output
    assert "ok: behaves like an MMSE denoiser" in result.stdout
    result = run("check-prior", "mine:wrong", "--images", photos, "--json")
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    assert "sigma_scale=255" in facts["mistakes"][0]
    assert facts["levels"][0]["sigma"] == 0.02
    result = run("check-prior", "mine:wrong", "--images", photos, "--sigma-scale", "255")
    assert result.exit_code == 0, result.output


def test_images_of_any_size_and_colour_are_cropped_to_one_shape(tmp_path, monkeypatch):
    """As `snips train` takes them: the smallest sides decide, and no more than 128 pixels are needed."""
    (tmp_path / "mixed").mkdir()
    for name, mode, size in (("a", "RGB", (140, 150)), ("b", "L", (200, 20)), ("c", "RGB", (160, 160))):
        Image.effect_noise(size, 40).convert(mode).save(tmp_path / "mixed" / f"{name}.png")
    (tmp_path / "shapes.py").write_text(
        "def told(x, sigma):\n    assert x.shape == (3, 3, 20, 128), x.shape\n    return x / (1 + sigma**2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = run("check-prior", "shapes:told", "--images", tmp_path / "mixed", "--sigmas", "0.1")
    assert "error" in result.stdout, result.output  # the table: what it says of this denoiser does not matter
    assert "the central 128 x 20 pixels of each are taken" in result.stderr


def test_command_refuses_bad_input(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_module.py").write_text("import does_not_exist_at_all\n")
    (tmp_path / "picky_module.py").write_text("def thing(x, sigma):\n    raise RuntimeError('too small')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for arguments, message in (
        (["fases"], "did you mean faces"),
        (["faces", "--images", "nowhere"], "holds no images"),
        (["faces", "--images", photos, "--sigmas", "a,b"], "--sigmas"),
        (["faces", "--images", photos, "--value-range=-1,1"], "leave out value_range"),
        (["faces", "--images", photos, "--sigma-scale", "255"], "leave out sigma_scale"),
        (["picky_module:thing", "--images", photos, "--value-range", "1"], "--value-range takes 2 numbers"),
        (["no_such_module:thing", "--images", photos], "no_such_module"),
        (["broken_module:thing", "--images", photos], "does_not_exist_at_all"),
        (["json:nothing", "--images", photos], "json has no nothing"),
        (["picky_module:thing", "--images", photos], "RuntimeError: too small"),
        (["faces", "--images", photos, "--sigmas=-1"], "must be positive"),
        (["faces", "--images", photos, "--seed", str(10**23)], "the seed must be"),
    ):
        assert message in refused(run("check-prior", *arguments))
