"""The table of problems by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from snips.inverse_problem import InverseProblem as InverseProblem  # for others: the design has it in this module
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

Shape = tuple[int, int, int]
Build = Callable[..., LinearOperator]  # make_operator, or one that remembers what it built


@dataclass(frozen=True)
class ProblemEntry:
    """One row of PROBLEMS: a builder that can describe itself."""

    build: Callable[..., LinearOperator]  # build(image_shape, **options)
    summary: str
    options: str = ""  # with their defaults, for people
    origin: str = "snips"  # the package that offers it
    own_scale: bool = False  # its measurements may have any units: neither y nor its noise is held against pixels
    no_picture: str = ""  # why no picture can be a measurement of it
    factor: int | None = 1  # an image is so many times as large as its picture; None: the option `factor` tells
    adds_colour: bool = False  # its pictures are grey, its images have three channels
    mixes_channels: bool = False  # a measured value may depend on several channels
    named_by: str = ""  # an option that tells of no other problem, so that the problem need not be named
    needs_option: bool = False  # it cannot be built without that option

    def __call__(self, image_shape: Shape, **options: Any) -> LinearOperator:
        return self.build(image_shape, **options)


def _inpaint(image_shape: Shape, mask: Tensor | None = None) -> LinearOperator:
    return Inpainting(image_shape, default_inpainting_mask(*image_shape[1:]) if mask is None else mask)


def _deblurring(name: str, border: str, summary: str, options: str, **more: Any) -> ProblemEntry:
    return ProblemEntry(blurs.deblur(name, border), summary, f"{options}, border={border!r}", **more)


def _super_resolution(factor: int) -> ProblemEntry:
    def build(image_shape: Shape, method: str = "block") -> LinearOperator:
        return SuperResolution(image_shape, factor, method)

    return ProblemEntry(build, f"{factor}x larger, from block averages", "method='block'", factor=factor)


def _compressive_sensing(factor: int, share: str) -> ProblemEntry:
    def build(image_shape: Shape, seed: int = 0, transform: str = "auto") -> LinearOperator:
        _, height, width = image_shape
        return CompressiveSensing(image_shape, height * width // factor, transform, seed)

    summary, options = f"from {share} random projections", "seed=0, transform='auto'"
    return ProblemEntry(build, summary, options, no_picture="measures projections, not pixels")


def _matrix(image_shape: Shape, matrix: Tensor) -> LinearOperator:
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
    "inpaint": ProblemEntry(
        _inpaint, "fill hidden pixels", "mask (True = seen; lowest 20/64 of the rows hidden)", named_by="mask"
    ),
    "deblur_uniform": _deblurring("deblur_uniform", "zero", "box blur", "width=5"),
    "deblur_gauss": _deblurring("deblur_gauss", "zero", "Gaussian blur", "std=10, width=5"),
    "deblur_motion": _deblurring("deblur_motion", "circular", "camera movement", "length=9, angle=45"),
    "deblur_kernel": _deblurring(
        "deblur_kernel", "circular", "any 2-D kernel", "kernel", named_by="kernel", needs_option=True
    ),
    "sr2": _super_resolution(2),
    "sr4": _super_resolution(4),
    "sr": ProblemEntry(
        partial(SuperResolution, factor=2),
        "larger by any whole factor",
        "factor=2, method='block'",
        factor=None,
        named_by="factor",
    ),
    "cs4": _compressive_sensing(4, "25 %"),
    "cs8": _compressive_sensing(8, "12.5 %"),
    "cs16": _compressive_sensing(16, "6.25 %"),
    "colorize": ProblemEntry(Colorization, "colours from luminance", "weights", adds_colour=True, mixes_channels=True),
    "mri": ProblemEntry(
        _mri,
        "from part of the Fourier transform",
        "acceleration=4, centre=0.08, seed=0, mask, complex_image",
        no_picture="measures frequencies, not pixels",
    ),
    "matrix": ProblemEntry(
        _matrix,
        "any matrix, of each channel or of all",
        "matrix",
        own_scale=True,
        mixes_channels=True,
        named_by="matrix",
        needs_option=True,
    ),
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
    if entry.needs_option and options.get(entry.named_by) is None:
        raise ValueError(f"{name} needs the option {entry.named_by}: an array, on the command line a file")
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
