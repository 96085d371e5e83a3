"""The paper's figures: original, degraded, samples, mean, and the standard deviation four times brighter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from PIL import Image

from snips.experiments import datasets
from snips.experiments.base import WITH_CALLS, Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.markdown import (
    FAITHFULNESS_COLUMNS,
    coverage_column,
    faithfulness_cells,
    on_gap_and_coverage,
    percent,
    setting,
    table,
    with_error,
)
from snips.experiments.pictures import with_row_names
from snips.experiments.published import CELEBA_SAMPLES, LSUN_SAMPLES, SIGMA_CELEBA, SIGMA_LSUN
from snips.experiments.sampled import Sampling, experiment_prior, grouped_rows, prior_identity, sampled_part, simulated
from snips.experiments.table1 import PROBLEMS as CELEBA_PROBLEMS
from snips.inverse_problem import InverseProblem
from snips.priors import Prior
from snips.report import comparison_columns, comparison_grid, picture_grid

LSUN_PROBLEMS = ("sr2", "sr4", "cs4")
CLEARLY = 0.05  # less coverage than exact samples have
ROWS = 16  # of a block of uncurated images
STRIP_PROBLEMS = {"cs4": "25 %", "cs8": "12.5 %", "cs16": "6.25 %"}
LSUN_SETS = {"scenes ": datasets.scenes, "bedrooms ": datasets.bedrooms}
BUNDLED_SETS = {"photographs ": datasets.scenes}  # without data, all sets are the same
Draw = Callable[[dict[str, InverseProblem], dict[str, torch.Tensor]], dict[str, Image.Image]]


def prepare_celeba(request: Request) -> Study:
    """A grid of 8 images for each problem."""
    return _faces_study(request, CELEBA_PROBLEMS, request.count(8, 2), _grids)


def prepare_strip(request: Request) -> Study:
    """One image at three rates of compressive sensing."""
    return _faces_study(request, tuple(STRIP_PROBLEMS), request.count(1, 1), _strip)


def prepare_uncurated(request: Request) -> Study:
    """Many images with one sample each."""
    return _faces_study(request, ("sr2",), request.count(64, 2), _blocks, samples=1)


def _faces_study(
    request: Request, names: tuple[str, ...], count: int, draw: Draw, samples: int = CELEBA_SAMPLES
) -> Study:
    test = datasets.faces(request, count)
    problems = {name: simulated(name, test.images, SIGMA_CELEBA, request.seed) for name in names}
    return _study(request, "faces", problems, samples, test.facts(), draw)


def prepare_lsun(request: Request) -> Study:
    """Images of 128 x 128 with the `natural` prior."""
    count = request.count(6, 1, bundled=2)
    sets = BUNDLED_SETS if request.without_data else LSUN_SETS
    tests = {group: read(request, count) for group, read in sets.items()}
    problems = {
        group + name: simulated(name, test.images, SIGMA_LSUN, request.seed)
        for group, test in tests.items()
        for name in LSUN_PROBLEMS
    }
    facts = {
        "source": "; ".join(test.source for test in tests.values()),
        "publishable": all(test.publishable for test in tests.values()),
        "names": {group: list(test.names) for group, test in tests.items()},
    }
    return _study(request, "natural", problems, LSUN_SAMPLES, facts, _grids)


def _study(
    request: Request,
    usual_prior: str,
    problems: dict[str, InverseProblem],
    samples: int,
    facts: dict[str, Any],
    draw: Draw,
) -> Study:
    sampling = Sampling.of(request, "fast", samples)
    any_truth = next(iter(problems.values())).truth
    assert any_truth is not None, "experiments know the truth"
    prior = experiment_prior(request, usual_prior, any_truth)
    count = len(any_truth)
    parts = [_part(name, problems[name][i], prior, sampling) for i in range(count) for name in problems]
    settings = {"prior": prior_identity(prior), **sampling.settings()}

    def conclude(measured: list[Measured]) -> Outcome:
        drawn: dict[str, list[torch.Tensor]] = {name: [] for name in problems}
        for m in measured:
            drawn[m.facts["group"] + m.facts["problem"]].append(m.tensors["samples"])
        pictures = draw(problems, {name: torch.cat(parts, dim=1) for name, parts in drawn.items()})
        about = {"prior": settings["prior"], **facts, "sampling": sampling.facts()}
        return Outcome({**about, "rows": grouped_rows([m.facts for m in measured])}, pictures)

    return Study(settings, parts, conclude)


def _part(name: str, problem: InverseProblem, prior: Prior, sampling: Sampling) -> Part:
    group, space, plain_name = name.rpartition(" ")
    return sampled_part(plain_name, problem, prior, sampling, keep=True, group=group + space)


def _grids(problems: dict[str, InverseProblem], samples: dict[str, torch.Tensor]) -> dict[str, Image.Image]:
    return {name.replace(" ", "_"): comparison_grid(problem, samples[name]) for name, problem in problems.items()}


def _strip(problems: dict[str, InverseProblem], samples: dict[str, torch.Tensor]) -> dict[str, Image.Image]:
    """A row of each image for each rate: original, degraded, a sample, the mean and the standard deviation of all."""
    each = [comparison_columns(problem, samples[name], shown=1) for name, problem in problems.items()]
    columns = [(cells[0][0], torch.cat([images for _, images in cells])) for cells in zip(*each, strict=True)]
    rates = [STRIP_PROBLEMS[name] for name, problem in problems.items() for _ in range(len(problem))]
    return {"strip": with_row_names(picture_grid(columns), rates)}


def _blocks(problems: dict[str, InverseProblem], samples: dict[str, torch.Tensor]) -> dict[str, Image.Image]:
    """Original, low resolution and sample of each image, in blocks of ROWS images side by side."""
    ((name, problem),) = problems.items()
    columns = comparison_columns(problem, samples[name])[:3]
    rows = min(ROWS, len(problem))
    blocks = zip(
        *([(name, _filled(part, rows)) for part in images.split(rows)] for name, images in columns), strict=True
    )
    return {"uncurated": picture_grid([column for block in blocks for column in block])}


def _filled(images: torch.Tensor, rows: int) -> torch.Tensor:
    """White below the last image of a block that is shorter than the others."""
    return torch.cat([images, images.new_ones(rows - len(images), *images.shape[1:])])


def describe(results: dict[str, Any]) -> str:
    first = results["rows"][0]
    columns = ["problem", "σ₀", "images", "samples dB", "mean dB"]
    note = ""
    if first["samples"] > 1:
        columns += ["gap dB", coverage_column(first["coverage_level"])]
        note = f"{on_gap_and_coverage(first['samples'])}\n\n"
    rows = [_cells(row) for row in results["rows"]]
    return setting(results) + note + table([*columns, *FAITHFULNESS_COLUMNS], rows) + _too_sure(results["rows"])


def _too_sure(rows: list[dict[str, Any]]) -> str:
    """Names the problems whose intervals hold clearly too few pixels."""
    named = [
        row["group"] + row["problem"]
        for row in rows
        if row["images"] > 1 and row["coverage"] and row["coverage"]["mean"] < row["coverage_level"] - CLEARLY
    ]
    return f"\nIntervals hold clearly too few pixels: {', '.join(named)}.\n" if named else ""


def _cells(row: dict[str, Any]) -> list[str]:
    """One sample has no mean, no gap and no interval."""
    cells = [row["group"] + row["problem"], f"{row['sigma_0']:g}", str(row["images"]), with_error(row["psnr_sample"])]
    several = [with_error(row["psnr_mean"]), with_error(row["gap"])]
    cells += [*several, percent(row["coverage"])] if row["samples"] > 1 else ["-"]
    return [*cells, *faithfulness_cells(row["faithfulness"])]


CELEBA_FIGURES = Experiment("Grids of samples on CelebA, all problems", prepare_celeba, describe, WITH_CALLS)
LSUN_FIGURES = Experiment("Grids of samples at 128 x 128, in place of LSUN", prepare_lsun, describe, WITH_CALLS)
STRIP = Experiment("Compressive sensing at 25, 12.5 and 6.25 %", prepare_strip, describe, WITH_CALLS)
UNCURATED = Experiment("Images that nobody chose, super-resolution by 2", prepare_uncurated, describe, WITH_CALLS)
