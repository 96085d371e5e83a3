"""Does an operator keep its contract? The identities of the SVD, tried on random vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from snips.operators.base import LinearOperator


@dataclass(frozen=True)
class Check:
    name: str
    error: float  # relative
    passed: bool


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
        rows = [f"  {'ok  ' if c.passed else 'FAIL'} {c.name:<42} {c.error:.1e}" for c in self.checks]
        return "\n".join([f"{self.operator} (tolerance {self.tolerance:.0e})", *rows])


def check_operator(operator: LinearOperator, seed: int = 0, batch: int = 2) -> OperatorReport:
    """Run the identities of an aligned SVD on random images and measurements.

    An operator whose `forward` is wrong but whose SVD is consistent fails the first check, because `forward` does
    not use the SVD. The tolerance is 1000 machine epsilons, relative.
    """
    s = operator.singular_values
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, *operator.image_shape, generator=random, dtype=s.dtype).to(s.device)
    y = torch.randn(batch, *operator.measurement_shape, generator=random, dtype=s.dtype).to(s.device)
    tolerance = 1000 * torch.finfo(s.dtype).eps
    errors = {**_structure(operator, x, y), **_identities(operator, x, y)}
    checks = tuple(Check(name, error, error <= tolerance) for name, error in errors.items())
    return OperatorReport(repr(operator), tolerance, checks)


def _structure(H: LinearOperator, x: Tensor, y: Tensor) -> dict[str, float]:
    """Shapes and signs: 0 where right, infinity where wrong."""
    s, x_bar, y_bar = H.singular_values, H.Vt(x), H.Ut(y)
    facts = {
        "forward gives measurement_shape": H(x).shape == y.shape,
        "x_bar and y_bar share one shape": x_bar.shape == y_bar.shape,
        "singular values broadcast to it": torch.broadcast_shapes(s.shape, x_bar.shape[1:]) == x_bar.shape[1:],
        "singular values real, finite, >= 0": not s.is_complex() and bool(torch.isfinite(s).all() and (s >= 0).all()),
        "V returns a real image": not H.V(x_bar).is_complex() and H.V(x_bar).shape == x.shape,
    }
    return {name: 0.0 if right else float("inf") for name, right in facts.items()}


def _identities(H: LinearOperator, x: Tensor, y: Tensor) -> dict[str, float]:
    s, x_bar, y_bar = H.singular_values, H.Vt(x), H.Ut(y)
    Hx = H(x)
    on_range = H.Ut(H.U(y_bar))
    scale = s.max().clamp(min=torch.finfo(s.dtype).tiny)
    return {
        "H x = U s V^T x": _distance(Hx, H.U(s * x_bar), scale * x.norm()),
        "H (2x + x') = 2 H x + H x'": _distance(H(2 * x + x.flip(0)), 2 * Hx + Hx.flip(0), scale * x.norm()),
        "V V^T x = x": _distance(H.V(x_bar), x, x.norm()),
        "|V^T x| = |x|": _distance(x_bar.norm(), x.norm(), x.norm()),
        "U^T U = I on the range": _distance(on_range, y_bar, y.norm()),
        "U^T y = 0 where s = 0": _distance(y_bar * (s == 0), torch.zeros_like(y_bar), y.norm()),
        "<H x, y> = <x, H^T y>": _distance((Hx * y).sum(), (x * H.adjoint(y)).sum(), scale * x.norm() * y.norm()),
        "H H^+ H x = H x": _distance(H(H.pinv(Hx)), Hx, scale * x.norm()),
    }


def _distance(a: Tensor, b: Tensor, scale: Tensor) -> float:
    return float((a - b).norm() / scale.clamp(min=1e-30))
