"""Grey pictures that were saved with three equal channels: as colours, a prior would colour them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from snips.operators import LinearOperator
from snips.photos.photo import Photo
from snips.problems import PROBLEMS


def as_grey(photo: Photo, problem: str | LinearOperator, options: dict[str, Any]) -> Photo:
    """The photo with one channel where it has three equal ones and nothing else in the problem is in colour."""
    pixels = photo.pixels
    if pixels.shape[1] != 3 or not bool((pixels == pixels[:, :1]).all()) or _needs_colour(problem, options):
        return photo
    notes = (*photo.notes, "its three channels are equal: taken as grey")
    return replace(photo, pixels=pixels[:, :1].contiguous(), notes=notes)


def _needs_colour(problem: str | LinearOperator, options: dict[str, Any]) -> bool:
    if isinstance(problem, LinearOperator):
        return problem.image_shape[0] != 1
    by_channel = any(len(getattr(value, "shape", ())) == 3 and len(value) == 3 for value in options.values())
    return by_channel or problem not in PROBLEMS or PROBLEMS[problem].mixes_channels
