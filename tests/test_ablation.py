"""Step sizes: what is called divergence, and what is said of the paper's own steps."""

from __future__ import annotations

import json
import math

import pytest
import torch

from snips.experiments import Request, ablation
from snips.samplers import PRESETS
from snips.schedules import geometric

PRIOR = {"name": "faces", "sha256": "1"}


@pytest.mark.parametrize(
    ("scores", "largest", "stopped", "verdict"),
    [
        (25.0, 1.0, None, "converges"),
        (20.5, 1.0, None, "stalls"),
        (5.0, 19.9, None, "stalls"),  # as large as noise alone: a random walk
        (5.0, 50.0, None, "diverges"),
        (25, 1, 9, "diverges"),
    ],
)
def test_step_sizes_are_judged(scores, largest, stopped, verdict):
    facts = [{"psnr": scores, "largest": largest, "stopped": stopped}]
    assert ablation._row("any", facts, blurred=20.0, explained=20.0)["verdict"] == verdict


def test_pixels_beyond_10_have_diverged_where_there_is_no_such_noise():
    facts = [{"psnr": 25.0, "largest": 11.0, "stopped": None}]
    assert ablation._row("any", facts, blurred=20.0, explained=1.0)["verdict"] == "diverges"


def test_uniform_steps_alone_are_a_random_walk():
    """The largest of 200,000 walks, against what is said to be explained; its spread is about 5 %."""
    preset = PRESETS["celeba"]
    std = torch.zeros(())
    for sigma in geometric(preset.first, preset.last, preset.levels):
        std = (std**2 + preset.tau * 2 * 1e-5 * sigma**2).sqrt()
    assert ablation._noise(preset, "c = 1e-05") == pytest.approx(std.item(), rel=1e-4)
    walks = std * torch.randn(200_000, generator=torch.Generator().manual_seed(0))
    assert ablation.largest_of_noise(std.item(), 200_000) == pytest.approx(1 + walks.abs().max().item(), rel=0.1)


def test_newton_steps_hold_more_noise_than_they_tell():
    preset = PRESETS["celeba"]
    assert ablation._noise(preset, "A_i") / preset.last == pytest.approx(1.06, abs=0.005)


def store(folder, name, names, each, sampler="fast", seed=0):
    row = {"sampler": sampler, "problem": "deblur_uniform", "sigma_0": 0.1, "images": len(each)}
    rows = [{**row, "problem": "sr2"}, {**row, "psnr_of_each_image": [[value, 99.0] for value in each]}]
    record = {
        "experiment": name,
        "settings": {"fast": {"nfe": 100, "seed": seed}},
        "results": {"prior": PRIOR, "names": {"": names}, "rows": rows},
    }
    (folder / name).mkdir()
    (folder / name / "result.json").write_text(json.dumps(record))


def test_fast_is_shown_on_the_same_images(tmp_path):
    store(tmp_path, "table1", ["a", "b", "c"], [20.0, 22.0, 90.0])
    found = ablation.stored_fast(Request(tmp_path), PRIOR, ["a", "b"])
    assert found == {"calls": 100, "psnr": {"mean": 21.0, "standard_error": pytest.approx(1.0)}, "stored_by": "table1"}
    assert ablation.stored_fast(Request(tmp_path), PRIOR, ["a", "c"]) is None
    assert ablation.stored_fast(Request(tmp_path), {**PRIOR, "sha256": "2"}, ["a", "b"]) is None
    assert ablation.stored_fast(Request(tmp_path, seed=1), PRIOR, ["a", "b"]) is None
    store(tmp_path, "figures", ["a", "c"], [30.0, 30.0])
    assert ablation.stored_fast(Request(tmp_path), PRIOR, ["a", "c"])["psnr"]["mean"] == 30.0


def results(fast):
    row = {"variant": "A_i", "images": 4, "psnr": {"mean": 21.39, "standard_error": 0.6}, "verdict": "converges"}
    return {
        "prior": PRIOR,
        "source": "CelebA",
        "sigma_0": 0.1,
        "steps": 2500,
        "blurred": 18.3,
        "rows": [{**row, "largest": 1.04, "largest_of_noise": math.pi}],
        "more_noise_than_told": 0.0612,
        "fast": fast,
    }


def test_the_papers_steps_are_shown_beside_fast():
    text = ablation.describe(results({"calls": 100, "psnr": {"mean": 24.5, "standard_error": 0.4}}))
    assert (
        "With A_i, a sample has 21.39 ± 0.60 dB, and one of `fast` with 100 calls 24.50 ± 0.40 dB on the same" in text
    )
    assert "at the end by 6 %; a network that is told σ may take the excess for texture" in text
    assert "| A_i | 4 | 21.39 ± 0.60 | 1.04 | 3.14 | converges |" in text
    assert "`fast`" not in ablation.describe(results(None))
