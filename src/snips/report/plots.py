"""Small plots as SVG text: residuals beside the noise they should be."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

WIDTH, HEIGHT, EDGE = 260, 180, 24  # of a plot and of its margin, in pixels
REACH = 4.0  # standard deviations on either side
BINS = 40
QUANTILES = 80
MOST = 200_000  # values; more change nothing that an eye can see


def thinned(values: np.ndarray) -> np.ndarray:
    """At most MOST of the values, evenly spread."""
    return values[:: max(1, math.ceil(len(values) / MOST))]


def histogram(values: np.ndarray) -> str:
    """Residuals over sigma_0, as bars, with the density of N(0, 1)."""
    density, edges = np.histogram(np.clip(values, -REACH, REACH), BINS, (-REACH, REACH))
    density = density / (max(1, len(values)) * (edges[1] - edges[0]))
    top = max(0.45, float(density.max()) * 1.05)
    bars = "".join(
        f'<rect class="bar" x="{_x(left):.1f}" y="{_y(d, top):.1f}" width="{_x(right) - _x(left) - 0.5:.1f}" '
        f'height="{_y(0, top) - _y(d, top):.1f}"/>'
        for d, left, right in zip(density, edges[:-1], edges[1:], strict=True)
    )
    grid = np.linspace(-REACH, REACH, 81)
    curve = _path([(_x(v), _y(d, top)) for v, d in zip(grid, stats.norm.pdf(grid), strict=True)])
    return _frame(f"{bars}{curve}", "residual / sigma_0, and N(0, 1)")


def quantile_plot(values: np.ndarray) -> str:
    """Q-Q: quantiles of the residuals over sigma_0 against those of N(0, 1); on the line is what noise would do."""
    shares = (np.arange(QUANTILES) + 0.5) / QUANTILES
    expected, found = stats.norm.ppf(shares), np.clip(np.quantile(values, shares), -REACH, REACH)
    dots = "".join(
        f'<circle class="dot" cx="{_x(e):.1f}" cy="{_y(f + REACH, 2 * REACH):.1f}" r="2"/>'
        for e, f in zip(expected, found, strict=True)
    )
    line = _path([(_x(v), _y(v + REACH, 2 * REACH)) for v in (-REACH, REACH)])
    return _frame(f"{line}{dots}", "quantiles of N(0, 1), and of residual / sigma_0")


def _x(value: float) -> float:
    return EDGE / 2 + (value + REACH) / (2 * REACH) * (WIDTH - EDGE)


def _y(value: float, top: float) -> float:
    return HEIGHT - EDGE - value / top * (HEIGHT - 1.5 * EDGE)


def _path(points: list[tuple[float, float]]) -> str:
    return '<path class="curve" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + '"/>'


def _frame(content: str, label: str) -> str:
    ticks = "".join(
        f'<text x="{_x(v):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{v:+d}</text>' for v in (-4, -2, 0, 2, 4)
    )
    axis = f'<path class="axis" d="M{EDGE / 2} {HEIGHT - EDGE}H{WIDTH - EDGE / 2}"/>'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{axis}{content}{ticks}</svg>'
