"""Pictures of what exactness.py measured, for the documentation."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib import pyplot
from scipy import stats

from exact_priors import FIVE
from measure import RESULTS
from snips.metrics import calibration

matplotlib.use("Agg")
PICTURES = RESULTS.parents[1] / "docs" / "images"


def plot(rows: list[dict]) -> None:
    """Distance against calls, one curve for each sampler and noise level, averaged over the five problems."""
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for sampler, sigma_0 in dict.fromkeys((row["sampler"], row["sigma_0"]) for row in rows if row["calls"]):
        mine = [
            row for row in rows if (row["sampler"], row["sigma_0"]) == (sampler, sigma_0) and row["problem"] in FIVE
        ]
        calls = sorted({row["calls"] for row in mine})
        means = [np.mean([row["ratio"] for row in mine if row["calls"] == n]) for n in calls]
        axes.loglog(calls, means, "o-", label=f"{sampler}, sigma_0 = {sigma_0}")
    axes.axhline(1, color="black", linewidth=0.8, label="exact samples")
    all_calls = sorted({row["calls"] for row in rows if row["calls"]})
    axes.set_xticks(all_calls, labels=[f"{n:,}" for n in all_calls])
    axes.set_yticks([1, 1.5, 2, 3, 5, 10], labels=["1", "1.5", "2", "3", "5", "10"])
    axes.minorticks_off()
    axes.set_xlabel("calls of the denoiser for each sample")
    axes.set_ylabel("distance to the exact posterior / distance of exact sets")
    axes.legend()
    figure.savefig(PICTURES / "exactness.png", dpi=110, bbox_inches="tight")
    pyplot.close(figure)


def plot_ranks(rows: list[dict]) -> None:
    """Rank histograms, a column for each problem; the band holds 99 % of the counts of uniform ranks."""
    figure, grid = pyplot.subplots(
        len(calibration.SUMMARIES), len(rows), figsize=(14, 5), sharex=True, sharey=True, squeeze=False
    )
    bins = rows[0]["samples"] + 1
    low, high = stats.binom.ppf((0.005, 0.995), rows[0]["truths"], 1 / bins)
    for column, row in zip(grid.T, rows, strict=True):
        column[0].set_title(row["problem"], fontsize=9)
        for axes, found in zip(column, row["summaries"].values(), strict=True):
            axes.axhspan(low, high, color="0.85")
            axes.bar(range(bins), found["ranks"], width=1.0)
    for axes, name in zip(grid[:, 0], calibration.SUMMARIES, strict=True):
        axes.set_ylabel(name)
    figure.supxlabel("rank of the truth among 19 samples")
    figure.savefig(PICTURES / "ranks.png", dpi=90, bbox_inches="tight")
    pyplot.close(figure)
