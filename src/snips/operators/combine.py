"""compose(), stack(), scale_rows(): exact where structure survives, computed otherwise; `.how` says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from snips.operators.base import LinearOperator
from snips.operators.circular import CircularBlur, convolved
from snips.operators.decompose import decompose
from snips.operators.foreign import Foreign
from snips.operators.linear_map import LinearMap
from snips.operators.masked_transform import MaskedTransform
from snips.operators.pictures import surroundings_of_both
from snips.operators.reshaped import Reshaped
from snips.operators.separable import Denoising, Separable
from snips.operators.separable_factors import separable_factors
from snips.operators.stacked import InBasisOf, RowScaled, Stacked, recorded_of_all

ROUNDING = 1e-10  # relative, in float64


def compose(outer: LinearOperator, inner: LinearOperator, **options: Any) -> LinearOperator:
    """y = outer(inner(x)): a mask after a blur, a blur after making smaller.

    Exact for axis-by-axis operators (separable blurs, resizing, colours, masks of whole rows and columns), for circular
    blurs, for masks after a masked transform, and beside the identity. Anything else is decomposed, with the options
    `svd`, `rank`, `cache` and `progress` of `as_operator`.
    """
    if inner.measurement_shape != outer.image_shape:
        raise ValueError(f"the first operator measures {inner.measurement_shape}, the second takes {outer.image_shape}")
    operator = _composed_exactly(outer, inner) or _composed(outer, inner, options)
    operator.pixel_values = outer.pixel_values and inner.pixel_values
    return operator


def _composed_exactly(outer: LinearOperator, inner: LinearOperator) -> LinearOperator | None:
    for rule in COMPOSITIONS:
        if (operator := rule(outer, inner)) is not None:
            if operator.how == LinearOperator.how:  # an SVD that was computed stays one, beside the identity
                operator.how += ": " + " after ".join(type(part).__name__ for part in (outer, inner))
            operator.surroundings = surroundings_of_both(outer, inner)
            return operator if operator.recorded is not None else _marked(operator, outer.recorded)
    return None


def _composed(outer: LinearOperator, inner: LinearOperator, options: dict[str, Any]) -> LinearOperator:
    def forward(x: Tensor) -> Tensor:
        return outer.forward(inner.forward(x))

    def adjoint(y: Tensor) -> Tensor:
        return inner.adjoint(outer.adjoint(y))

    shapes = inner.image_shape, outer.measurement_shape
    H = LinearMap(*shapes, forward, adjoint, _precision(outer, inner), outer.measured_channels)
    composed = decompose(H, inner.image_shape, name="the composition", **options)
    composed.surroundings = surroundings_of_both(outer, inner)
    return _marked(composed, outer.recorded)


def stack(*operators: LinearOperator, **options: Any) -> LinearOperator:
    """y = (H_1 x, H_2 x, ...) as one list: several measurements of one image; join them with `torch.cat` of flat parts.

    Exact where all parts share one basis (the same operator again, blurs and Fourier masks, masks of pixels, anything
    beside the identity). Anything else is decomposed, with the options of `as_operator`. Where the parts have noise of
    different levels, see `snips.whiten`.
    """
    if not operators or any(part.image_shape != operators[0].image_shape for part in operators):
        raise ValueError(f"all parts must measure the same images, not {[part.image_shape for part in operators]}")
    if (parts := in_one_basis(operators)) is not None:
        return Stacked(parts)
    sizes = [_entries(part) for part in operators]

    def forward(x: Tensor) -> Tensor:
        return torch.cat([part.forward(x).flatten(1) for part in operators], 1)

    def adjoint(y: Tensor) -> Tensor:
        pieces = zip(operators, y.split(sizes, 1), strict=True)
        images = [part.adjoint(v.reshape(len(v), *part.measurement_shape)) for part, v in pieces]
        return torch.stack(images).sum(0)

    H = LinearMap(operators[0].image_shape, (sum(sizes),), forward, adjoint, _precision(*operators))
    whole = decompose(H, operators[0].image_shape, name="the stack", **options)
    return _marked(whole, recorded_of_all(operators))


def scale_rows(operator: LinearOperator, weights: Tensor, **options: Any) -> LinearOperator:
    """y = weights * H x for positive weights (*measurement_shape): exact where U only puts coordinates in places.

    Where the SVD must be computed, it is kept on disk only with cache=True: other weights make another operator.
    """
    options = {"cache": False, **options}
    weights = weights.to(torch.float64).cpu()
    if isinstance(operator, Stacked):
        pieces = zip(operator._parts(), operator.split(weights[None]), strict=True)
        return stack(*(scale_rows(part, piece[0], **options) for part, piece in pieces), **options)
    if operator.has_svd and (gains := _gains(operator, weights)) is not None:
        return RowScaled(operator, weights, gains)

    def forward(x: Tensor) -> Tensor:
        return weights.to(x) * operator.forward(x)

    def adjoint(y: Tensor) -> Tensor:
        return operator.adjoint(weights.to(y) * y)

    shapes = operator.image_shape, operator.measurement_shape
    H = LinearMap(*shapes, forward, adjoint, _precision(operator), operator.measured_channels)
    scaled = decompose(H, operator.image_shape, name="the operator with scaled rows", **options)
    scaled.surroundings = operator.surroundings
    return _marked(scaled, operator.recorded)


def in_one_basis(operators: tuple[LinearOperator, ...]) -> list[LinearOperator] | None:
    """The operators with one V for all, or None. Two V that agree on a random image are the same, almost surely."""
    if not all(part.has_svd for part in operators):
        return None
    x = torch.randn(1, *operators[0].image_shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    factors = [_multiple_of_identity(part, x) for part in operators]
    leader = next((p for p, f in zip(operators, factors, strict=True) if f is None), operators[0])
    parts = [p if f is None else InBasisOf(leader, f) for p, f in zip(operators, factors, strict=True)]
    x_bar = leader.Vt(x)
    for part in parts:
        other = part.Vt(x)
        if other.shape != x_bar.shape or other.dtype != x_bar.dtype or not _close(other, x_bar):
            return None
    return parts


def _multiple_of_identity(operator: LinearOperator, x: Tensor) -> float | None:
    """c where H = c I, else None."""
    s = operator.exact_singular_values
    if operator.measurement_shape != operator.image_shape or s.min() != s.max() or s.max() == 0:
        return None
    factor = float(s.max())
    return factor if _close(operator.forward(x), factor * x) else None


def _gains(operator: LinearOperator, weights: Tensor) -> Tensor | None:
    """The weights as coordinates where diag(weights) U = U diag(gains), else None; tried on random measurements."""
    if weights.numel() == 0 or weights.min() == weights.max():
        return weights.flatten()[:1].clone() if weights.numel() else torch.ones(1)
    random = torch.Generator().manual_seed(5)
    ones, y = torch.ones(1, *weights.shape), torch.randn(1, *weights.shape, generator=random, dtype=torch.float64)
    gains = operator.Ut(weights[None]) * operator.Ut(ones.double()).conj()
    if gains.is_complex():
        return None
    y_bar = operator.Ut(y)
    return gains[0] if _close(operator.U(gains * y_bar), weights * operator.U(y_bar)) else None


def _marked(operator: LinearOperator, recorded: Tensor | None) -> LinearOperator:
    """Which entries of y are measured: the last operator alone decides, as its y is the one that is seen."""
    operator.recorded = recorded
    return operator


def _close(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).norm() <= ROUNDING * b.norm())


def _entries(operator: LinearOperator) -> int:
    return torch.Size(operator.measurement_shape).numel()


def _precision(*operators: LinearOperator) -> torch.dtype:
    coarse = any(isinstance(part, Foreign) and part.H.precision == torch.float32 for part in operators)
    return torch.float32 if coarse else torch.float64


def _beside_identity(outer: LinearOperator, inner: LinearOperator) -> LinearOperator | None:
    for one, other in ((outer, inner), (inner, outer)):
        if isinstance(one, Denoising):
            return Reshaped(other, other.measurement_shape) if other.has_svd else None
    return None


def _separable(outer: LinearOperator, inner: LinearOperator) -> LinearOperator | None:
    """(A_C (x) A_H (x) A_W)(B_C (x) B_H (x) B_W), axis by axis."""
    second, first = separable_factors(outer), separable_factors(inner)
    if first is None or second is None:
        return None
    channel, row, column = (a @ b for a, b in zip(second, first, strict=True))
    product = Separable(inner.image_shape, channel, row, column)
    return (
        product if product.measurement_shape == outer.measurement_shape else Reshaped(product, outer.measurement_shape)
    )


def _circular(outer: LinearOperator, inner: LinearOperator) -> LinearOperator | None:
    """The kernels convolved; where both are even their centre needs one more row or column of zeros."""
    if not (isinstance(outer, CircularBlur) and isinstance(inner, CircularBlur)):
        return None
    return CircularBlur(inner.image_shape, convolved(outer._exact["kernel"], inner._exact["kernel"]))


def _masks(outer: LinearOperator, inner: LinearOperator) -> LinearOperator | None:
    if not (isinstance(outer, MaskedTransform) and isinstance(inner, MaskedTransform)):
        return None
    if outer.transform != "identity":
        return None
    return MaskedTransform(inner.image_shape, outer._exact["weights"] * inner._exact["weights"], inner.transform)


COMPOSITIONS: tuple[Callable[[LinearOperator, LinearOperator], LinearOperator | None], ...] = (
    _beside_identity,
    _separable,
    _circular,
    _masks,
)
