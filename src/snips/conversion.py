"""as_operator(): operators of other libraries, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from snips.integrations import deepinv_physics, matrices, pylops
from snips.operators.base import LinearOperator, checked_image_shape
from snips.operators.decompose import decompose
from snips.operators.linear_map import LinearMap
from snips.operators.svd import Progress

Shape = tuple[int, int, int]

# What an object is, and how it becomes a LinearMap. pylops before SciPy, which its operators imitate.
SOURCES: tuple[tuple[Callable[[Any], bool], Callable[[Any, Shape], LinearMap]], ...] = (
    (matrices.is_matrix, matrices.matrix_map),
    (pylops.is_pylops, pylops.pylops_map),
    (matrices.is_scipy_operator, matrices.scipy_map),
    (deepinv_physics.is_physics, deepinv_physics.physics_map),
)


def as_operator(
    obj: Any,
    image_shape: tuple[int, ...],
    *,
    svd: bool | None = None,
    rank: int | None = None,
    cache: bool = True,
    progress: Progress | bool | None = None,
) -> LinearOperator:
    """An operator of another library as a LinearOperator of this one; `.how` says where its SVD comes from.

    Args:
        obj: a NumPy, torch or SciPy sparse matrix, a scipy.sparse.linalg.LinearOperator, a pylops operator, a deepinv
            LinearPhysics, or what a plug-in knows. A matrix with H W columns acts on each channel alone.
        image_shape: (C, H, W) of the images it measures.
        svd: None computes a full SVD up to 4096 on the smaller side of H and none beyond (MatrixFree); True always
            computes one, where needed a truncated one; False never does.
        rank: compute this many singular values only.
        cache: keep a computed SVD on disk, in $SNIPS_CACHE or the user's cache folder.
        progress: True shows a bar on stderr; a function is told what is done, the steps done and their number.

    Random probes refuse what is not linear or has a wrong adjoint.
    """
    shape = checked_image_shape(image_shape)
    if isinstance(obj, LinearOperator):
        if obj.image_shape != shape:
            raise ValueError(f"this operator measures images {obj.image_shape}, not {shape}")
        return obj
    for convert in (deepinv_physics.structured, *_plugged_in()):
        if (operator := convert(obj, shape)) is not None:
            return operator
    for matches, to_map in SOURCES:
        if matches(obj):
            with _watched(progress) as watch:
                options: dict[str, Any] = {"svd": svd, "rank": rank, "cache": cache, "progress": watch}
                return decompose(to_map(obj, shape), shape, name=type(obj).__name__, **options)
    raise ValueError(
        f"a {type(obj).__name__} is no operator that is known: give a matrix, a SciPy LinearOperator, a pylops "
        "operator or a deepinv LinearPhysics"
    )


def _plugged_in() -> list[Callable[[Any, Shape], LinearOperator | None]]:
    from snips.plugins import converters  # reads the installed packages, so only when it is needed

    return converters()


@contextmanager
def _watched(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """A function to report to: the caller's own, a bar on stderr, or none."""
    if progress is not True:
        yield progress or None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("SVD", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
