"""Commands: degrade, problems."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from snips.cli.app import ForceOption, JsonOption, SeedOption, app, out, say
from snips.cli.grouped import grouped
from snips.cli.problem_options import ProblemOptions
from snips.cli.restore_run import note
from snips.photos.photo import load_photo
from snips.posing import measurement_files
from snips.posing.from_files import DEFAULT_SIGMA, problem_name
from snips.posing.grey import as_grey
from snips.posing.pictures import simulate
from snips.problems import all_problems, problem_entry


@dataclass(frozen=True)
class DegradeOptions(ProblemOptions):
    """What shall be measured: the noise is not estimated, but added."""

    sigma: Annotated[
        str, typer.Option("--sigma", "-s", help="Standard deviation of the noise, for pixels in [0, 1].")
    ] = str(DEFAULT_SIGMA)


@app.command()
@grouped
def degrade(
    image: Annotated[Path, typer.Argument(help="A clean image.")],
    stated: DegradeOptions,
    seed: SeedOption = 0,
    output: Annotated[Path, typer.Option("--out", help=".npz keeps all; .png where y is a picture.")] = Path(
        "measured.npz"
    ),
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure a clean image with noise, for trying things out.

    Example: `snips degrade clean.png --problem cs4 --sigma 0.1 --out measured.npz`
    """
    options = stated.read_options()
    name = problem_name(stated.problem, options)
    photo = as_grey(load_photo(image, stated.read_range()), name, options)
    posed = simulate(photo, name, stated.read_sigma(problem_entry(name).own_scale) or 0.0, seed, options)
    task = posed.problem
    for text in posed.notes:
        note(text, as_json)
    if posed.alpha is not None:
        note("the picture's transparency is not part of the measurement, and left out", as_json)
    measurement_files.save_measurement(task, output, force)
    shape = list(task.operator.measurement_shape)
    if as_json:
        facts = {"file": str(output), "problem": name, "sigma_0": task.sigma_0, "measurement_shape": shape}
        print(json.dumps(facts))
    else:
        say(f"{output}: {measurement_files.entries(task)}, sigma_0 = {task.sigma_0:g}")


@app.command()
def problems(as_json: JsonOption = False) -> None:
    """List the problems by name, with the packages they come from."""
    if as_json:
        facts = {n: {"summary": e.summary, "options": e.options, "origin": e.origin} for n, e in all_problems().items()}
        print(json.dumps(facts))
        return
    table = Table("name", "what it does", "options", "from")
    for name, entry in all_problems().items():
        table.add_row(name, entry.summary, entry.options, entry.origin)
    out.print(table)
    say("Give options as --option width=7. A blurred photo has border='open', unless you give another.")
