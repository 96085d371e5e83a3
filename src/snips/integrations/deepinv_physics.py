"""deepinv's physics as operators: with their own structure where they have one, else by what they do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from snips.operators import CircularBlur, Colorization, LinearOperator, MaskedTransform, ThinSVD
from snips.operators.linear_map import LinearMap
from snips.operators.svd import Factors

Shape = tuple[int, int, int]


def is_physics(obj: Any) -> bool:
    return _is_a(obj, "LinearPhysics")


def structured(obj: Any, image_shape: Shape) -> LinearOperator | None:
    """The operator with the structure of a DecomposablePhysics, or None; never one that differs from its `A`."""
    if not is_physics(obj):
        if _is_a(obj, "Physics"):
            raise ValueError(f"{type(obj).__name__} is not a deepinv LinearPhysics: only linear operators are sampled")
        return None
    for name, build in STRUCTURES.items():
        if _is_a(obj, name):
            operator = build(obj, image_shape)
            return operator if operator is not None and _agrees(operator, obj) else None
    return None


def physics_map(physics: Any, image_shape: Shape) -> LinearMap:
    """A and A_adjoint of a LinearPhysics, in the precision of its buffers."""
    own = _own_copy(physics).requires_grad_(False)
    cast(own, torch.float32)

    def apply(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def run(x: Tensor) -> Tensor:
            with torch.no_grad():
                out = function(x.to(torch.float32))
            if not isinstance(out, Tensor):
                raise ValueError("a physics that measures a list of tensors: convert its parts, then use snips.stack")
            return out if out.is_complex() else out.to(x.dtype)

        return run

    measured = apply(own.A)(torch.zeros(1, *image_shape))
    return LinearMap(image_shape, tuple(measured.shape[1:]), apply(own.A), apply(own.A_adjoint), torch.float32)


def _own_copy(physics: Any) -> Any:
    """So that later changes of the physics do not change the operator."""
    try:
        return copy.deepcopy(physics)
    except (RuntimeError, TypeError):  # a tensor that is part of a graph, or a random generator
        return physics.clone()


def cast(module: torch.nn.Module, dtype: torch.dtype) -> None:
    """Change the precision; `module.to(dtype)` would drop the imaginary parts of complex buffers."""

    def convert(value: Tensor) -> Tensor:
        if value.is_complex():
            return value.to(dtype.to_complex())
        return value.to(dtype) if value.is_floating_point() else value

    module._apply(convert)


def _is_a(obj: Any, name: str) -> bool:
    """Whether a class of deepinv with this name is among its bases; asked without importing deepinv."""
    return any(b.__name__ == name and b.__module__.startswith("deepinv.") for b in type(obj).__mro__)


def _agrees(operator: LinearOperator, physics: Any) -> bool:
    """A subclass may compute something else than its parents: compare on random images."""
    x = torch.randn(2, *operator.image_shape, generator=torch.Generator().manual_seed(3))
    H = physics_map(physics, operator.image_shape)
    expected = H.forward(x)
    if tuple(expected.shape[1:]) != operator.measurement_shape:
        return False
    return bool((operator(x) - expected).norm() <= 1e-4 * expected.norm() + 1e-12)


def _one_mask(physics: Any) -> Tensor:
    """The mask without its batch axis; 0-dimensional for plain denoising."""
    mask = physics.mask
    if mask is None:
        raise ValueError(f"this {type(physics).__name__} has no mask yet: set one with physics.update(mask=...)")
    if mask.ndim == 4 and len(mask) > 1:
        raise ValueError(
            f"this {type(physics).__name__} has {len(mask)} masks, one for each image: convert one at a time"
        )
    return (mask[0] if mask.ndim == 4 else mask).detach().cpu()


def _masked(transform: str) -> Callable[[Any, Shape], LinearOperator]:
    return lambda physics, shape: MaskedTransform(shape, _one_mask(physics), transform)


def _decomposable(physics: Any, shape: Shape) -> LinearOperator | None:
    """Denoising, whose mask is a number, and other masks; with U and V of somebody's own it will not agree."""
    fits = physics.mask.ndim in (0, 4) and not physics.mask.is_complex()
    return _masked("identity")(physics, shape) if fits else None


def _blur(physics: Any, shape: Shape) -> LinearOperator | None:
    """The whole spectrum instead of deepinv's half, whose coordinates are not an orthonormal basis."""
    kernel = physics.filter
    if kernel is None or len(kernel) > 1:
        return None
    return CircularBlur(shape, kernel[0].detach().cpu())


def _grey(physics: Any, shape: Shape) -> LinearOperator:
    """deepinv's V has one column; a whole basis of colours is needed for what is not measured."""
    return Colorization(shape, tuple(physics.srf.detach().cpu().flatten().tolist()))


def _single_pixel(physics: Any, shape: Shape) -> LinearOperator:
    """Hadamard patterns with y in full size, or an economy SVD of random ones, which is completed."""
    if physics.fast:
        return _masked("hadamard")(physics, shape)
    u, s, vh = (t.detach().cpu().double() for t in (physics.u, physics.mask.flatten(), physics.vh))
    left, right = torch.linalg.qr(u), torch.linalg.qr(vh.T)  # they are orthonormal to float32 only
    U, s, Vt = torch.linalg.svd(left.R * s @ right.R.T)
    matrix = (u * physics.mask.flatten().double()) @ vh

    def forward(x: Tensor) -> Tensor:
        return x @ matrix.T.to(x)

    def adjoint(y: Tensor) -> Tensor:
        return y @ matrix.to(y)

    H = LinearMap((matrix.shape[1],), (len(matrix),), forward, adjoint)
    return ThinSVD(H, Factors(left.Q @ U, s, right.Q @ Vt.T, 0.0), shape)


def _mri(physics: Any, shape: Shape) -> LinearOperator | None:
    """The real and imaginary parts are two channels, with a mask each."""
    return None if physics.three_d or shape[0] != 2 else _masked("fourier")(physics, shape)


# The first name among an object's bases decides.
STRUCTURES: dict[str, Callable[[Any, Shape], LinearOperator | None]] = {
    "Inpainting": _masked("identity"),  # Demosaicing is one
    "BlurFFT": _blur,
    "Decolorize": _grey,
    "SinglePixelCamera": _single_pixel,
    "MRI": _mri,
    "DecomposablePhysics": _decomposable,
}
