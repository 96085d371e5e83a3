"""Tables of other samplers beside ours: the stored rows of benchmarks/peers.py in, Markdown out."""

from __future__ import annotations

from statistics import mean
from typing import Any

from stored_tables import FIVE, Rows, five

from snips.experiments.markdown import table


def peers_tables(record: dict[str, Any]) -> str:
    """All numbers of calls, and the sweep in which settings were chosen."""
    calls = sorted({row["nfe"] for row in record["results"] if row["kind"] == "distance"})
    tables = [f"{nfe} calls:\n\n{peers(record['results'], nfe)}" for nfe in calls]
    swept = [row for row in record["results"] if row["kind"] == "sweep"]
    return "\n".join([*tables, *([f"The sweep:\n\n{sweep(swept)}"] if swept else [])])


def sweep(rows: Rows) -> str:
    """The mean distance of each setting that was tried, one column for each number of calls; the best are bold."""
    calls = sorted({row["nfe"] for row in rows})
    tried: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row in rows:
        tried.setdefault((row["method"], setting(row)), {n: [] for n in calls})[row["nfe"]].append(row["ratio"])
    means = {kind: {n: mean(far) for n, far in mine.items()} for kind, mine in tried.items()}
    best = {
        (method, n): min(mine[n] for kind, mine in means.items() if kind[0] == method)
        for method, _ in means
        for n in calls
    }
    lines = [
        [*kind, *(f"**{far:.2f}**" if far == best[kind[0], n] else f"{far:.2f}" for n, far in mine.items())]
        for kind, mine in means.items()
    ]
    return table(["method", "setting", *(f"{n} calls" for n in calls)], lines)


def peers(rows: Rows, nfe: int) -> str:
    """Other samplers at one number of calls: distances, spread, coverage, time."""
    columns = ["method", "setting", "five", *FIVE, "std ratio", "coverage of 90 % intervals", "time / bare"]
    mine = [row for row in rows if row["nfe"] == nfe or row["kind"] == "time"]
    kinds = dict.fromkeys((row["method"], setting(row)) for row in mine if row["kind"] == "distance")
    ours_first = sorted(kinds, key=lambda kind: kind[0] != "fast")
    return table(columns, [peer(*kind, mine) for kind in ours_first])


def peer(method: str, label: str, rows: Rows) -> list[str]:
    mine = [row for row in rows if (row["method"], setting(row)) == (method, label)]
    far = {p: [row for row in mine if (row["kind"], row["problem"]) == ("distance", p)] for p in FIVE}
    held = [mean(row["coverage"] for row in mine if (row["kind"], row["problem"]) == ("coverage", p)) for p in FIVE]
    return [
        method,
        label,
        five(far),
        *(f"{mean(row['ratio'] for row in of):.2f}" for of in far.values()),
        f"{mean(row['std_ratio'] for of in far.values() for row in of):.2f}",
        f"{min(held):.2f} – {max(held):.2f}",
        f"{next(row['over_bare'] for row in mine if row['kind'] == 'time'):.1f}",
    ]


def setting(row: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in row["setting"].items()) or "default"
