"""The page of results: written from what is stored, and judged by it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts import load_script
from snips import load_prior
from snips.experiments.sampled import prior_identity
from snips.files import write_json
from snips.priors.digest import weights_digest
from snips.priors.precision import LowPrecision
from snips.samplers.multistep import STEPS_VERSION

ROOT = Path(__file__).parent.parent


def test_the_docs_page_is_what_the_stored_results_give():
    module = load_script(ROOT / "experiments" / "results_page.py")
    assert module.PAGE.read_text(encoding="utf-8") == module.page(module.RESULTS)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The part of the page below Table 1, with benchmarks that were run; what they found can be replaced."""
    module = load_script(ROOT / "experiments" / "prior_or_sampler.py")
    monkeypatch.setattr(module, "BENCHMARKS", tmp_path)
    own = [
        {"problem": name, "truths": "the prior's own", "ratio": ratio, "ratio_error": 0.03, "coverage": ratio - 0.1}
        for name, ratio in (("sr2", 0.98), ("sr4", 1.03))
    ]
    real = [{"problem": "sr2", "truths": "CelebA", "ratio": 0.8, "ratio_error": 0.1, "coverage": 0.7}]
    row = {"samples_difference": 0.02, "samples_error": 0.05, "mean_difference": -0.14, "mean_error": 0.06}
    results = {
        "face_mixture": [
            {"problem": "cs8", "sampler": "fast 100", **row},
            {"problem": "cs8", "sampler": "exact"} | row,
        ],
        "own_truths": own + real,
        "one_call": [
            {"prior": prior, "calls": calls, "variance": variance, "self": 0.97, "error": 0.99}
            for prior, calls, variance in (("a mixture", 50, 1.01), ("faces", 50, 0.96), ("faces", 100, 0.91))
        ],
        "message_passing": [{"problem": "cs4", "message_passing": 27.0, "mean_of_infinitely_many": 26.5}],
    }
    for name, rows in results.items():
        write_json(tmp_path / f"{name}.json", {"results": rows, "weights": "1", "steps": STEPS_VERSION})
    return module


def table_1(below: float) -> dict:
    difference = {"psnr_sample": {"mean": -below}, "psnr_mean": {"mean": -below + 0.1}}
    return {"prior": {"sha256": "1"}, "rows": [{"sampler": "fast", "difference": difference}]}


def told(text: str) -> str:
    return " ".join(text.split())


def test_the_docs_page_says_what_limits_table_1(page):
    text = told(page.reasons(table_1(0.9)))
    assert "within 0.14 dB" in text
    assert "most for cs8: +0.02 ± 0.05 dB for samples, -0.14 ± 0.06 dB for their mean" in text
    assert "is 0.98 to 1.03 times" in text
    assert "from it: 0 of 2 problems" in text
    assert "hold 0.88 to 0.93 of the true pixels" in text
    assert "CelebA the same sampler has 0.80 to 0.80 and 0.70 to 0.70" in text
    assert "With an exact prior, samples have 1.01 to 1.01 times that variance with 50 calls:" in text
    assert "0.96 to 0.96 times that variance with 50 calls and 0.91 to 0.91 times that variance with 100 calls" in text
    assert "fair (0.97 to 0.97 times the squared error of D)" in text
    assert "has 0.99 to 0.99 times the squared error of D" in text
    assert "have 27.00 and 26.50 dB for cs4" in text
    assert "up to 0.90 dB below the paper's. With an exact denoiser the sampler loses at most 0.14 dB." in text
    assert "an estimate without it is at most 0.50 dB better" in text
    assert "Measured with" not in text


