"""The picture on the first page, docs/images/demo.png, in two rows: `python docs/figures/demo.py`.

It shows the restoration that `make demo` computes.
"""

from __future__ import annotations

from drawing import IMAGES, named_std_map, save_values
from PIL import Image

import snips
from snips.images import example_image
from snips.report import comparison_columns, picture_grid

CALLS = 50


def main() -> None:
    x = example_image()
    problem = snips.InverseProblem.simulate(snips.make_operator("deblur_uniform", x.shape[1:]), x, 0.1, seed=0)
    result = snips.restore(problem, snips.load_prior("faces"), nfe=CALLS)
    two_rows(result).save(IMAGES / "demo.png", optimize=True)
    scores = result.psnr()
    assert scores is not None
    figures = {"psnr_samples": round(float(scores[0].mean()), 2), "psnr_mean": round(float(scores[1].mean()), 2)}
    save_values("demo", "python docs/figures/demo.py", figures, prior="faces")


def two_rows(result: snips.Restoration) -> Image.Image:
    *columns, _ = comparison_columns(result.problem, result.samples)
    half = len(columns) // 2 + 1
    rows = [picture_grid(columns[:half]), picture_grid(columns[half:])]
    spread = named_std_map(result, rows[1].height)
    width = max(rows[0].width, rows[1].width + spread.width)
    picture = Image.new("RGB", (width, sum(row.height for row in rows)), "white")
    picture.paste(rows[0], (0, 0))
    picture.paste(rows[1], (0, rows[0].height))
    picture.paste(spread, (rows[1].width, rows[0].height))
    return picture


if __name__ == "__main__":
    main()
