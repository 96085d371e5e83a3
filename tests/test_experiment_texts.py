"""What experiments say of their results, and the pictures beside it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from snips.experiments import EXPERIMENTS, Request, cost, figures, red, red_sweep, run, table1
from snips.experiments.pictures import with_row_names
from snips.images import example_image
from snips.inverse_problem import InverseProblem
from snips.problems import make_operator
from snips.report import picture_grid
from snips.report.grid import GAP, HEADER

PRIOR = {"name": "faces", "sha256": "1"}
ABOUT = {"prior": PRIOR, "source": "CelebA", "sampling": {"fast": {"calls": 100, "samples": 8}}}
VALUE = {"mean": 20.0, "standard_error": 0.5}


def row(samples: int, **more) -> dict:
    known = {"group": "", "problem": "sr2", "sampler": "fast", "sigma_0": 0.1, "images": 3, "samples": samples}
    scores = {"psnr_sample": VALUE, "psnr_mean": {**VALUE, "mean": 22.5}, "gap": {**VALUE, "mean": 2.4}}
    inside = {"coverage": {"mean": 0.7, "standard_error": 0.01}, "coverage_level": (samples - 1) / (samples + 1)}
    return {**known, **scores, **inside, "faithfulness": None, **more}


def test_figures_say_sampler_calls_gap_and_coverage():
    text = figures.describe({**ABOUT, "rows": [row(8)]})
    assert "For each image: `fast`, 100 calls, 8 samples." in text
    assert "8 exact samples give 2.5 dB. Coverage:" in text
    assert "| mean dB | gap dB | coverage (exact: 77.8 %) |" in text
    assert "| 20.00 ± 0.50 | 22.50 ± 0.50 | 2.40 ± 0.50 | 70.0 ± 1.0 % |" in text


def test_one_sample_has_no_mean():
    sampling = {"fast": {"calls": 100, "samples": 1}}
    text = figures.describe({**ABOUT, "sampling": sampling, "rows": [row(1, coverage=None, coverage_level=None)]})
    assert "`fast`, 100 calls, 1 sample." in text
    assert "| samples dB | mean dB | residual" in text
    assert "| sr2 | 0.1 | 3 | 20.00 ± 0.50 | - | - | - | - |" in text


def test_table1_says_how_many_gaps_are_those_of_exact_samples():
    judged = {"reached": {"psnr_sample": True, "psnr_mean": False, "gap": True}, "paper": None}
    text = table1.describe({**ABOUT, "rows": [row(8, **judged, difference=dict.fromkeys(table1.FIGURES, VALUE))]})
    assert "For each image: `fast`, 100 calls, 8 samples." in text
    assert "of 1 gaps 1 lie within 0.3 dB of the 2.5 dB of exact samples." in text
    assert "asked for" not in text


def test_heads_of_experiments_promise_no_number_of_images():
    assert not any("64 images" in experiment.summary for experiment in EXPERIMENTS.values())


def test_red_says_what_snips_is():
    methods = {name: dict.fromkeys(red_sweep.METRICS, VALUE) for name in ("SNIPS", "SNIPS mean", "RED", red.TRUE)}
    rows = [{"sigma_0": 0.1, "images": 8, "methods": methods}]
    chosen = {"0.1": {"RED": {"weight": 1000, "iterations": 100, "denoiser_sigma": 0.01}}}
    text = red.describe({**ABOUT, "rows": rows, "red": chosen})
    assert "For each image: `fast`, 100 calls, 8 samples." in text
    assert "*true luminance* is y with the true luminance. *SNIPS* are single samples" in text


def swept(sigma_0: float, iterations: int, luminance: float) -> dict:
    scores = {"psnr": 20.0, "psnr_luminance": luminance, "lpips": None}
    return {"sigma_0": sigma_0, "weight": 3.0, "iterations": iterations, "denoiser_sigma": 0.01, **scores}


@pytest.mark.parametrize(
    ("best", "said"),
    [
        ((50, 50), "with N of 25, 50 (at σ₀ = 0.006 and σ₀ = 0.1 the best N lies at the edge"),
        ((25, 50), "with N of 25, 50 (at σ₀ = 0.1 the best N lies at the edge"),
        ((25, 25), "with N of 25, 50:"),
    ],
)
def test_a_best_at_the_edge_is_said_to_be_there(best, said):
    levels = dict(zip((0.006, 0.1), best, strict=True))
    sweep = [swept(sigma_0, n, 30.0 if n == mine else 20.0) for sigma_0, mine in levels.items() for n in (25, 50)]
    chosen = [entry for entry in sweep if entry["psnr_luminance"] == 30]
    assert said in red_sweep.describe({**ABOUT, "sweep": sweep, "best": chosen})


def test_the_papers_weight_is_not_swept_twice(tmp_path):
    """At sigma_0 = 0.1 it is one of WEIGHTS: 10 / sigma_0^2 = 1000."""
    parts = red_sweep.prepare(Request(tmp_path, bundled=True, prior="gaussian")).parts
    assert (
        len({part.key for part in parts})
        == len(parts)
        == (2 * (1 + len(red_sweep.WEIGHTS)) - 1) * len(red_sweep.SIGMAS)
    )


def costs(share: float, threads: int) -> dict:
    one = {"network": "ours", "sampler": "fast", "calls": 50, "made": 50, "seconds": 3.3, "processor_seconds": 6.6}
    one |= {"network_call": 0.12, "network_share": share, "load": 1.0}
    about = {"prior": PRIOR, "problem": "sr4", "samples": 8, "parameters": {"ours": 8_900_000}}
    return {**about, "threads": threads, "costs": [one]}


@pytest.mark.parametrize(("share", "said"), [(0.93, "93 %"), (0.99, "99 %"), (1.01, "about all"), (1.0, "about all")])
def test_the_network_has_no_more_than_all_of_the_time(share, said):
    assert f"| measured | 120 | {said} |" in cost.describe(costs(share, 2))


@pytest.mark.parametrize(("threads", "said"), [(1, "1 thread."), (4, "4 threads.")])
def test_the_cost_is_that_of_the_threads_that_were_used(threads, said):
    text = cost.describe(costs(0.9, threads))
    assert f"`fast` took 3.3 s for 50 calls of `faces`, on {said}" in text
    assert "goal" not in text


def uncurated(count: int) -> np.ndarray:
    images = example_image()[..., ::4, ::4].expand(count, -1, -1, -1)
    problem = InverseProblem.simulate(make_operator("sr2", (3, 16, 16)), images, 0.1, seed=0)
    return np.asarray(figures._blocks({"sr2": problem}, {"sr2": images[None]})["uncurated"])


def test_blocks_are_as_high_as_the_images_need():
    """A row has 96 pixels: 16 times 6."""
    assert uncurated(1).shape[:2] == (HEADER + 96 + GAP, 3 * (96 + GAP) + GAP)
    assert uncurated(figures.ROWS).shape[0] == HEADER + figures.ROWS * (96 + GAP)
    two = uncurated(figures.ROWS + 1)
    assert two.shape[:2] == (HEADER + figures.ROWS * (96 + GAP), 6 * (96 + GAP) + GAP)
    assert (two[HEADER + 96 + GAP :, -3 * (96 + GAP) :] == 255).all()


def test_rows_have_names_at_their_middle():
    grid = picture_grid([("black", torch.zeros(2, 3, 48, 48))])
    named = np.asarray(with_row_names(grid, ["25 %", "6.25 %"]))
    margin = named.shape[1] - grid.width
    assert (named[:, margin:] == np.asarray(grid)).all()
    dark = np.flatnonzero((named[:, :margin] < 128).any((1, 2)))
    middles = [HEADER + 48, HEADER + 96 + GAP + 48]
    for middle in middles:
        mine = dark[abs(dark - middle) < 48]
        assert len(mine) > 4
        assert abs(mine.mean() - middle) < 4


def test_strips_tell_their_rates(tmp_path):
    request = Request(tmp_path, bundled=True, prior="gaussian", nfe=8, images=2)
    record = run("strip", EXPERIMENTS["strip"], request, lambda *_: None)
    assert record["results"]["sampling"] == {"fast": {"calls": 8, "samples": 8}}
