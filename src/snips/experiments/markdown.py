"""Results as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def with_error(value: dict[str, Any], digits: int = 2) -> str:
    """mean ± standard error."""
    error = value["standard_error"]
    return f"{value['mean']:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def compared(rows: Sequence[dict[str, Any]]) -> str:
    """A table of what `sampled.less` found: samplers that had fewer images, beside one on the same images."""
    found = [row for row in rows if row.get("less")]
    if not found:
        return ""
    reference = found[0]["less"]["sampler"]
    cells = [
        [row["problem"], row["sampler"], str(row["less"]["images"])]
        + [with_error(row["less"][name]) for name in ("psnr_sample", "psnr_mean")]
        for row in found
    ]
    columns = ["problem", "sampler", "images", "samples, difference in dB", "mean, difference in dB"]
    return f"\nLess the PSNR of `{reference}` on the same images:\n\n" + table(columns, cells)


def percent(value: dict[str, Any]) -> str:
    """A share and its standard error."""
    return with_error({name: None if each is None else 100 * each for name, each in value.items()}, 1) + " %"


def exact_gap(samples: int) -> float:
    """Decibels between a sample and the mean of some: squared errors of 2 and 1 + 1/K posterior variances."""
    return 10 * math.log10(2 / (1 + 1 / samples))


def on_gap_and_coverage(samples: int) -> str:
    return (
        f"The gap is that between mean and samples: {samples} exact samples give {exact_gap(samples):.1f} dB. "
        "Coverage: how often the true pixel lies between the lowest and the highest sample."
    )


def coverage_column(level: float) -> str:
    return f"coverage (exact: {100 * level:.1f} %)"


def share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %"


def faithfulness_cells(found: dict[str, Any] | None) -> list[str]:
    """Residual over sigma_0, share with p > 0.05, share with |rho| < 0.1."""
    if found is None:
        return ["-", "-", "-"]
    total = found["samples"]
    return [f"{found['std_ratio']:.3f}", share(found["normal"], total), share(found["uncorrelated"], total)]


FAITHFULNESS_COLUMNS = ("residual std / σ₀", "p > 0.05", "abs ρ < 0.1")


def setting(results: dict[str, Any]) -> str:
    """One line on images, prior and samplers, for under a heading."""
    prior = results["prior"]
    images = f"Images: {results['source']}. Prior: `{prior['name']}` (weights {prior['sha256']})."
    return f"{images}{products(results.get('precision', {}))}{drawn(results.get('sampling', {}))}\n\n"


def products(precision: dict[str, str]) -> str:
    """Which samplers had a network in lower precision."""
    low = [name for name, chosen in precision.items() if chosen != "float32"]
    if not low:
        return ""
    kinds = " and ".join(sorted({precision[name] for name in low}))
    of = "" if len(low) == len(precision) else f" for {', '.join(f'`{name}`' for name in low)}"
    return f" Products of the network in {kinds}{of}."


def drawn(sampling: dict[str, dict[str, int]]) -> str:
    """How samples were drawn: by which samplers, and with how many calls."""
    each = (
        f"`{name}`, {chosen['calls']} calls, {chosen['samples']} sample{'s' * (chosen['samples'] > 1)}"
        for name, chosen in sampling.items()
    )
    return f" For each image: {'; '.join(each)}." if sampling else ""
