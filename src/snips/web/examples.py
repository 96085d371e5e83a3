"""Pictures to try the page with, each with settings that suit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from snips.images import example_image, to_picture
from snips.inverse_problem import InverseProblem
from snips.problems import make_operator


@dataclass(frozen=True)
class Example:
    """A picture and what to do with it."""

    file: str
    make: Callable[[], Tensor]  # (1, C, H, W)
    simulate: bool
    problem: str
    sigma: float


def small_face() -> Tensor:
    """The face as a measurement: averages of 4 x 4 pixels, with noise."""
    face = example_image()
    return InverseProblem.simulate(make_operator("sr4", tuple(face.shape[1:])), face, 0.05, seed=1).y


def landscape(height: int = 96, width: int = 128) -> Tensor:
    """Drawn by formulas: a sky that fades, a sun, two ridges of hills."""
    y, x = torch.meshgrid(torch.linspace(0, 1, height), torch.linspace(0, 4 / 3, width), indexing="ij")
    picture = torch.stack([0.35 + 0.5 * y, 0.55 + 0.3 * y, 0.85 - 0.1 * y])
    layers = [
        (((x - 0.95) ** 2 + (y - 0.28) ** 2).sqrt() - 0.11, (0.98, 0.86, 0.45)),
        (0.55 + 0.10 * torch.sin(5 * x) + 0.03 * torch.sin(17 * x) - y, (0.36, 0.45, 0.55)),
        (0.74 + 0.07 * torch.sin(3.1 * x + 2) + 0.02 * torch.sin(23 * x) - y, (0.18, 0.36, 0.24)),
    ]
    for distance, colour in layers:  # inside where the distance is negative; edges one pixel wide
        inside = (0.5 - distance * height).clamp(0, 1)
        picture = picture * (1 - inside) + torch.tensor(colour)[:, None, None] * inside
    return picture[None]


EXAMPLES = {
    "Face, clean": Example("face.png", example_image, simulate=True, problem="deblur_uniform", sigma=0.1),
    "Small face, degraded": Example("small-face.png", small_face, simulate=False, problem="sr4", sigma=0.05),
    "Landscape, clean": Example("landscape.png", landscape, simulate=True, problem="deblur_motion", sigma=0.1),
}
FIRST_EXAMPLE = next(iter(EXAMPLES))


def write_examples(folder: Path) -> None:
    folder.mkdir()
    for example in EXAMPLES.values():
        to_picture(example.make()[0]).save(folder / example.file)
