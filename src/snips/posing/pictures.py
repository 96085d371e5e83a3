"""A photo as an inverse problem: as the measurement itself, or as a clean image that is measured first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from snips.images import centre_crop
from snips.inverse_problem import InverseProblem
from snips.operators import Dense, Inpainting, LinearOperator
from snips.operators.blurs import KERNELS, OPEN, unseen
from snips.operators.pictures import framed
from snips.photos.decoding import MAX_PIXELS
from snips.photos.photo import Photo, enlarged_alpha, grey_if_equal
from snips.posing.noise import NoiseEstimate, estimate_noise
from snips.posing.options import checked_options
from snips.problems import PROBLEMS, Build, make_operator, problem_entry

AUTO = "auto"
NEEDS_MASK = (
    "inpaint needs to know which pixels of this picture were seen: give --mask, an image that is white there, or in "
    'Python operator=snips.make_operator("inpaint", image_shape, mask=...)'
)


@dataclass(frozen=True, eq=False)
class PhotoProblem:
    """A problem, and what belongs to the photo but not to the mathematics."""

    problem: InverseProblem
    alpha: Tensor | None = None  # (B, 1, H, W), at the size of the pictures of the result
    noise: NoiseEstimate | None = None  # where sigma_0 was not given
    notes: tuple[str, ...] = ()


def pose(
    photo: Photo,
    problem: str | LinearOperator,
    sigma_0: float | str,
    options: dict[str, Any],
    image_shape: tuple[int, int, int] | None = None,
    build: Build = make_operator,
) -> PhotoProblem:
    """Take the photo itself as y; sigma_0 may be "auto", and image_shape is needed only where y leaves it open."""
    if isinstance(problem, str):
        photo = _prepared(photo, problem)
        operator = _operator_of(photo, problem, options, image_shape, build)
    else:
        operator = problem
    y = as_y(photo.pixels, operator, problem if isinstance(problem, str) else type(operator).__name__)
    noise = None
    if sigma_0 == AUTO:
        noise = estimate_noise(operator, y, step=photo.step, lossy=photo.lossy)
    elif isinstance(sigma_0, str):
        raise ValueError(f"sigma must be a number or auto, not {sigma_0!r}")
    alpha = None if photo.alpha is None else _alpha(photo.alpha, operator)
    known = noise.sigma_0 if noise is not None else float(sigma_0)
    if isinstance(problem, str):
        _check_noise(known, problem)
    return PhotoProblem(InverseProblem(operator, y, known), alpha, noise, (*photo.notes, *_remarks(operator)))


def _operator_of(
    photo: Photo, problem: str, options: dict[str, Any], image_shape: tuple[int, int, int] | None, build: Build
) -> LinearOperator:
    """H of a problem by name, for a photo that is the measurement."""
    if problem == "inpaint" and options.get("mask") is None:
        raise ValueError(NEEDS_MASK)
    if problem in KERNELS and image_shape is None:
        options = {**options, "border": options.get("border", OPEN)}  # the scene of a photo goes on beyond it
    shape = image_shape or restored_shape(problem, tuple(photo.pixels.shape[1:]), options)
    return build(problem, shape, **checked_options(problem, shape, options))


def _check_noise(sigma_0: float, problem: str) -> None:
    if sigma_0 > 1 and not problem_entry(problem).own_scale:
        raise ValueError(
            f"a noise of {sigma_0:g} is more than the whole range of pixels, which is 0 to 1 here: is it meant for 0 "
            f"to 255? Then give {sigma_0 / 255:.4g}"
        )


def simulate(
    photo: Photo,
    problem: str,
    sigma_0: float | str,
    seed: int,
    options: dict[str, Any],
    build: Build = make_operator,
) -> PhotoProblem:
    """Take the photo as the truth and measure it with noise."""
    if isinstance(sigma_0, str):
        raise ValueError(f"a simulation needs to know its noise: give sigma as a number, not {sigma_0!r}")
    x, alpha, notes = photo.pixels, photo.alpha, photo.notes
    factor = _factor(problem, options)
    if isinstance(factor, int) and factor > 1 and any(side % factor for side in x.shape[-2:]):
        x, alpha = centre_crop(x, factor), None if alpha is None else centre_crop(alpha, factor)
        notes = (*notes, f"cropped to {x.shape[-1]} x {x.shape[-2]} pixels, which the factor {factor} divides")
    if 0 in x.shape:
        raise ValueError(f"the image is smaller than the factor {factor}")
    if problem_entry(problem).adds_colour and x.shape[1] == 1:
        raise ValueError(
            f"{problem} has no colour to find: the picture is grey, so take one in colour, or leave out --simulate"
        )
    operator = build(problem, tuple(x.shape[1:]), **checked_options(problem, tuple(x.shape[1:]), options))
    simulated = InverseProblem.simulate(operator, x.contiguous(), sigma_0, seed)
    alpha = None if alpha is None else framed(alpha, operator)
    return PhotoProblem(simulated, alpha, None, (*notes, *_remarks(operator)))


def _remarks(operator: LinearOperator) -> list[str]:
    """What is allowed, but surely not meant."""
    if isinstance(operator, Inpainting) and bool((operator.singular_values > 0).all()):
        return ["the mask hides no pixel: only noise is removed"]
    if any(operator.surroundings):
        _, height, width = operator.image_shape
        sampled = f"{width} x {height} pixels are sampled and those of the picture shown"
        return [f"the blur reaches beyond the picture, so {sampled}; the option border=zero or circular says otherwise"]
    return []


def restored_shape(problem: str, picture: tuple[int, ...], options: dict[str, Any]) -> tuple[int, int, int]:
    """The shape of the image whose measurement is a picture (C, H, W)."""
    if reason := problem_entry(problem).no_picture:
        raise ValueError(
            f"a picture is not a measurement of {problem}, which {reason}: give its numbers as .npy with --shape (in "
            "Python with operator=snips.make_operator(...)), what `snips degrade` wrote, or a clean image with "
            "--simulate"
        )
    channels, height, width = picture
    matrix = options.get("matrix")
    if isinstance(matrix, Tensor) and matrix.shape[-1] not in (height * width, channels * height * width):
        raise ValueError(
            f"the matrix has {matrix.shape[-1]} columns: say with --shape C,H,W of what image they are the pixels"
        )
    factor = _factor(problem, options)
    if not isinstance(factor, int) or isinstance(factor, bool) or factor < 1:
        raise ValueError(f"the factor must be a whole number of at least 1, but is {factor!r}")
    if height * width * factor**2 > MAX_PIXELS:
        raise ValueError(f"a factor of {factor} asks for more than {MAX_PIXELS:,} pixels: choose a smaller one")
    rows, columns = unseen(problem, options)
    return 3 if problem_entry(problem).adds_colour else channels, height * factor + rows, width * factor + columns


def _alpha(alpha: Tensor, operator: LinearOperator) -> Tensor:
    """The transparency at the size of the pictures that are shown."""
    left, right, above, below = operator.surroundings
    _, height, width = operator.image_shape
    return enlarged_alpha(alpha, height - above - below, width - left - right)


def _factor(problem: str, options: dict[str, Any]) -> Any:
    factor = problem_entry(problem).factor
    return options.get("factor", 2) if factor is None else factor


def _prepared(photo: Photo, problem: str) -> Photo:
    """What adds colour starts from grey; a grey picture that was saved with three equal channels is one."""
    if not problem_entry(problem).adds_colour or photo.pixels.shape[1] == 1:
        return photo
    grey = grey_if_equal(photo.pixels, photo.step)
    if grey is None:
        raise ValueError(f"{problem} starts from a grey picture, but this one has colours: take another problem")
    return Photo(grey, photo.alpha, photo.step, photo.lossy, (*photo.notes, "its three channels are equal: grey"))


def as_y(pixels: Tensor, operator: LinearOperator, name: str) -> Tensor:
    """Pixels (B, C, h, w), or numbers in any shape, as the operator's measurement."""
    if isinstance(operator, Inpainting) and tuple(pixels.shape[1:]) == operator.image_shape:
        return operator(pixels)
    wanted = operator.measurement_shape
    if tuple(pixels.shape[1:]) == wanted:
        return pixels
    if isinstance(operator, Dense) and pixels[0].numel() == torch.Size(wanted).numel():
        return pixels.reshape(len(pixels), *wanted)
    known = f"{name} of images {operator.image_shape}" if name in PROBLEMS else name
    raise ValueError(f"{tuple(pixels.shape[1:])} is not a measurement of {known}: that has the shape {wanted}")
