"""The files of a result that people open: PNGs, an animation, the grid, and the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from torch import Tensor

from snips.files import new_file
from snips.images import to_picture
from snips.operators.pictures import framed
from snips.report.colours import std_map
from snips.report.embedding import shrunk
from snips.report.grid import STD_SCALE, comparison_grid, degraded_view
from snips.report.page import page

if TYPE_CHECKING:
    from snips.restoration import Restoration

# What a later result may replace.
OWN_PATTERNS = (
    *(f"sample_{'[0-9]' * digits}.png" for digits in (2, 3, 4)),
    *(f"{name}.png" for name in ("mean", "std", "std_map", "degraded", "truth", "grid")),
    "samples.webp",
    "report.html",
)
FRAME = 500  # milliseconds that each sample is shown


def write_pictures(restoration: Restoration, folder: Path) -> None:
    """One set of pictures and a page; in a folder for each image where there are several."""
    for alone, place in _images(restoration, folder):
        _write_image(alone, place)
    comparison_grid(restoration.problem, restoration.samples).save(folder / "grid.png")


def rewrite_pages(restoration: Restoration, folder: Path) -> None:
    """The page of each image again, beside pictures that stay as they are; each is exchanged whole."""
    for alone, place in _images(restoration, folder):
        with new_file(place / "report.html") as work:
            work.write_text(page(alone), encoding="utf-8")


def _images(restoration: Restoration, folder: Path) -> Iterator[tuple[Restoration, Path]]:
    """The result of each image alone, and where it is shown."""
    images = len(restoration.problem)
    for b in range(images):
        yield restoration[b], folder if images == 1 else folder / f"image_{b:03d}"


def _write_image(alone: Restoration, place: Path) -> None:
    """Of the result of one image: what is computed for its pictures is not computed for the others again."""
    place.mkdir(exist_ok=True)
    problem, transparency = alone.problem, None if alone.alpha is None else alone.alpha[0]
    samples = framed(alone.samples[:, 0], problem.operator)
    results = {f"sample_{k:02d}": sample for k, sample in enumerate(samples)}
    results |= {"mean": samples.clamp(0, 1).mean(0), "degraded": degraded_view(problem)[0]}
    if problem.truth is not None:
        results["truth"] = framed(problem.truth[0], problem.operator)
    for name, image in results.items():
        with_alpha(to_picture(image), transparency).save(place / f"{name}.png")
    if len(samples) > 1:
        std = framed(alone.std[0], problem.operator)
        to_picture(STD_SCALE * std).save(place / "std.png")
        std_map(std).save(place / "std_map.png")
        _save_animation(samples, place / "samples.webp")
    (place / "report.html").write_text(page(alone), encoding="utf-8")


def with_alpha(picture: Image.Image, alpha: Tensor | None) -> Image.Image:
    """The picture with the transparency (1, H, W) of the photo it came from, where both have one size."""
    if alpha is None or tuple(alpha.shape[-2:]) != (picture.height, picture.width):
        return picture
    transparent = picture.convert("RGBA" if picture.mode == "RGB" else "LA")
    transparent.putalpha(to_picture(alpha))
    return transparent


def _save_animation(samples: Tensor, path: Path) -> None:
    """Flip through the samples (K, C, H, W): what moves is what y leaves open."""
    frames = [shrunk(to_picture(sample)).convert("RGB") for sample in samples]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=FRAME, loop=0, quality=90, method=2)
