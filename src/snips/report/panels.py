"""Does each sample explain the measurement? The faithfulness panel of the page."""

from __future__ import annotations

import html

from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.operators import Inpainting
from snips.operators.pictures import in_rows_and_columns
from snips.report import plots
from snips.report.embedding import data_uri, shown

RESIDUAL_REACH = 4  # sigma_0: black and white in the picture of a residual


def sample_panel(problem: InverseProblem, sample: Tensor, b: int, k: int, verdict: str) -> str:
    """For one sample (C, H, W) of image b: the residual as a picture, its histogram, its Q-Q plot."""
    residual = problem.y[b : b + 1] - problem.operator(sample[None])
    figures = [*_residual_picture(problem, residual), *_residual_plots(problem, residual)]
    hidden = "" if k == 0 else " hidden"
    return f'<div class="figures" data-panel="{k}"{hidden}><p>{html.escape(verdict)}</p>{"".join(figures)}</div>'


def _residual_picture(problem: InverseProblem, residual: Tensor) -> list[str]:
    if isinstance(problem.operator, Inpainting):
        residual = problem.operator.pinv(residual)
    elif not in_rows_and_columns(problem.operator):
        return []
    reach = RESIDUAL_REACH * problem.sigma_0 or float(residual.abs().max()) or 1.0
    picture = data_uri(shown(residual[0] / (2 * reach) + 0.5))
    caption = f"y &minus; Hx, black &minus;{reach:.3g}, white +{reach:.3g}: no structure should show"
    return [f'<figure><img class="pixels" src="{picture}" alt="residual"><figcaption>{caption}</figcaption></figure>']


def _residual_plots(problem: InverseProblem, residual: Tensor) -> list[str]:
    measured = residual if problem.operator.recorded is None else residual[:, problem.operator.recorded]
    values = plots.thinned(measured.detach().cpu().double().flatten().numpy())
    if problem.sigma_0 == 0 or len(values) == 0:
        return ["<p>Without noise (sigma_0 = 0) there is no distribution to compare with.</p>"]
    values = values / problem.sigma_0
    return [
        f"<figure>{plots.histogram(values)}<figcaption>(y &minus; Hx) / &sigma;&#8320; in bars, N(0, 1) as a line"
        "</figcaption></figure>",
        f"<figure>{plots.quantile_plot(values)}<figcaption>Q-Q: noise would lie on the line</figcaption></figure>",
    ]
