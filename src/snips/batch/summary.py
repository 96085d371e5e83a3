"""summary.html: the batch at a glance, each item with its mean and a link to its own page."""

from __future__ import annotations

import html
from typing import Any
from urllib.parse import quote

from snips.batch.folders import RunFolder
from snips.batch.scores import Scores
from snips.files import new_file
from snips.names import printable
from snips.report.page import template

SHOWN = (
    ("PSNR of the samples, dB", "psnr"),
    ("PSNR of the means, dB", "psnr_mean"),
    ("SSIM of the means", "ssim_mean"),
    ("share of faithful samples", "faithful"),
    ("residual over sigma_0", "std_ratio"),
)


def write_summary(scores: Scores, folder: RunFolder) -> None:
    """Everything that comes from files of users is escaped."""
    page = template("batch.html").substitute(
        title=html.escape(f"{len(scores.rows)} restorations"),
        facts="".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in _facts(scores)),
        warnings="".join(f'<p class="bad">{html.escape(warning)}</p>' for warning in scores.warnings),
        rows="".join(map(_row, scores.rows)),
        settings=html.escape("\n".join(f"{name}: {value}" for name, value in folder.recorded().items())),
    )
    with new_file(folder.path / "summary.html") as work:
        work.write_text(printable(page), encoding="utf-8")


def _facts(scores: Scores) -> list[tuple[str, str]]:
    facts = [("restored", str(len(scores.rows) - len(scores.failed))), ("failed", str(len(scores.failed)))]
    tiled = [row["tile_deviation"] for row in scores.rows if row["tile_deviation"] is not None]
    if tiled:
        facts.append(("denoised in tiles", f"{len(tiled)}, which change a call by {max(tiled):.1g} at most"))
    means = ((label, scores.mean(name)) for label, name in SHOWN)
    return [*facts, *((label, f"{value:.4g}") for label, value in means if value is not None)]


def _row(row: dict[str, Any]) -> str:
    key = html.escape(row["key"])
    if row["error"] is not None:
        return f'<tr><td></td><td>{key}</td><td class="bad" colspan="4">{html.escape(row["error"])}</td></tr>'
    place = quote(row["folder"])
    faithful = row["faithful"]
    cells = (
        f'<a href="{place}/report.html"><img loading="lazy" alt="" src="{place}/mean.png"></a>',
        f'<a href="{place}/report.html">{key}</a>',
        html.escape(str(row["problem"] or "")),
        f"{row['sigma_0']:.4g}",
        "" if row["psnr_mean"] is None else f"{row['psnr_mean']:.2f} dB",
        "" if faithful is None else f"{sum(map(bool, faithful))} of {len(faithful)}",
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
