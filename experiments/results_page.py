"""Write docs/results.md from the stored results of `snips experiment`, so that every figure in it has a JSON file.

    python experiments/results_page.py [--check]

Stored results are experiments/results/NAME/result.json, made by `snips experiment NAME --out experiments/results`.
Pictures are shown only where the test images may be published: those of the same experiment with `--bundled --out
experiments/results/bundled`. `--check` writes nothing and fails if the page is not what the stored results give.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snips.experiments import EXPERIMENTS

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "experiments" / "results", ROOT / "docs" / "results.md"
BENCHMARKS = ROOT / "benchmarks" / "results"
BUNDLED = "bundled"  # the folder of results on pictures that may be shown
PICTURES = PAGE.parent / "images" / "results"
INTRODUCTION = """# Results

The paper's experiments, beside its numbers (Kawar, Vaksman, Elad: SNIPS, NeurIPS 2021). This page is written by
`python experiments/results_page.py` from the stored results; under each heading stand the file and the command that
made it, to be run with `--out experiments/results`.

FOLDER holds the collections: `celeba/img_align_celeba` with `celeba/list_eval_partition.txt`, `scenes/test` and
`bedrooms`. LSUN is not used: outdoor scenes stand in for its towers, and other bedrooms for its own.
"""

PROBLEMS = {
    "deblur_uniform": "Uniform blur of 5 x 5",
    "sr2": "Super-resolution by 2",
    "sr4": "Super-resolution by 4",
    "cs4": "Compressive sensing at 25 %",
    "cs8": "Compressive sensing at 12.5 %",
    "cs16": "Compressive sensing at 6.25 %",
}
CAPTIONS = {  # of experiments with one picture
    "red": "A row for each noise level: original, blurred, a sample, the mean of the samples, RED with each choice of "
    "its parameters, and the blurred picture with the true luminance",
    "ablation": "Original, blurred, and the last state with the paper's step sizes and with uniform ones",
    "strip": "A row for each rate of compressive sensing: original, the least-norm image that fits the measurement, a "
    "sample, the mean of the samples, and their standard deviation four times brighter",
    "uncurated": "Original, low resolution, and one sample",
}


def page(results: Path) -> str:
    """The whole page; experiments without stored results are left out, and named at the end."""
    stored = {name: results / name / "result.json" for name in EXPERIMENTS}
    present = {name: file for name, file in stored.items() if file.is_file()}
    shown = {name: results / BUNDLED / name / "result.json" for name in present}
    sections = [INTRODUCTION]
    for name, file in present.items():
        sections.append(section(name, file, shown[name]))
        if name == "table1":
            sections.append(reasons(json.loads(file.read_text())["results"]))
    missing = [f"`{name}`" for name in EXPERIMENTS if name not in present]
    if missing:
        sections.append(f"Not run yet: {', '.join(missing)}.\n")
    return "\n".join(sections)


def section(name: str, file: Path, bundled: Path) -> str:
    record = json.loads(file.read_text())
    made = f"`{file.relative_to(file.parents[3])}`, made by `{record['command']}` ({record['machine']})."
    text = EXPERIMENTS[name].describe(record["results"])
    return f"## {EXPERIMENTS[name].summary}\n\n{made}\n\n{text}{gallery(name, bundled)}"


APART = ("face_mixture", "own_truths", "one_call", "message_passing")  # benchmarks that tell prior and sampler apart
SURE = 2.0  # standard errors


def reasons(table1: dict[str, Any]) -> str:
    """Below Table 1: by the benchmarks that tell them apart, whether prior or sampler limits its figures."""
    records = {name: _stored(name) for name in APART}
    head = "### Prior or sampler?\n\n"
    missing = [f"`python benchmarks/{name}.py`" for name, record in records.items() if record is None]
    if missing:
        return f"{head}Not measured yet: {', '.join(missing)}.\n"
    mixture, own, one_call, passing = (record["results"] for record in records.values() if record is not None)
    others = [name for name, r in records.items() if r and r.get("weights", _digest(table1)) != _digest(table1)]
    doubt = f"Measured with other weights: {', '.join(others)}.\n\n" if others else ""
    return f"""{head}{doubt}{_with_an_exact_prior(mixture)}
{_with_its_own_truths(own)}
{_beside_one_call(one_call)}
{_without_the_sampler(passing)}
{_verdict(table1, mixture, own, passing)}"""


def _with_an_exact_prior(rows: list[dict[str, Any]]) -> str:
    worst = min(_longest(rows), key=lambda row: row["samples_difference"])
    furthest = max(abs(row[f"{key}_difference"]) for row in rows for key in ("samples", "mean"))
    calls = worst["sampler"].split()[1]
    losses = [f"{worst[f'{key}_difference']:+.2f} ± {worst[f'{key}_error']:.2f} dB" for key in ("samples", "mean")]
    return f"""- **A prior that is known exactly**, a Gaussian mixture of grey faces of 32 x 32: from 25 calls on, the
  PSNR of `fast` is within {furthest:.2f} dB of that of exact sampling for all five problems. With {calls} calls
  it loses most for {worst["problem"]}: {losses[0]} for samples, {losses[1]} for their mean
  ([figures](measurements.md#psnr-with-an-exact-prior-of-faces))."""


def _with_its_own_truths(rows: list[dict[str, Any]]) -> str:
    own, real = ([row for row in rows if row["truths"] == source] for source in ("the prior's own", "CelebA"))
    ratios, held = ([_range(row[key] for row in mine) for mine in (own, real)] for key in ("ratio", "coverage"))
    return f"""- **The network as the exact prior**: for truths drawn from it, the variance of samples is {ratios[0]}
  times the squared error of their mean (1 is exact; further than {SURE:g} standard errors from it:
  {len(_unfair(rows))} of {len(own)} problems), and 90 % intervals hold {held[0]} of the true pixels. For faces of
  CelebA the same sampler has {ratios[1]} and {held[1]}
  ([figures](measurements.md#truths-of-the-prior-itself))."""


def _beside_one_call(rows: list[dict[str, Any]]) -> str:
    exact, network = ([row for row in rows if (row["prior"] == "faces") is real] for real in (False, True))
    fair, errors = (_range(row[key] for row in network) for key in ("self", "error"))
    return f"""- **Denoising, where one call tells what is right**: D(y) is the posterior mean, and its derivative
  gives the variance. With an exact prior, samples have {_variances(exact)}: corrections are exact for
  Gaussian priors only. With the network they have {_variances(network)}, although its
  derivative is fair ({fair} times the squared error of D): its answers at one noise level do not quite fit those at
  others. The mean of the samples has {errors} times the squared error of D
  ([figures](measurements.md#denoising-by-samples-and-by-one-call))."""


def _variances(rows: list[dict[str, Any]]) -> str:
    """Variance of samples over that of one call, for each number of calls."""
    each = {calls: _range(row["variance"] for row in rows if row["calls"] == calls) for calls in _calls(rows)}
    return " and ".join(f"{found} times that variance with {calls} calls" for calls, found in each.items())


def _calls(rows: list[dict[str, Any]]) -> list[int]:
    return sorted({row["calls"] for row in rows})


def _without_the_sampler(rows: list[dict[str, Any]]) -> str:
    beside = ", ".join(
        f"{row['message_passing']:.2f} and {row['mean_of_infinitely_many']:.2f} dB for {row['problem']}" for row in rows
    )
    return f"""- **The network without the sampler**: message passing, which draws no samples, and the mean of
  infinitely many samples have {beside} ([figures](measurements.md#prior-or-sampler)).
"""


def _verdict(
    table1: dict[str, Any], mixture: list[dict[str, Any]], own: list[dict[str, Any]], passing: list[dict[str, Any]]
) -> str:
    """What of the distance to the paper's figures can be the sampler's."""
    judged = [row for row in table1["rows"] if row["sampler"] == "fast" and row["difference"]]
    below = max(-row["difference"][key]["mean"] for row in judged for key in ("psnr_sample", "psnr_mean"))
    if below <= 0:
        return "No figure of `fast` is below the paper's.\n"
    lost = max(-row[f"{key}_difference"] for row in _longest(mixture) for key in ("samples", "mean"))
    more = max(row["message_passing"] - row["mean_of_infinitely_many"] for row in passing)
    unfair = _unfair(own)
    way = {True: "too little", False: "too much"}
    doubt = "".join(
        f" Samples of {', '.join(names)} scatter {way[narrow]}, which PSNR hardly sees."
        for narrow in way
        if (names := [name for name, ratio in unfair.items() if (ratio < 1) is narrow])
    )
    return f"""The figures of `fast` are up to {below:.2f} dB below the paper's. With an exact denoiser the sampler
loses at most {max(lost, 0):.2f} dB. With the network, [settings of the sampler](fast_sampler_trials.md) move faces
by a few tenths of a decibel, and an estimate without it is at most {max(more, 0):.2f} dB better. So most of the
distance is the prior's, or that of the choice of images.{doubt}
"""


def _longest(mixture: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of `fast` with the most calls, as in Table 1."""
    calls = max(int(row["sampler"].split()[1]) for row in mixture if row["sampler"] != "exact")
    return [row for row in mixture if row["sampler"] == f"fast {calls}"]


def _unfair(own: list[dict[str, Any]]) -> dict[str, float]:
    """Problems whose samples surely scatter too much or too little for truths of the prior itself, with their ratio."""
    mine = [row for row in own if row["truths"] == "the prior's own"]
    return {row["problem"]: row["ratio"] for row in mine if abs(row["ratio"] - 1) > SURE * row["ratio_error"]}


def _digest(table1: dict[str, Any]) -> str:
    return table1["prior"]["sha256"]


def _stored(name: str) -> dict[str, Any] | None:
    """What a benchmark stored; None where it was not run."""
    file = BENCHMARKS / f"{name}.json"
    return json.loads(file.read_text()) if file.is_file() else None


def _range(values: Iterable[float]) -> str:
    found = sorted(values)
    return f"{found[0]:.2f} to {found[-1]:.2f}"


def gallery(name: str, file: Path) -> str:
    """The pictures of the same experiment on images that may be shown, if it was run on them."""
    if not file.is_file():
        return ""
    record = json.loads(file.read_text())
    captions = {picture: caption(name, picture) for picture in pictures(record)}
    shown = "".join(f"\n{words}:\n\n![{words}](images/results/{name}_{p}.png)\n" for p, words in captions.items())
    made = f"\nOn {record['results']['source']}, made by `{record['command']} --out experiments/results/{BUNDLED}`:\n"
    return made + shown


def caption(experiment: str, picture: str) -> str:
    """What a picture shows, column by column."""
    if experiment in CAPTIONS:
        return CAPTIONS[experiment]
    problem = next(name for name in PROBLEMS if picture.endswith(name))
    group = picture.removesuffix(problem).removesuffix("_")
    seen = "the least-norm image that fits the measurement" if problem.startswith("cs") else "the measurement"
    what = PROBLEMS[problem] + (f", {group}" if group else "")
    return f"{what}: original, {seen}, samples, their mean, and their standard deviation four times brighter"


def pictures(record: dict) -> list[str]:
    """The names of the pictures that may be shown."""
    return record["pictures"] if record["results"].get("publishable") else []


def copy_pictures(results: Path) -> None:
    """Beside the page, where a site can show them."""
    for file in (results / BUNDLED).glob("*/result.json"):
        record = json.loads(file.read_text())
        for name in pictures(record):
            PICTURES.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.parent / f"{name}.png", PICTURES / f"{record['experiment']}_{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare")
    text = page(RESULTS)
    if parser.parse_args().check:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/results.md is not what the stored results give: run python experiments/results_page.py")
        return
    copy_pictures(RESULTS)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
