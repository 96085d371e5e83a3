"""A measurement with its operator and noise level, and the table of problems by name."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import torch
from torch import Tensor

from snips.buffers import in_own_memory
from snips.names import unknown_name
from snips.operators import (
    Colorization,
    CompressiveSensing,
    Denoising,
    Dense,
    FourierSampling,
    Inpainting,
    LinearOperator,
    SuperResolution,
    blurs,
)
from snips.operators.base import Recipe, checked_image_shape
from snips.operators.masks import cartesian_mask, default_inpainting_mask
from snips.plugins import plugins
from snips.streams import Chain, Streams

Shape = tuple[int, int, int]
Build = Callable[..., LinearOperator]  # make_operator, or one that remembers what it built


@dataclass(frozen=True, eq=False)
class InverseProblem:
    """y = H x + z, z ~ N(0, sigma_0^2 I): the measurements of one or more images by one operator.

    Args:
        operator: H. Where its dtype or device is another than y's, a copy that matches is used.
        y: (B, *operator.measurement_shape).
        sigma_0: the standard deviation of the noise, in units of pixel values in [0, 1].
        truth: the clean images (B, C, H, W), where they are known.
        first_image: the index of the first image in a larger collection; random streams are keyed by it.
    """

    operator: LinearOperator
    y: Tensor
    sigma_0: float
    truth: Tensor | None = None
    first_image: int = 0

    def __post_init__(self) -> None:
        check_tensor("y", self.y, self.operator.measurement_shape)
        object.__setattr__(self, "y", in_own_memory(self.y))
        object.__setattr__(self, "sigma_0", checked_sigma_0(self.sigma_0))
        if self.truth is not None:
            check_tensor("truth", self.truth, self.operator.image_shape)
            if len(self.truth) != len(self.y):
                raise ValueError(f"there are {len(self.y)} measurements but {len(self.truth)} true images")
        like = self.operator.like
        if like.dtype != self.y.dtype or like.device != self.y.device:
            matching = copy.deepcopy(self.operator).to(device=self.y.device, dtype=self.y.dtype)
            object.__setattr__(self, "operator", matching)

    @classmethod
    def simulate(cls, operator: LinearOperator, x: Tensor, sigma_0: float, seed: int = 0) -> InverseProblem:
        """Measure the clean images x (B, C, H, W) with noise; image b has a noise stream of its own."""
        check_tensor("x", x, operator.image_shape)
        clean = cls(operator, x.new_zeros(len(x), *operator.measurement_shape), sigma_0, truth=x)
        exact = clean.operator(x)
        # sample -1 keeps the measurement noise apart from the streams of the samplers
        noise = Streams(seed, [Chain(image, -1) for image in range(len(x))]).normal(exact)
        return cls(clean.operator, exact + clean.sigma_0 * noise, clean.sigma_0, truth=x)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, images: SupportsIndex | slice) -> InverseProblem:
        """One image or some neighbours; they keep their random streams."""
        if not isinstance(images, slice):
            first = range(len(self))[images]  # beyond the last an IndexError, which also ends a loop over the images
            images = slice(first, first + 1)
        start, stop, step = images.indices(len(self))
        if step != 1 or stop <= start:
            raise ValueError(f"a part of a problem must hold one or more neighbours of its {len(self)} images")
        truth = None if self.truth is None else self.truth[start:stop]
        return InverseProblem(self.operator, self.y[start:stop], self.sigma_0, truth, self.first_image + start)


def check_tensor(name: str, value: Tensor, shape: tuple[int, ...]) -> None:
    """A floating-point tensor of shape (B, *shape) with finite entries, or a ValueError."""
    if not isinstance(value, Tensor) or value.dtype not in (torch.float32, torch.float64):
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name} must be a tensor of float32 or float64, not {kind}")
    if value.ndim != len(shape) + 1 or tuple(value.shape[1:]) != tuple(shape) or len(value) == 0:
        expected = ", ".join(str(n) for n in ("batch", *shape))
        raise ValueError(f"{name} has shape {tuple(value.shape)}; the operator needs ({expected})")
    if not torch.isfinite(value).all():
        raise ValueError(f"{name} has NaN or Inf in {int((~torch.isfinite(value)).sum())} places: remove them first")


def checked_sigma_0(sigma_0: float) -> float:
    try:
        value = float(sigma_0)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"sigma_0 must be a finite number of at least 0, but is {sigma_0!r}")
    return value


@dataclass(frozen=True)
class ProblemEntry:
    """One row of PROBLEMS: a builder that can describe itself."""

    build: Callable[..., LinearOperator]  # build(image_shape, **options)
    summary: str
    options: str = ""  # with their defaults, for people
    origin: str = "snips"  # the package that offers it
    own_scale: bool = False  # its measurements may have any units: neither y nor its noise is held against pixels

    def __call__(self, image_shape: Shape, **options: Any) -> LinearOperator:
        return self.build(image_shape, **options)


def _inpaint(image_shape: Shape, mask: Tensor | None = None) -> LinearOperator:
    return Inpainting(image_shape, default_inpainting_mask(*image_shape[1:]) if mask is None else mask)


def _super_resolution(factor: int) -> Callable[..., LinearOperator]:
    def build(image_shape: Shape, method: str = "block") -> LinearOperator:
        return SuperResolution(image_shape, factor, method)

    return build


def _any_super_resolution(image_shape: Shape, factor: int = 2, method: str = "block") -> LinearOperator:
    return SuperResolution(image_shape, factor, method)


def _compressive_sensing(factor: int) -> Callable[..., LinearOperator]:
    def build(image_shape: Shape, seed: int = 0, transform: str = "auto") -> LinearOperator:
        _, height, width = image_shape
        return CompressiveSensing(image_shape, height * width // factor, transform, seed)

    return build


def _matrix(image_shape: Shape, matrix: Tensor | None = None) -> LinearOperator:
    if matrix is None:
        raise ValueError("matrix needs the option matrix: an (M, N) array of numbers")
    return Dense(matrix, image_shape)


def _mri(
    image_shape: Shape,
    acceleration: float = 4,
    centre: float = 0.08,
    seed: int = 0,
    mask: Tensor | None = None,
    complex_image: bool | None = None,
) -> LinearOperator:
    if mask is None:
        mask = cartesian_mask(*image_shape[1:], acceleration, centre, seed)
    return FourierSampling(image_shape, mask, complex_image)


PROBLEMS: dict[str, ProblemEntry] = {
    "denoise": ProblemEntry(Denoising, "remove noise"),
    "inpaint": ProblemEntry(_inpaint, "fill hidden pixels", "mask (True = seen; lowest 20/64 of the rows hidden)"),
    "deblur_uniform": ProblemEntry(blurs.deblur("deblur_uniform", "zero"), "box blur", "width=5, border='zero'"),
    "deblur_gauss": ProblemEntry(
        blurs.deblur("deblur_gauss", "zero"), "Gaussian blur", "std=10, width=5, border='zero'"
    ),
    "deblur_motion": ProblemEntry(
        blurs.deblur("deblur_motion", "circular"), "camera movement", "length=9, angle=45, border='circular'"
    ),
    "deblur_kernel": ProblemEntry(
        blurs.deblur("deblur_kernel", "circular"), "any 2-D kernel", "kernel, border='circular'"
    ),
    "sr2": ProblemEntry(_super_resolution(2), "2x larger, from block averages", "method='block'"),
    "sr4": ProblemEntry(_super_resolution(4), "4x larger, from block averages", "method='block'"),
    "sr": ProblemEntry(_any_super_resolution, "larger by any whole factor", "factor=2, method='block'"),
    "cs4": ProblemEntry(_compressive_sensing(4), "from 25 % random projections", "seed=0, transform='auto'"),
    "cs8": ProblemEntry(_compressive_sensing(8), "from 12.5 % random projections", "seed=0, transform='auto'"),
    "cs16": ProblemEntry(_compressive_sensing(16), "from 6.25 % random projections", "seed=0, transform='auto'"),
    "colorize": ProblemEntry(Colorization, "colours from luminance", "weights"),
    "mri": ProblemEntry(
        _mri, "from part of the Fourier transform", "acceleration=4, centre=0.08, seed=0, mask, complex_image"
    ),
    "matrix": ProblemEntry(_matrix, "any matrix, of each channel or of all", "matrix", own_scale=True),
}


def all_problems() -> dict[str, ProblemEntry]:
    """PROBLEMS, and those that installed packages offer as `snips.problems`; a name of ours is never replaced."""
    found = {}
    for name, plugin in plugins("snips.problems", taken=PROBLEMS).items():
        entry = plugin.value if isinstance(plugin.value, ProblemEntry) else ProblemEntry(plugin.value, plugin.summary)
        found[name] = replace(entry, origin=plugin.origin)
    return {**PROBLEMS, **found}


def problem_entry(name: str) -> ProblemEntry:
    """The row of a problem, ours or a plug-in's."""
    known = PROBLEMS if isinstance(name, str) and name in PROBLEMS else all_problems()
    if not isinstance(name, str) or name not in known:
        raise ValueError(unknown_name("problem", str(name), list(known)))
    return known[name]


def make_operator(name: str, image_shape: tuple[int, ...], **options: Any) -> LinearOperator:
    """Build the operator of a problem for images (C, H, W), ours or a plug-in's; it remembers how, in `.recipe`."""
    entry, shape = problem_entry(name), checked_image_shape(image_shape)
    try:
        operator = entry(shape, **options)
    except (TypeError, OverflowError) as error:  # an option that is not known, of the wrong type, or far too large
        given = _shown_options(entry, options)
        raise ValueError(f"{name} cannot take {given[:200]}; its options: {entry.options or 'none'}") from error
    if not isinstance(operator, LinearOperator):
        raise ValueError(f"{name} of {entry.origin} built a {type(operator).__name__}, not a LinearOperator")
    operator.recipe = Recipe(name, shape, options)
    return operator


def _shown_options(entry: ProblemEntry, options: dict[str, Any]) -> str:
    """For people: those that the problem does not know, or all where it knows them; of arrays the shape."""
    named = [key for key in options if key not in re.findall(r"\w+", entry.options)] or list(options)
    shapes = {key: tuple(getattr(options[key], "shape", ())) for key in named}
    return ", ".join(f"{key} of shape {shapes[key]}" if shapes[key] else f"{key}={options[key]!r}" for key in named)
