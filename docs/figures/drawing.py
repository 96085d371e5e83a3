"""What the figures share: one look, files that do not change unless the picture does, and measured values as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

from snips import Restoration
from snips.priors.digest import weights_digest
from snips.priors.registry import load_prior
from snips.report.colours import std_map
from snips.report.grid import GAP, HEADER

DOCS = Path(__file__).parents[1]
IMAGES = DOCS / "images"
VALUES = Path(__file__).parent
BLUE, ORANGE, GREEN, GREY = "#3949ab", "#ef6c00", "#2e7d32", "#757575"

plt.rcParams.update(
    {
        "svg.hashsalt": "snips",  # else element names are random
        "svg.fonttype": "path",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
    }
)


def save_figure(figure: Figure, name: str) -> None:
    """docs/images/NAME.svg, the same bytes each time."""
    path = IMAGES / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None}, dpi=100)
    plt.close(figure)
    print(path.relative_to(DOCS.parent), path.stat().st_size // 1024, "KiB")


def save_values(name: str, command: str, results: Any, prior: str | None = None) -> None:
    """Measured values, with the command that made them and a digest of the bundled weights it used, if any."""
    record = {"command": command, "results": results}
    if prior is not None:
        record["weights"] = {prior: weights_digest(load_prior(prior))}
    (VALUES / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def named_std_map(result: Restoration, height: int) -> Image.Image:
    """The standard deviation in colours with a bar, under its name, for the end of a row of pictures of that height."""
    coloured = std_map(result.std[0])
    shown = height - HEADER - GAP
    coloured = coloured.resize((coloured.width * shown // coloured.height, shown), Image.Resampling.LANCZOS)
    picture = Image.new("RGB", (coloured.width + GAP, height), "white")
    picture.paste(coloured, (0, HEADER))
    place = (shown / 2, HEADER / 2)
    ImageDraw.Draw(picture).text(place, "std", fill="black", anchor="mm", font=ImageFont.load_default())
    return picture
