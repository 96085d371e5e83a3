"""The pictures and figures of docs/problems/: each problem on the bundled example, with the bundled `faces` prior.

    python docs/figures/problems.py [NAME ...]

Writes docs/images/problems/NAME.webp, docs/figures/problems.json and the table docs/figures/problems_table.md.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from drawing import IMAGES, VALUES, named_std_map, save_values
from PIL import Image

import snips
from snips.images import example_image
from snips.report import comparison_columns, picture_grid

SAMPLES, CALLS = 4, 100
COMMAND = "python docs/figures/problems.py"


def hole() -> torch.Tensor:
    """A bar over the eyes is hidden."""
    seen = torch.ones(64, 64, dtype=torch.bool)
    seen[20:36, 14:50] = False
    return seen


def diagonal_kernel() -> torch.Tensor:
    """A crooked path of a camera, 7 x 7."""
    kernel = torch.zeros(7, 7)
    kernel[[0, 1, 2, 3, 3, 4, 5, 6], [1, 1, 2, 3, 4, 5, 5, 4]] = 1.0
    return kernel / kernel.sum()


def random_sums() -> torch.Tensor:
    """One measurement for every eight pixels: sums with random signs, the same for each channel."""
    return torch.randn(512, 4096, generator=torch.Generator().manual_seed(0)).sign() / 64


# name of the picture: problem, sigma_0, options
CASES: dict[str, tuple[str, float, dict[str, Any]]] = {
    "denoise": ("denoise", 0.2, {}),
    "inpaint": ("inpaint", 0.02, {}),
    "inpaint_hole": ("inpaint", 0.02, {"mask": hole()}),
    "deblur_uniform": ("deblur_uniform", 0.1, {}),
    "deblur_gauss": ("deblur_gauss", 0.05, {"std": 1.5, "width": 9}),
    "deblur_motion": ("deblur_motion", 0.02, {}),
    "deblur_kernel": ("deblur_kernel", 0.02, {"kernel": diagonal_kernel()}),
    "sr2": ("sr2", 0.05, {}),
    "sr4": ("sr4", 0.05, {}),
    "sr": ("sr", 0.05, {"factor": 4, "method": "bicubic"}),
    "cs4": ("cs4", 0.05, {}),
    "cs8": ("cs8", 0.05, {}),
    "cs16": ("cs16", 0.05, {}),
    "colorize": ("colorize", 0.02, {}),
    "mri": ("mri", 0.05, {}),
    "matrix": ("matrix", 0.05, {"matrix": random_sums()}),
}


def run(name: str) -> dict[str, Any]:
    """Restore, draw the picture, and return the figures."""
    problem_name, sigma_0, options = CASES[name]
    x = example_image()
    operator = snips.make_operator(problem_name, x.shape[1:], **options)
    problem = snips.InverseProblem.simulate(operator, x, sigma_0, seed=0)
    result = snips.restore(problem, snips.load_prior("faces"), samples=SAMPLES, nfe=CALLS, seed=0)
    path = IMAGES / "problems" / f"{name}.webp"
    path.parent.mkdir(parents=True, exist_ok=True)
    one_row(result).save(path, quality=80, method=6)
    return {"problem": problem_name, "sigma_0": sigma_0, **figures(result)}


def one_row(result: snips.Restoration) -> Image.Image:
    *columns, _ = comparison_columns(result.problem, result.samples)
    row = picture_grid(columns)
    spread = named_std_map(result, row.height)
    picture = Image.new("RGB", (row.width + spread.width, row.height), "white")
    picture.paste(row, (0, 0))
    picture.paste(spread, (row.width, 0))
    return picture


def figures(result: snips.Restoration) -> dict[str, Any]:
    scores, verdict = result.psnr(), result.faithfulness()
    assert scores is not None
    assert verdict.faithful is not None
    return {
        "psnr_samples": round(float(scores[0].mean()), 2),
        "psnr_mean": round(float(scores[1].mean()), 2),
        "mean_std": round(float(result.std.mean()), 4),
        "faithful": int(verdict.faithful.sum()),
        "samples": SAMPLES,
        "nfe": CALLS,
    }


def table(results: dict[str, dict[str, Any]]) -> str:
    """For docs/problems/index.md."""
    head = "| case | problem | sigma_0 | PSNR of a sample | PSNR of the mean | mean std | faithful |\n"
    rows = [
        f"| {name} | `{row['problem']}` | {row['sigma_0']} | {row['psnr_samples']:.2f} dB | {row['psnr_mean']:.2f} dB "
        f"| {row['mean_std']:.3f} | {row['faithful']} of {row['samples']} |\n"
        for name, row in results.items()
    ]
    return head + "|---|---|---|---|---|---|---|\n" + "".join(rows)


def main(names: list[str]) -> None:
    stored = VALUES / "problems.json"
    known = json.loads(stored.read_text())["results"] if stored.is_file() else {}
    for name in names or CASES:
        known[name] = run(name)
        print(name, known[name], flush=True)
        results = {case: known[case] for case in CASES if case in known}
        save_values("problems", COMMAND, results, prior="faces")
        (VALUES / "problems_table.md").write_text(table(results), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
