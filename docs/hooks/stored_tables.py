"""Tables of the documentation, one for each kind of stored result: the record of a JSON file in, Markdown out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from snips.experiments.markdown import table

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "results"
FIVE = ("sr4", "sr2", "deblur_uniform", "cs4", "cs8")  # the paper's problems
OTHERS = ("denoise", "inpaint", "mri")
BANDS = ("0..1", "1..2", "2..4", "4..8", "8..16", "above")  # cycles per image
Rows = list[dict[str, Any]]


def exactness(rows: Rows, sigma_0: float) -> str:
    """Distances to exact posteriors for one noise level."""
    mine = [row for row in rows if row["sigma_0"] == sigma_0]
    columns = ["sampler", "calls", "five", *FIVE, *OTHERS, "std ratio", "mean error", "mode weights"]
    kinds = dict.fromkeys((row["sampler"], row["calls"]) for row in mine)
    return table(columns, [distances(*kind, mine) for kind in kinds])


def distances(sampler: str, calls: int, rows: Rows) -> list[str]:
    mine = [row for row in rows if (row["sampler"], row["calls"]) == (sampler, calls)]
    found = {problem: [row for row in mine if row["problem"] == problem] for problem in (*FIVE, *OTHERS)}
    name = "exact samples" if sampler == "exact" else sampler
    details = [mean(row[key] for p in FIVE for row in found[p]) for key in ("std_ratio", "mean_error", "mode_error")]
    each = [f"{mean(row['ratio'] for row in of):.2f}" if of else "" for of in found.values()]
    return [name, f"{calls:,}" if calls else "–", five(found), *each, *(f"{value:.3f}" for value in details)]


def five(found: dict[str, Rows]) -> str:
    """The mean over the paper's problems; its standard error is that between measurements, over all seeds."""
    each = [[ratio for row in found[problem] for ratio in row["ratios"]] for problem in FIVE]
    means = [mean(ratios) for ratios in zip(*each, strict=True)]
    return f"**{mean(means):.2f}** ± {stdev(means) / len(means) ** 0.5:.2f}"


def exactness_tables(record: dict[str, Any]) -> str:
    """All noise levels, with the paper's sampler where it was run."""
    langevin = BENCHMARKS / "exactness_langevin.json"
    rows = record["results"] + (json.loads(langevin.read_text())["results"] if langevin.is_file() else [])
    return of_levels(rows)


def unseen_tables(record: dict[str, Any]) -> str:
    return of_levels(record["results"])


def of_levels(rows: Rows) -> str:
    levels = sorted({row["sigma_0"] for row in rows}, reverse=True)
    return "\n".join(f"sigma_0 = {sigma_0}:\n\n{exactness(rows, sigma_0)}" for sigma_0 in levels)


def stationary(record: dict[str, Any]) -> str:
    """Standard deviations over the exact ones in each band, and errors of the mean in these."""
    spreads, shifts = [], []
    for row in record["results"]:
        bands = [f"{ratio:.3f} ± {error:.3f}" for ratio, error in zip(row["ratios"], row["errors"], strict=True)]
        worst = max(row["ratios"], key=lambda ratio: abs(ratio - 1))
        spreads.append([row["problem"], *bands, f"{worst:.3f}"])
        shifts.append([row["problem"], *(f"{shift:.3f}" for shift in row["mean_errors"]), f"{row['mean_error']:.3f}"])
    means = table(["problem", *BANDS, "all"], shifts)
    return f"{table(['problem', *BANDS, 'worst'], spreads)}\nError of the mean in exact standard deviations:\n\n{means}"


def calibration(record: dict[str, Any]) -> str:
    rows = [
        [row["problem"], row["sampler"], f"{row['pixels']:.3f} ± {row['pixels_error']:.3f}"]
        + [f"{found['inside']:.3f} (p {found['uniform_p']:.3f})" for found in row["summaries"].values()]
        for row in record["results"]
    ]
    return table(["problem", "sampler", "pixels", *record["results"][0]["summaries"]], rows)


def operators(record: dict[str, Any]) -> str:
    """Structured operators, then the dense SVD that they replace."""
    structured = [
        [
            row["problem"],
            f"{row['size']} x {row['size']}",
            *milliseconds(row, "setup", "Vt", "V"),
            f"{row['peak_mib']:.0f}",
        ]
        for row in record["results"]["structured"]
    ]
    dense = [
        [f"{row['size']} x {row['size']}", f"{row['dense']['setup']:.1f}", f"{row['ratio']:.0f}"]
        for row in record["results"]["dense"]
    ]
    text = table(["problem", "3 channels of", "set-up, ms", "Vt, ms", "V, ms", "peak, MiB"], structured)
    if dense:
        text += "\n" + table(["`deblur_uniform`, one channel", "dense SVD, s", "times slower than ours"], dense)
    return text


