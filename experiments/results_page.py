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
from pathlib import Path

from prior_or_sampler import reasons
from snips.experiments import EXPERIMENTS
from snips.samplers.multistep import STEPS_VERSION

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "experiments" / "results", ROOT / "docs" / "results.md"
BUNDLED = "bundled"  # the folder of results on pictures that may be shown
PICTURES = PAGE.parent / "images" / "results"
INTRODUCTION = """# Results

The paper's experiments, beside its numbers (Kawar, Vaksman, Elad: SNIPS, NeurIPS 2021). This page is written by
`python experiments/results_page.py` from the stored results; under each heading stand the file and the command that
made it, to be run with `--out experiments/results`.

FOLDER holds the collections: `celeba/img_align_celeba` with `celeba/list_eval_partition.txt`, `scenes/test` and
`bedrooms`. LSUN is not used: outdoor scenes stand in for its towers, and other bedrooms for its own.
"""

WITHOUT_FAST = ("ablation", "red_sweep")
FORMER = "\nMeasured with former steps of `fast`, see the [trials](fast_sampler_trials.md).\n"

PROBLEMS = {
    "deblur_uniform": "Uniform blur of 5 x 5",
    "sr2": "Super-resolution by 2",
    "sr4": "Super-resolution by 4",
    "cs4": "Compressive sensing at 25 %",
    "cs8": "Compressive sensing at 12.5 %",
    "cs16": "Compressive sensing at 6.25 %",
}
CAPTIONS = {  # of experiments with one picture
    "red": "A row for each noise level: original, blurred, a sample, the mean of the samples, RED with the paper's "
    "parameters for pixels in 0 .. 1 and in 0 .. 255, and the blurred picture with the true luminance",
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
    former = FORMER if outdated(name, record) else ""
    return f"## {EXPERIMENTS[name].summary}\n\n{made}\n{former}\n{text}{gallery(name, bundled)}"


def outdated(name: str, record: dict) -> bool:
    """Whether figures of `fast` are those of other steps than it has now."""
    steps = record["results"].get("steps") or record["versions"].get("steps of fast")
    return name not in WITHOUT_FAST and steps != STEPS_VERSION


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
    """Beside the page, where a site can show them. A clone has only those there, not the ones they were copied from."""
    for file in (results / BUNDLED).glob("*/result.json"):
        record = json.loads(file.read_text())
        for name in pictures(record):
            drawn, shown = file.parent / f"{name}.png", PICTURES / f"{record['experiment']}_{name}.png"
            if drawn.is_file():
                PICTURES.mkdir(parents=True, exist_ok=True)
                shutil.copy(drawn, shown)
            elif not shown.is_file():
                sys.exit(f"{drawn} is missing: run {record['command']} --out {file.parents[1]}")


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
