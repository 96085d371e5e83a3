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

FOLDER holds the collections: `celeba/img_align_celeba` with `celeba/list_eval_partition.txt`, `scenes/test`,
`bedrooms` and `bsds500/test`. LSUN is not used: outdoor scenes stand in for its towers, and other bedrooms for its own.
"""


def page(results: Path) -> str:
    """The whole page; experiments without stored results are left out, and named at the end."""
    stored = {name: results / name / "result.json" for name in EXPERIMENTS}
    present = {name: file for name, file in stored.items() if file.is_file()}
    shown = {name: results / BUNDLED / name / "result.json" for name in present}
    sections = [INTRODUCTION]
    for name, file in present.items():
        sections += [section(name, file, shown[name]), *([reasons()] if name == "table1" else [])]
    missing = [f"`{name}`" for name in EXPERIMENTS if name not in present]
    if missing:
        sections.append(f"Not run yet: {', '.join(missing)}.\n")
    return "\n".join(sections)


def section(name: str, file: Path, bundled: Path) -> str:
    record = json.loads(file.read_text())
    made = f"`{file.relative_to(file.parents[3])}`, made by `{record['command']}` ({record['machine']})."
    text = EXPERIMENTS[name].describe(record["results"])
    return f"## {EXPERIMENTS[name].summary}\n\n{made}\n\n{text}{gallery(name, bundled)}"


def reasons() -> str:
    """Below Table 1: by the benchmarks that tell them apart, whether prior or sampler limits its figures."""
    mixture, own, passing = (_stored(name) for name in ("face_mixture", "own_truths", "message_passing"))
    if not (mixture and own and passing):
        return ""
    furthest = max(abs(row[f"{key}_difference"]) for row in mixture for key in ("samples", "mean"))
    of = {source: [row for row in own if row["truths"] == source] for source in ("the prior's own", "CelebA")}
    ratio, held = (
        {name: _range(row[key] for row in rows) for name, rows in of.items()} for key in ("ratio", "coverage")
    )
    beside = ", ".join(
        f"{row['message_passing']:.2f} and {row['mean_of_infinitely_many']:.2f} dB for {row['problem']}"
        for row in passing
    )
    return f"""### Prior or sampler?

Three tests tell whose fault a missing decibel is.

- **A prior that is known exactly**, a Gaussian mixture of faces: the PSNR of `fast` is within {furthest:.2f} dB of
  that of exact sampling, for all five problems and from 25 calls on
  ([figures](measurements.md#psnr-with-an-exact-prior-of-faces)).
- **The network as the exact prior**: for truths drawn from it, samples scatter as they should. Their variance is
  {ratio["the prior's own"]} times the squared error of their mean (1 is exact), and 90 % intervals hold
  {held["the prior's own"]} of the true pixels. For faces of CelebA the same sampler has {ratio["CelebA"]} and
  {held["CelebA"]} ([figures](measurements.md#truths-of-the-prior-itself)).
- **The network without the sampler**: message passing, which draws no samples, and the mean of infinitely many samples
  have {beside} ([figures](measurements.md#prior-or-sampler)).
"""


def _stored(name: str) -> list[dict]:
    """The rows of a benchmark; none where it was not run."""
    file = BENCHMARKS / f"{name}.json"
    return json.loads(file.read_text())["results"] if file.is_file() else []


def _range(values: Iterable[float]) -> str:
    found = sorted(values)
    return f"{found[0]:.2f} to {found[-1]:.2f}"


def gallery(name: str, file: Path) -> str:
    """The pictures of the same experiment on images that may be shown, if it was run on them."""
    if not file.is_file():
        return ""
    record = json.loads(file.read_text())
    shown = "".join(f"\n{p}:\n\n![{name} {p}](images/results/{name}_{p}.png)\n" for p in pictures(record))
    made = f"\nOn {record['results']['source']}, made by `{record['command']} --out experiments/results/{BUNDLED}`:\n"
    return made + shown


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
