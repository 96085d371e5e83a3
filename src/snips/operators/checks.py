"""Does an operator keep its contract? The identities of the SVD, tried on random vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from snips.operators.base import LinearOperator

Measure = Callable[[LinearOperator, Tensor, Tensor], float]  # of an operator, images and measurements


@dataclass(frozen=True)
class Check:
    name: str
    error: float  # relative
    passed: bool
    reason: str = ""  # why it could not be computed


@dataclass(frozen=True)
class OperatorReport:
    """What `check_operator` found; true where all checks passed."""

    operator: str
    tolerance: float
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        rows = [
            f"  {'ok  ' if c.passed else 'FAIL'} {c.name:<42} {c.error:.1e} {c.reason}".rstrip() for c in self.checks
        ]
        return "\n".join([f"{self.operator} (tolerance {self.tolerance:.0e})", *rows])


def check_operator(operator: LinearOperator, seed: int = 0, batch: int = 2) -> OperatorReport:
    """Run the identities of an aligned SVD on random images and measurements.

    An operator whose `forward` is wrong but whose SVD is consistent fails the first check, because `forward` does
    not use the SVD. The tolerance is 1000 machine epsilons, relative.
    """
    like = _like(operator)
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, *operator.image_shape, generator=random, dtype=like.dtype).to(like.device)
    y = torch.randn(batch, *operator.measurement_shape, generator=random, dtype=like.dtype).to(like.device)
    tolerance = 1000 * torch.finfo(like.dtype).eps
    checks = []
    wanted = {**STRUCTURE, **IDENTITIES}
    for name, measure in ({key: wanted[key] for key in WITHOUT_SVD} if not operator.has_svd else wanted).items():
        error, reason = _attempt(measure, operator, x, y)
        checks.append(Check(name, error, error <= tolerance, reason))
    return OperatorReport(repr(operator), tolerance, tuple(checks))


def _like(operator: LinearOperator) -> Tensor:
    """A tensor of its precision and device; where the singular values were forgotten, the checks will tell."""
    found = getattr(operator, "like", None)
    return found if isinstance(found, Tensor) and found.is_floating_point() else torch.zeros(())


def _attempt(measure: Measure, operator: LinearOperator, x: Tensor, y: Tensor) -> tuple[float, str]:
    """The error of one check; infinite, with the reason, where it cannot be computed: wrong shapes, a typo."""
    try:
        return float(measure(operator, x, y)), ""
    except Exception as error:  # whatever somebody's first version of an operator does
        return math.inf, " ".join(f"{type(error).__name__}: {error}".split())


def _holds(fact: bool) -> float:
    return 0.0 if fact else math.inf


def _distance(a: Tensor, b: Tensor, scale: Tensor) -> float:
    return float((a - b).norm() / scale.clamp(min=1e-30))


def _scale(H: LinearOperator, x: Tensor) -> Tensor:
    """The norm of an image times the largest singular value: what an error in H x is compared with."""
    return max(H.largest(), torch.finfo(x.dtype).tiny) * x.norm()


def _broadcasts(H: LinearOperator, x: Tensor) -> bool:
    shape = H.Vt(x).shape[1:]
    return torch.broadcast_shapes(H.singular_values.shape, shape) == shape


def _spectrum_is_sound(s: Tensor) -> bool:
    return not s.is_complex() and bool(torch.isfinite(s).all() and (s >= 0).all())


STRUCTURE: dict[str, Measure] = {
    "forward gives measurement_shape": lambda H, x, y: _holds(H(x).shape == y.shape),
    "U gives measurement_shape": lambda H, x, y: _holds(H.U(H.Ut(y)).shape == y.shape),
    "x_bar and y_bar share one shape": lambda H, x, y: _holds(H.Vt(x).shape == H.Ut(y).shape),
    "singular values broadcast to it": lambda H, x, y: _holds(_broadcasts(H, x)),
    "singular values real, finite, >= 0": lambda H, x, y: _holds(_spectrum_is_sound(H.singular_values)),
    "V returns a real image": lambda H, x, y: _holds(not H.V(H.Vt(x)).is_complex() and H.V(H.Vt(x)).shape == x.shape),
}

IDENTITIES: dict[str, Measure] = {
    "H x = U s V^T x": lambda H, x, y: _distance(H(x), H.U(H.singular_values * H.Vt(x)), _scale(H, x)),
    "H (2x + x') = 2 H x + H x'": lambda H, x, y: _distance(
        H(2 * x + x.flip(0)), 2 * H(x) + H(x).flip(0), _scale(H, x)
    ),
    "V V^T x = x": lambda H, x, y: _distance(H.V(H.Vt(x)), x, x.norm()),
    "|V^T x| = |x|": lambda H, x, y: _distance(H.Vt(x).norm(), x.norm(), x.norm()),
    "U^T U = I on the range": lambda H, x, y: _distance(H.Ut(H.U(H.Ut(y))), H.Ut(y), y.norm()),
    "U^T y = 0 where s = 0": lambda H, x, y: float((H.Ut(y) * (H.singular_values == 0)).norm()),
    "<H x, y> = <x, H^T y>": lambda H, x, y: _distance(
        (H(x) * y).sum(), (x * H.adjoint(y)).sum(), _scale(H, x) * y.norm()
    ),
    "H H^+ H x = H x": lambda H, x, y: _distance(H(H.pinv(H(x))), H(x), _scale(H, x)),
}

WITHOUT_SVD = ("forward gives measurement_shape", "H (2x + x') = 2 H x + H x'", "<H x, y> = <x, H^T y>")
