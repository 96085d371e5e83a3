"""Tables of what was measured on faces: how much of the quality is the prior's, how much the sampler's."""

from __future__ import annotations

from typing import Any

from snips.experiments.markdown import table


def face_mixture(record: dict[str, Any]) -> str:
    """PSNR of samples and of their mean, and what exact samples would have more or less."""
    rows = []
    for row in record["results"]:
        beside = [f"{row[f'{key}_difference']:+.2f} ± {row[f'{key}_error']:.2f}" for key in ("samples", "mean")]
        beside = beside if row["sampler"] != "exact" else ["–", "–"]
        rows.append([row["problem"], row["sampler"], *(f"{row[key]:.2f}" for key in ("samples", "mean")), *beside])
    return table(["problem", "sampler", "samples dB", "mean dB", "samples − exact", "mean − exact"], rows)


def message_passing(record: dict[str, Any]) -> str:
    """PSNR of the posterior mean by an algorithm without samples, and of the mean of samples."""
    keys = ("message_passing", "mean_of_infinitely_many", "mean_of_samples")
    rows = [[row["problem"], *(f"{row[key]:.2f}" for key in keys)] for row in record["results"]]
    return table(["problem", "message passing dB", "mean of infinitely many samples dB", "mean of 8 dB"], rows)


def own_truths(record: dict[str, Any]) -> str:
    """Whether samples scatter as much as their mean errs, for truths of the prior itself and for real ones."""
    rows = []
    for row in record["results"]:
        shares = [f"{row[key]:.3f} ± {row[f'{key}_error']:.3f}" for key in ("ratio", "coverage")]
        rows.append([row["problem"], row["truths"], str(row["images"]), *shares])
    return table(["problem", "truths", "images", "variance / squared error", "inside 90 % intervals"], rows)


def one_call(record: dict[str, Any]) -> str:
    """Mean and variance of samples beside those that one call of the denoiser tells."""
    quantities = {
        "variance": "variance of samples / of one call",
        "off": "squared distance of the means / variance",
        "self": "variance / squared error of one call",
        "error": "squared error of the samples' mean / of one call",
    }
    rows = []
    for row in record["results"]:
        ratios = [f"{row[name]:.3f} ± {row[f'{name}_error']:.3f}" for name in quantities]
        rows.append([row["prior"], f"{row['sigma_0']:g}", str(row["calls"]), str(row["images"]), *ratios])
    return table(["prior", "σ₀", "calls", "images", *quantities.values()], rows)


def precision(record: dict[str, Any]) -> str:
    """PSNR with products in float32 and in bfloat16."""
    rows = [
        [
            row["what"],
            f"{row['float32']:.2f}",
            f"{row['bfloat16']:.2f}",
            f"{row['difference']:+.3f} ± {row['error']:.3f}",
        ]
        for row in record["results"]["rows"]
    ]
    faster = f"\nA call of the network was {record['results']['call_speedup']:.1f} times as fast in bfloat16.\n"
    return table(["", "float32, dB", "bfloat16, dB", "difference"], rows) + faster
