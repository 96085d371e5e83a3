"""Whether prior or sampler limits the figures of Table 1, for the page of results: by what tells the two apart."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snips.samplers.multistep import STEPS_VERSION

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks" / "results"
DENOISING = ROOT / "experiments" / "results" / "denoising_faces.json"
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
    former = [name for name, r in records.items() if r and r.get("steps") != STEPS_VERSION]
    doubt += f"Measured with former steps of `fast`: {', '.join(former)}.\n\n" if former else ""
    return f"""{head}{doubt}{_with_an_exact_prior(mixture)}
{_with_its_own_truths(own)}
{_beside_one_call(one_call)}
{_without_the_sampler(passing)}
{_of_the_denoiser()}
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
  infinitely many samples have {beside} ([figures](measurements.md#prior-or-sampler))."""


def _of_the_denoiser() -> str:
    rows = [row for row in json.loads(DENOISING.read_text())["test"] if row["ffdnet"]]
    above = _range(row["psnr"] - row["ffdnet"] for row in rows)
    return f"""- **The denoiser by itself**: on held-out faces `faces` has {above} dB more than FFDNet,
  a network for photographs, at noise of {rows[0]["sigma"]:g} to {rows[-1]["sigma"]:g}. No such figure of the paper's
  network is published, so how much better it denoises is not known.
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
    return f"""The figures of `fast` are up to {below:.2f} dB below the paper's. With an exact denoiser the sampler
loses at most {max(lost, 0):.2f} dB. With the network, [settings of the sampler](fast_sampler_trials.md) move faces
by a few tenths of a decibel, and an estimate without it is at most {max(more, 0):.2f} dB better. So most of the
distance is the prior's, or that of the choice of images.{_scatter(own)}
"""


def _scatter(own: list[dict[str, Any]]) -> str:
    """Which problems have samples that scatter too little or too much, and what that does to their PSNR."""
    unfair = _unfair(own)
    told = ""
    for way, narrow in (("too little", True), ("too much", False)):
        gains = {name: 10 * math.log10(2 / (1 + ratio)) for name, ratio in unfair.items() if (ratio < 1) is narrow}
        if gains:
            told += (
                f" Samples of {', '.join(gains)} scatter {way}, which makes the PSNR of samples "
                f"{_range(abs(gain) for gain in gains.values())} dB {'higher' if narrow else 'lower'} than it should "
                "be; that of their mean is not affected."
            )
    return told


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
