"""Does a sample explain the measurement? Then y - H x looks like the noise: Gaussian, white, of level sigma_0."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from scipy import stats
from torch import Tensor

from snips.inverse_problem import InverseProblem

P_THRESHOLD = 0.05  # of D'Agostino and Pearson's test, as in the paper
RHO_THRESHOLD = 0.1  # of the correlation of neighbours, as in the paper; wider where there are few, see `rho_limit`
FEWEST = 20  # measurements; below, D'Agostino and Pearson's test means nothing


@dataclass(frozen=True)
class Faithfulness:
    """One number for each sample and image, (K, B); None where it means nothing."""

    residual_std: Tensor  # root mean square of y - H x
    std_ratio: Tensor | None  # over sigma_0
    p_value: Tensor | None  # of normality, D'Agostino and Pearson
    rho_x: Tensor | None  # correlation of neighbours along the measurement's last axis
    rho_y: Tensor | None  # along the one before; None where the measurement has no second axis
    faithful: Tensor | None  # bool: all of `tests` are passed
    slack: Tensor | None = None  # how far std_ratio may be from 1
    rho_x_limit: Tensor | None = None  # how far rho_x may be from 0
    rho_y_limit: Tensor | None = None

    @property
    def tests(self) -> dict[str, Tensor]:
        """Which tests each sample passes, bool (K, B), by the name of the figure that is tested."""
        if self.std_ratio is None or self.p_value is None or self.slack is None:
            return {}
        rhos = {"rho_x": (self.rho_x, self.rho_x_limit), "rho_y": (self.rho_y, self.rho_y_limit)}
        return {
            "std_ratio": (self.std_ratio - 1).abs() < self.slack,
            "p_value": self.p_value > P_THRESHOLD,
            **{
                name: rho.abs() < (RHO_THRESHOLD if limit is None else limit)
                for name, (rho, limit) in rhos.items()
                if rho is not None
            },
        }

    @property
    def rho(self) -> Tensor | None:
        """The larger correlation in absolute value."""
        if self.rho_x is None or self.rho_y is None:
            return self.rho_x
        return torch.where(self.rho_x.abs() >= self.rho_y.abs(), self.rho_x, self.rho_y)


def faithfulness(problem: InverseProblem, samples: Tensor) -> Faithfulness:
    """Test the residuals of samples (K, B, C, H, W), computed with `forward`, not with the SVD.

    Neighbours are those in the measurement's own shape, without its channel axis: rows and columns of an image,
    the next entry of a list. The verdict takes the paper's thresholds and, as a residual of the wrong size can be
    white and Gaussian too, asks that its level lie within 10 % of sigma_0 or 4 standard errors, whichever is wider.
    Of few neighbours even white noise has a correlation above 0.1: there, 3 standard errors are allowed.
    """
    each = [_tested(problem, samples[k : k + 1]) for k in range(len(samples))]  # one after the other, to save memory
    figures: dict[str, Any] = {}
    for name in (field.name for field in fields(Faithfulness)):
        found = [getattr(one, name) for one in each]
        figures[name] = None if found[0] is None else torch.cat(found)
    return Faithfulness(**figures)


def _tested(problem: InverseProblem, samples: Tensor) -> Faithfulness:
    K, B = samples.shape[:2]
    residual = torch.stack([problem.y - problem.operator(x) for x in samples]).double()  # (K, B, *measurement)
    recorded = problem.operator.recorded  # the other entries of y are 0 and tell nothing
    if recorded is None:
        recorded = torch.ones(residual.shape[2:], dtype=torch.bool)
    recorded = recorded.to(residual.device)
    noise = residual[:, :, recorded]  # (K, B, entries)
    entries = noise.shape[2]
    level = noise.square().mean(2).sqrt() if entries else residual.new_zeros(K, B)
    if problem.sigma_0 == 0 or entries < FEWEST:
        return Faithfulness(level, None, None, None, None, None)
    ratio = level / problem.sigma_0
    p = torch.from_numpy(stats.normaltest(noise.cpu().numpy(), axis=2).pvalue).to(level)
    places = residual.ndim - 2 - problem.operator.measured_channels
    axes = (-1, -2 if places >= 2 else None)
    (rho_x, x_limit), (rho_y, y_limit) = (_neighbour_correlation(residual, recorded, axis) for axis in axes)
    slack = max(0.1, 4 / math.sqrt(2 * entries))
    found = Faithfulness(level, ratio, p, rho_x, rho_y, None, torch.full_like(ratio, slack), x_limit, y_limit)
    return replace(found, faithful=torch.stack(list(found.tests.values())).all(0))


def rho_limit(pairs: int) -> float:
    """The correlation that passes: the paper's, or 3 standard errors of white noise's where the pairs are few."""
    return max(RHO_THRESHOLD, 3 / math.sqrt(pairs))


def _neighbour_correlation(
    residual: Tensor, recorded: Tensor, axis: int | None
) -> tuple[Tensor, Tensor] | tuple[None, None]:
    """Pearson's rho of all pairs of neighbours along an axis that were both recorded, and its limit, (K, B) each."""
    if axis is None or residual.shape[axis] < 2:
        return None, None
    n = residual.shape[axis]
    both = recorded.narrow(axis, 0, n - 1) & recorded.narrow(axis, 1, n - 1)
    pairs = int(both.sum())
    if pairs < 2:
        return None, None
    a, b = (residual.narrow(axis, start, n - 1)[:, :, both] for start in (0, 1))
    a, b = a - a.mean(2, keepdim=True), b - b.mean(2, keepdim=True)
    scale = (a.square().sum(2) * b.square().sum(2)).sqrt()
    rho = (a * b).sum(2) / scale.clamp(min=torch.finfo(scale.dtype).tiny)
    return rho, torch.full_like(rho, rho_limit(pairs))
