"""report.html: everything about one image in one file that needs no network."""

from __future__ import annotations

import html
import json
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from torch import Tensor

from snips.images import side_by_side
from snips.operators.pictures import framed
from snips.report.colours import colour_map, round_up, scale_end, std_map, std_plane
from snips.report.embedding import data_uri, shown, shrunk
from snips.report.grid import degraded_view
from snips.report.panels import sample_panel
from snips.report.verdicts import verdict_table, verdict_words
from snips.version import __version__

if TYPE_CHECKING:
    from snips.restoration import Restoration


MAP_SIDE = 512  # pixels, about what the page shows: its labels stay sharp


@cache
def template(name: str) -> Template:
    """A page of the package with places to fill."""
    return Template((Path(__file__).parents[1] / "assets" / name).read_text(encoding="utf-8"))


def page(restoration: Restoration, b: int = 0) -> str:
    """The page of image b. Everything that a user may have typed is escaped."""
    alone = restoration[b]
    samples, found = alone.samples[:, 0], alone.faithfulness()
    title = f"{_problem_name(alone)}: {len(samples)} samples"
    panels = [sample_panel(alone.problem, x, 0, k, verdict_words(found, k, 0)) for k, x in enumerate(samples)]
    return template("report.html").substitute(
        title=html.escape(title),
        summary=html.escape(repr(alone)),
        data=_script_json(_viewer_data(alone)),
        panels="".join(panels),
        verdicts=verdict_table(found, 0),
        settings=_settings_rows(alone),
        command=_command(alone),
        version=html.escape(__version__),
    )


def _problem_name(restoration: Restoration) -> str:
    recipe = restoration.problem.operator.recipe
    return recipe.name if recipe is not None else type(restoration.problem.operator).__name__


def _viewer_data(alone: Restoration) -> dict[str, Any]:
    """The pictures of the viewer by name, and the std as numbers for the pointer, of the result of one image."""
    problem = alone.problem
    samples = framed(alone.samples[:, 0], problem.operator)
    mean = samples.clamp(0, 1).mean(0)
    pictures = [(f"sample {k + 1}", shown(x)) for k, x in enumerate(samples)] + [("mean", shown(mean))]
    height, width = side_by_side(mean).shape[-2:]  # as the pictures are laid out
    data: dict[str, Any] = {"size": [height, width], "planes": width // mean.shape[-1]}
    data["degraded"] = data_uri(shown(degraded_view(problem)[0]))
    if problem.truth is not None:
        pictures.append(("original", shown(framed(problem.truth[0], problem.operator))))
    if len(samples) > 1:
        std = side_by_side(framed(alone.std[0], problem.operator))
        data |= _std_data(std)
        pictures.append(("uncertainty", shrunk(colour_map(std_plane(std), data["top"]))))
    data["pictures"] = [{"name": name, "uri": data_uri(picture)} for name, picture in pictures]
    return data


def _std_data(std: Tensor) -> dict[str, Any]:
    """`levels` is a grey picture whose white is the `most`: the page reads numbers from it. Colours end at `top`."""
    plane = std_plane(std)
    most = round_up(float(plane.max()))
    levels = Image.fromarray((plane / most * 255).round().astype(np.uint8))
    return {
        "top": scale_end(plane),
        "most": most,
        "levels": data_uri(shrunk(levels), lossless=True),
        "map": data_uri(shrunk(std_map(std, MAP_SIDE))),
    }


def _script_json(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _settings_rows(restoration: Restoration) -> str:
    problem = restoration.problem
    rows: dict[str, Any] = {"operator": repr(problem.operator), "sigma_0": f"{problem.sigma_0:.6g}"}
    rows |= {name: value for name, value in restoration.settings.items() if name != "command" and value != []}
    return "".join(
        f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(_text(value))}</td></tr>"
        for name, value in rows.items()
    )


def _text(value: Any) -> str:
    """For people: sentences one after the other, settings as they are typed in Python."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "; ".join(value)[:500]
    if isinstance(value, dict) and value:
        return ", ".join(f"{name}={_text(item)}" for name, item in value.items())[:500]
    return str(value)[:500]


def _command(restoration: Restoration) -> str:
    command = restoration.settings.get("command")
    if command is None:
        return "<p>Made from Python: the settings above with the same measurement give the same samples.</p>"
    return f"<pre><code>{html.escape(str(command))}</code></pre>"
