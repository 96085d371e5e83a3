"""Quality at equal calls on held-out faces: `fast` with 25, 50 and 100 calls beside Algorithm 1 with 2,500.

    python experiments/sampling.py --data FOLDER
    python experiments/sampling.py --data FOLDER --images 2 --langevin-images 0 --problems sr4 cs4
    python experiments/sampling.py --data FOLDER --show

For each image of CelebA's test split: PSNR of the samples and of their mean, how many samples are faithful to y, and
how many pixels lie in the central interval of 19 samples, whose level is exactly 0.90 if truth and samples have the
same law. Each image is stored as it is done, and a run goes on where an earlier one with the same weights stopped. On
one core an image takes about 70 seconds for `fast` in all and 17 minutes for `langevin`, for each problem.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from datasets import celeba_test
from snips import InverseProblem, Prior, Restoration, load_prior, make_operator, restore
from snips.allocator import keep_freed_memory
from snips.metrics import calibration

RESULTS = Path(__file__).parent / "results"
PROBLEMS = ("sr4", "sr2", "deblur_uniform", "cs4", "cs8")
SAMPLERS: dict[str, dict[str, Any]] = {
    "fast 25": {"nfe": 25},
    "fast 50": {"nfe": 50},
    "fast 100": {"nfe": 100},
    "langevin 2500": {"sampler": "langevin"},
}
SIGMA_0, SAMPLES = 0.1, 19


@dataclass(frozen=True)
class Task:
    """One row of results: what is measured, and with which weights."""

    sampler: str
    problem: str
    image: int
    weights: str


def fingerprint(prior: Prior) -> str:
    """Which weights: results of different ones must not be mixed."""
    digest = hashlib.sha256()
    for name, tensor in sorted(prior.state_dict().items()):
        digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def tasks(problems: list[str], images: int, langevin_images: int, weights: str) -> Iterator[Task]:
    """Image by image, so that an interrupted run has something to say on every problem and sampler."""
    for image in range(max(images, langevin_images)):
        for problem in problems:
            for sampler in SAMPLERS:
                if image < (langevin_images if sampler.startswith("langevin") else images):
                    yield Task(sampler, problem, image, weights)


def measure(task: Task, prior: Prior, truth: Tensor) -> dict[str, Any]:
    """Scores of SAMPLES samples of one image (1, 3, 64, 64)."""
    problem = InverseProblem.simulate(make_operator(task.problem, tuple(truth.shape[1:])), truth, SIGMA_0, task.image)
    return scores(restore(problem, prior, samples=SAMPLES, seed=task.image, **SAMPLERS[task.sampler]), truth)


def scores(result: Restoration, truth: Tensor) -> dict[str, Any]:
    psnr, faithful, clamped = result.psnr(), result.faithfulness(), result.samples.clamp(0, 1)
    assert psnr is not None
    assert faithful.faithful is not None
    assert faithful.std_ratio is not None
    pixels = calibration.coverage(result.samples, truth)
    return {
        "sample_psnr": float(psnr[0].mean()),
        "mean_psnr": float(psnr[1].mean()),
        "faithful": float(faithful.faithful.double().mean()),
        "residual": float(faithful.std_ratio.mean()),
        "level": pixels.level,
        "coverage": pixels.share,
        **{
            f"{name}_inside": calibration.coverage(summary(clamped), summary(truth)).share
            for name, summary in calibration.SUMMARIES.items()
        },
        "seconds": result.settings["seconds"],
    }


def read_rows(file: Path) -> list[dict[str, Any]]:
    """All stored rows; a last line that an interruption cut off is left out."""
    rows = []
    for line in file.read_text().splitlines() if file.is_file() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def append(file: Path, row: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as stream:
        stream.write(json.dumps(row) + "\n")


def run(todo: list[Task], prior: Prior, faces: Tensor, file: Path) -> None:
    names = list(Task.__dataclass_fields__)
    done = {Task(**{name: row[name] for name in names}) for row in read_rows(file)}
    for task in todo:
        if task not in done:
            row = {**asdict(task), **measure(task, prior, faces[task.image : task.image + 1])}
            append(file, row)
            print(*(f"{value:.3f}" if isinstance(value, float) else value for value in row.values()), flush=True)


COLUMNS = {  # title: key, digits
    "sample PSNR": ("sample_psnr", 2),
    "mean PSNR": ("mean_psnr", 2),
    "faithful": ("faithful", 2),
    "residual / sigma_0": ("residual", 3),
    "90 % coverage": ("coverage", 3),
    **{f"{name} inside": (f"{name}_inside", 2) for name in calibration.SUMMARIES},
}


def show(rows: list[dict[str, Any]]) -> None:
    """Means over the images, with standard errors where there are at least two."""
    table = Table("problem", "sampler", "images", *COLUMNS, title=f"CelebA test faces, sigma_0 = {SIGMA_0}")
    for problem, sampler in dict.fromkeys((row["problem"], row["sampler"]) for row in rows):
        mine = [row for row in rows if (row["problem"], row["sampler"]) == (problem, sampler)]
        cells = [summary([row[key] for row in mine], digits) for key, digits in COLUMNS.values()]
        table.add_row(problem, sampler, str(len(mine)), *cells)
    Console(width=170).print(table)


def summary(values: list[float], digits: int) -> str:
    numbers = torch.tensor(values, dtype=torch.float64)
    error = f" ± {numbers.std() / len(values) ** 0.5:.{digits}f}" if len(values) > 1 else ""
    return f"{numbers.mean():.{digits}f}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the image collections")
    parser.add_argument("--prior", default="faces", help="a file of weights instead of the bundled ones")
    parser.add_argument("--images", type=int, default=64, help="for fast")
    parser.add_argument("--langevin-images", type=int, default=8)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--rows", type=Path, default=RESULTS / "sampling.jsonl", help="where results are kept")
    parser.add_argument("--show", action="store_true", help="only the table of what is stored")
    args = parser.parse_args()
    keep_freed_memory()
    try:
        prior = load_prior(args.prior)
        weights = fingerprint(prior)
        if not args.show:
            if args.data is None:
                raise ValueError("give the folder of the image collections with --data")
            todo = list(tasks(args.problems, args.images, args.langevin_images, weights))
            run(todo, prior, celeba_test(args.data, max(args.images, args.langevin_images)), args.rows)
        show([row for row in read_rows(args.rows) if row["weights"] == weights])
    except (ValueError, OSError) as error:
        sys.exit(f"sampling: {error}")


if __name__ == "__main__":
    main()