def test_the_verdict_on_the_sampler_is_computed(page, tmp_path):
    assert "No figure of `fast` is below the paper's." in page.reasons(table_1(-0.2))
    wide = [{"problem": "sr4", "truths": source, "ratio": 1.4, "ratio_error": 0.1, "coverage": 0.9}
            for source in ("the prior's own", "CelebA")]  # fmt: skip
    write_json(tmp_path / "own_truths.json", {"results": wide, "weights": "2", "steps": STEPS_VERSION - 1})
    text = told(page.reasons(table_1(0.9)))
    assert "from it: 1 of 1 problems" in text
    assert "Samples of sr4 scatter too much, which makes the PSNR of samples 0.79 to 0.79 dB lower" in text
    assert "Measured with other weights: own_truths." in text
    assert "Measured with former steps of `fast`: own_truths." in text
    (tmp_path / "message_passing.json").unlink()
    assert "Not measured yet: `python benchmarks/message_passing.py`." in page.reasons(table_1(0.9))


def test_a_clone_has_only_the_pictures_that_are_shown(tmp_path, monkeypatch):
    """Those that they were copied from are not tracked."""
    module = load_script(ROOT / "experiments" / "results_page.py")
    record = {"experiment": "strip", "command": "snips ...", "pictures": ["strip"], "results": {"publishable": True}}
    (tmp_path / "bundled" / "strip").mkdir(parents=True)
    write_json(tmp_path / "bundled" / "strip" / "result.json", record)
    monkeypatch.setattr(module, "PICTURES", tmp_path / "shown")
    with pytest.raises(SystemExit, match=r"strip.png is missing: run snips \.\.\."):
        module.copy_pictures(tmp_path)
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "strip_strip.png").write_bytes(b"shown")
    module.copy_pictures(tmp_path)
    (tmp_path / "bundled" / "strip" / "strip.png").write_bytes(b"drawn")
    module.copy_pictures(tmp_path)
    assert (tmp_path / "shown" / "strip_strip.png").read_bytes() == b"drawn"


def test_stored_results_are_of_the_weights_that_are_bundled():
    """After new weights: `snips experiment NAME --force`."""
    module = load_script(ROOT / "experiments" / "results_page.py")
    records = {file: json.loads(file.read_text()) for file in module.RESULTS.rglob("result.json")}
    assert {file.parent.parent.name for file in records} == {"results", "bundled"}
    used = {file: record["results"]["prior"] for file, record in records.items() if "prior" in record["results"]}
    bundled = {name: weights_digest(load_prior(name)) for name in ("faces", "natural")}
    assert {file: prior["sha256"] for file, prior in used.items()} == {
        file: bundled[prior["name"].removesuffix(", bfloat16")] for file, prior in used.items()
    }
    assert all(record["settings"].get("prior") == record["results"].get("prior") for record in records.values())


def test_weights_have_one_digest_in_every_precision():
    prior = load_prior("faces")
    assert weights_digest(LowPrecision(prior)) == weights_digest(prior)
    assert prior_identity(LowPrecision(prior)) == {**prior_identity(prior), "name": "faces, bfloat16"}


@pytest.mark.parametrize(
    ("experiment", "picture", "start"),
    [
        ("figures", "cs8", "Compressive sensing at 12.5 %: original, the least-norm image"),
        ("lsun", "photographs_sr4", "Super-resolution by 4, photographs: original, the measurement, samples"),
        ("figures", "deblur_uniform", "Uniform blur of 5 x 5: original, the measurement, samples, their mean"),
        ("ablation", "ablation", "Original, blurred, and the last state"),
    ],
)
def test_pictures_are_described_in_words(experiment, picture, start, tmp_path):
    page = load_script(ROOT / "experiments" / "results_page.py")
    file, results = tmp_path / "result.json", {"source": "photographs", "publishable": True}
    write_json(file, {"command": "snips", "pictures": [picture], "results": results})
    words = page.caption(experiment, picture)
    assert words.startswith(start)
    assert f"\n{words}:\n\n![{words}](images/results/{experiment}_{picture}.png)\n" in page.gallery(experiment, file)


def test_no_picture_of_test_images_is_tracked():
    """CelebA and the stand-ins for LSUN may not be shown; pictures in the docs are of bundled images."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    tracked = subprocess.run([git, "ls-files", "experiments"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [name for name in tracked.stdout.splitlines() if name.endswith((".png", ".jpg", ".safetensors"))] == []
