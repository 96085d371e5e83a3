"""Quality against calls of the denoiser on CelebA, and whether the intervals of the samples hold the truth.

PSNR and faithfulness are those of 8 samples, as in Table 1. The first images have 19 samples, for coverage: the
interval between the smallest and the largest holds the truth with probability 0.90 if samples and truth have the same
law. It is taken for pixels, and for three numbers that summarise an image. Algorithm 1 takes so long that it is run on
fewer images here; where the results of `table1` lie in the same folder, its quality is that of the more images there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from snips.experiments import datasets
from snips.experiments.base import ACTUAL, ALL_SAMPLERS, Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.markdown import (
    FAITHFULNESS_COLUMNS,
    compared,
    faithfulness_cells,
    percent,
    setting,
    table,
    with_error,
)
from snips.experiments.published import CELEBA_SAMPLES, SIGMA_CELEBA, TABLE_1
from snips.experiments.sampled import (
    Sampling,
    experiment_prior,
    grouped_rows,
    image_key,
    less,
    mean_and_error,
    sample_facts,
    simulated,
    weights_identity,
)
from snips.experiments.stored import commands_of, precision_of, stored_record, with_former
from snips.inverse_problem import InverseProblem
from snips.metrics.calibration import SUMMARIES, coverage, widest_level
from snips.priors import Prior
from snips.restoration import Restoration
from snips.results.storage import plain
from snips.samplers.base import OnStep

SAMPLES, COVERED_IMAGES = 19, 24
PIXELS = "pixels"
CALLS, QUICK_CALLS = (25, 50, 100), (8,)
TAKES = ("images", "prior", "precision", "sampler")
FULL_IMAGES, QUICK_IMAGES = 64, 1
SLOW_IMAGES = {"langevin": 4, ACTUAL: 2}


def samplings(request: Request) -> dict[str, tuple[Sampling, int]]:
    """What is compared, by name: how samples are drawn, and of how many images."""
    count = request.count(FULL_IMAGES, QUICK_IMAGES)
    fast, *slow = (replace(Sampling.of(request, sampler), samples=SAMPLES) for sampler in ALL_SAMPLERS)
    chosen = {f"fast {nfe}": (replace(fast, nfe=nfe), count) for nfe in (QUICK_CALLS if request.quick else CALLS)}
    for each in slow:
        chosen[f"{each.sampler} {each.preset.levels * each.preset.tau}"] = (each, min(count, SLOW_IMAGES[each.sampler]))
    return {name: value for name, value in chosen.items() if value[0].sampler in request.samplers}


def prepare(request: Request) -> Study:
    chosen, every = samplings(request), samplings(replace(request, samplers=ALL_SAMPLERS))
    command = request.command("calls")
    test = datasets.faces(request, max(count for _, count in chosen.values()))
    prior = experiment_prior(request, "faces", test.images)
    problems = {name: simulated(name, test.images, SIGMA_CELEBA, request.seed) for name in TABLE_1}
    identity = weights_identity(prior)
    settings = {"prior": identity, **replace(Sampling.of(request, "langevin"), samples=SAMPLES).settings()}

    def conclude(measured: list[Measured]) -> Outcome:
        found = [m.facts for m in measured]
        rows = [{**row, **_intervals(row, found)} for row in grouped_rows(found)]
        each = {"made_by": dict.fromkeys(chosen, command), "precision": dict.fromkeys(chosen, request.precision)}
        results = {"prior": identity, **test.facts(), "rows": rows, **each}
        results = with_former("calls", results, request.out / "calls" / "result.json", plain(settings), list(every))
        names, quality = results["names"][""], request.out / "table1" / "result.json"
        slow, precision = stored_langevin(quality, identity, settings["langevin"], names)
        results = {**results, "rows": results["rows"] + slow, "precision": results["precision"] | precision}
        return Outcome({**results, "rows": _beside_longest(results["rows"])}, command=commands_of(results))

    return Study(settings, list(_parts(chosen, problems, prior)), conclude)


def _parts(
    chosen: dict[str, tuple[Sampling, int]], problems: dict[str, InverseProblem], prior: Prior
) -> Iterator[Part]:
    """Image by image, so that a stopped run has something to say on every problem and sampler."""
    for image in range(max(count for _, count in chosen.values())):
        for name, problem in problems.items():
            for label, (sampling, count) in chosen.items():
                if image < count:
                    few = image >= COVERED_IMAGES
                    chosen_here = replace(sampling, samples=CELEBA_SAMPLES) if few else sampling
                    yield _part(name, problem[image], prior, label, chosen_here)


def _part(name: str, problem: InverseProblem, prior: Prior, label: str, sampling: Sampling) -> Part:
    assert problem.truth is not None, "experiments know the truth"
    key = f"{name}-{sampling.key(label.replace(' ', '-'))}-{image_key(problem.first_image, problem.truth[0])}"

    def compute(on_step: OnStep) -> Measured:
        result = sampling.restore(problem, prior, on_step)
        few = replace(result, samples=result.samples[:CELEBA_SAMPLES])
        inside = intervals(result) if len(result.samples) == SAMPLES else None
        return Measured({"problem": name, "group": "", "sampler": label, **sample_facts(few), "inside": inside})

    return Part(key, f"{name}, {label}, image {problem.first_image + 1}", compute)


def intervals(result: Restoration) -> dict[str, float]:
    """Shares of pixels and of summaries whose truth lies in the interval of all samples; pictures are clamped."""
    truth, clamped = result.problem.truth, result.samples.clamp(0, 1)
    assert truth is not None, "experiments know the truth"
    inside = {name: coverage(summary(clamped), summary(truth)).share for name, summary in SUMMARIES.items()}
    return {PIXELS: coverage(result.samples, truth).share, **inside}


def _intervals(row: dict[str, Any], found: list[dict[str, Any]]) -> dict[str, Any]:
    mine = [f["inside"] for f in found if (f["sampler"], f["problem"]) == (row["sampler"], row["problem"])]
    tested = [inside for inside in mine if inside is not None]
    each = {name: [inside[name] for inside in tested] for name in (PIXELS, *SUMMARIES)}
    shares = {name: mean_and_error(found) for name, found in each.items()}
    return {"covered_images": len(tested), "inside": shares, "inside_of_each_image": each}


def _beside_longest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of Algorithm 1 with what they have more or less than `fast` with the most calls, on the same images."""
    longest = {row["problem"]: row for row in rows if row["sampler"].startswith("fast")}
    return [
        row
        if row["sampler"].startswith("fast") or row["problem"] not in longest
        else {**row, "less": less(row, longest[row["problem"]])}
        for row in rows
    ]