def milliseconds(row: dict[str, float], *keys: str) -> Iterator[str]:
    return (f"{1000 * row[key]:.3g}" for key in keys)


def overhead(record: dict[str, Any]) -> str:
    rows = [
        [problem, sampler, *milliseconds(row, "bare", "step"), f"{100 * row['overhead']:.1f} %"]
        for sampler, problems in record["results"].items()
        for problem, row in problems.items()
    ]
    return table(["problem", "sampler", "call alone, ms", "step, ms", "overhead"], rows)


def denoising(record: dict[str, Any]) -> str:
    def beside(row: dict[str, Any]) -> list[str]:
        other = row["ffdnet"]
        return ["–", "–"] if other is None else [f"{other:.2f}", f"{row['psnr'] - other:+.2f}"]

    def ours(row: dict[str, Any]) -> list[str]:
        return [f"{row['psnr']:.2f} ± {row['standard_error']:.2f}", f"{row['linear']:.2f}"]

    rows = [[str(row["channels"]), f"{row['sigma']:.3g}", *ours(row), *beside(row)] for row in record["test"]]
    return table(["channels", "sigma", "PSNR, dB", "its linear filter alone", "FFDNet", "difference"], rows)


def trials(record: dict[str, Any]) -> str:
    networks = record["results"]
    sigmas = next(iter(networks.values()))["psnr"]
    rows = [
        [name, f"{row['parameters'] / 1e6:.1f} M", f"{row['images']:,}", *(f"{row['psnr'][s]:.2f}" for s in sigmas)]
        for name, row in networks.items()
    ]
    return table(["trial", "parameters", "images seen", *(f"{sigma}, dB" for sigma in sigmas)], rows)


def facts(record: dict[str, Any]) -> str:
    """A record of single numbers, under their own names."""
    rows = [[name.replace("_", " "), _plain(value)] for name, value in record["results"].items()]
    return table(["measured", ""], rows)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)


def outcomes(record: dict[str, Any]) -> str:
    rows = [
        [way, kind, *(str(counts[name]) for name in ("refused", "read", "crashed"))]
        for way, kinds in record["results"].items()
        if way != "total"
        for kind, counts in kinds.items()
    ]
    return table(["through", "kind", "refused in one line", "read", "crashed"], rows)


def tiles(record: dict[str, Any]) -> str:
    rows = [[str(row["margin"]), f"{row['sigma']:g}", f"{row['deviation']:.1e}"] for row in record["results"]["rows"]]
    return table(["margin, pixels", "sigma", "root mean square deviation"], rows)


def noise(record: dict[str, Any]) -> str:
    """Without the single crops."""
    return facts({"results": {name: value for name, value in record["results"].items() if name != "rows"}})


def soak(record: dict[str, Any]) -> str:
    """Without the memory of each of hundreds of rounds."""
    results = record["results"]
    memory = results["memory_mib"]
    ends = {"memory_first_mib": memory[0], "memory_last_mib": memory[-1], "memory_most_mib": max(memory)}
    return facts({"results": {name: value for name, value in results.items() if name != "memory_mib"} | ends})


def scaling(record: dict[str, Any]) -> str:
    """Memory and time by pixels; a part that was not measured is named with its command."""
    return "\n".join(_scaling_part(record["results"].get(part), part, columns) for part, columns in SCALING.items())


SCALING = {
    "memory": {"bare_mib": "one call, MiB", "run_mib": "a whole run, MiB", "memory_ratio": "ratio"},
    "time": {"bare_call": "one call, s", "step": "a step, s", "time_ratio": "ratio", "set_up": "set-up, s"},
}


def _scaling_part(measured: dict[str, Any] | None, part: str, columns: dict[str, str]) -> str:
    if measured is None:
        return f"No {part} was measured yet: `python benchmarks/scaling.py --parts {part}`.\n"
    rows = [
        [f"{row['side']} x {row['side']}", row["problem"], *(_plain(float(row[name])) for name in columns)]
        for row in measured["rows"]
    ]
    powers = ", ".join(
        f"{problem} {power['all']:.2f} (largest two sizes {power['largest_two']:.2f})"
        for problem, power in measured["growth_exponents"].items()
    )
    told = f"\nGrowth, {part} ~ pixels^p with p: {powers}.\n" if powers else ""
    return table(["pixels", "problem", *columns.values()], rows) + told