def stored_langevin(
    result: Path, prior: dict[str, str], langevin: dict[str, Any], names: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Algorithm 1 in Table 1 with the same prior, steps, seed and images, and the precision that its samplers had.

    It has too few samples for intervals.
    """
    if not result.is_file():
        return [], {}
    bare = {"covered_images": 0, "inside": {}, "stored_by": "table1"}
    with stored_record(result, "table1") as record:
        results, chosen = record["results"], {**record["settings"]["langevin"], "samples": langevin["samples"]}
        if (results["prior"], chosen) != (prior, langevin):
            return [], {}
        slow = [row for row in results["rows"] if row["sampler"] != "fast" and row["problem"] in TABLE_1]
        theirs = results["names"][""]
        found = [{**row, **bare} for row in slow if list(names[: row["images"]]) == theirs[: row["images"]]]
        return found, {row["sampler"]: precision_of(results, row["sampler"]) for row in found}


def describe(results: dict[str, Any]) -> str:
    rows = sorted(
        one_for_algorithm_1(results["rows"], results.get("precision", {})),
        key=lambda row: list(TABLE_1).index(row["problem"]),
    )
    columns = ["problem", "sampler", "images", "samples dB", "mean dB", *FAITHFULNESS_COLUMNS]
    columns += ["of these with intervals", f"{PIXELS} inside (exact: {100 * widest_level(SAMPLES):.0f} %)"]
    columns += [f"{name} inside" for name in SUMMARIES]
    borrowed = any(row.get("stored_by") for row in rows)
    note = "\nPSNR and residuals of Algorithm 1 are those of `table1`.\n" if borrowed else ""
    quality = table(columns, [_cells(row) for row in rows]) + note + compared(rows)
    return setting(results) + quality + _over_problems(results["rows"])


def one_for_algorithm_1(rows: list[dict[str, Any]], precision: dict[str, str]) -> list[dict[str, Any]]:
    """Its quality on the images of `table1` and its intervals on the first of these, in one row instead of two.

    Two they stay where the network's precision was not the same.
    """
    stored = {(row["sampler"], row["problem"]): row for row in rows if row.get("stored_by")}
    joined = []
    for row in rows:
        if row.get("stored_by"):
            continue
        more = stored.pop((row["sampler"].split()[0], row["problem"]), None)
        mine = {name: row[name] for name in ("sampler", "covered_images", "inside")}
        if more is not None and precision.get(more["sampler"]) != precision.get(row["sampler"]):
            joined += [row, more]
        else:
            joined.append(row if more is None or more["images"] < row["images"] else {**more, **mine})
    return joined + list(stored.values())


def _over_problems(rows: list[dict[str, Any]]) -> str:
    """Coverage of each sampler over all problems. Their images are the same, so errors are those between images."""
    cells = []
    for sampler in dict.fromkeys(row["sampler"] for row in rows if row.get("inside_of_each_image")):
        found = [row["inside_of_each_image"] for row in rows if row["sampler"] == sampler]
        images = {name: zip(*(each[name] for each in found), strict=True) for name in (PIXELS, *SUMMARIES)}
        shares = [percent(mean_and_error([fmean(image) for image in images[name]])) for name in images]
        cells.append([sampler, str(len(found[0][PIXELS])), *shares])
    if not cells:
        return ""
    head = f"\nInside intervals that should hold {100 * widest_level(SAMPLES):.0f} %, over all problems:\n\n"
    return head + table(["sampler", "images", PIXELS, *SUMMARIES], cells)


def _cells(row: dict[str, Any]) -> list[str]:
    cells = [row["problem"], row["sampler"], str(row["images"])]
    cells += [with_error(row["psnr_sample"]), with_error(row["psnr_mean"]), *faithfulness_cells(row["faithfulness"])]
    count = row["covered_images"]
    if not count:
        return [*cells, *["-"] * (2 + len(SUMMARIES))]
    each = [
        f"{round(row['inside'][name]['mean'] * count)} of {count}" for name in SUMMARIES
    ]  # an image has one of each
    return [*cells, str(count), percent(row["inside"][PIXELS]), *each]


CALLS_AND_COVERAGE = Experiment(
    "Quality against calls, and coverage of the samples' intervals", prepare, describe, TAKES
)
