"""Command: batch."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.progress import TimeRemainingColumn

from snips.batch import RunFolder, RunSettings, read_items, run_batch, stacks
from snips.batch.folders import source_name
from snips.batch.runs import Standing
from snips.batch.scores import Scores
from snips.batch.work import ItemOutcome, check_prior_precision, untiled_pixels, weights_digests
from snips.cli.app import ForceOption, JsonOption, app, one_line, say
from snips.cli.grouped import grouped
from snips.cli.problem_options import FileOptions
from snips.cli.progress import Watch
from snips.cli.sampler_options import SamplingOptions
from snips.posing.from_files import problem_name
from snips.problems import problem_entry
from snips.results.checkpoints import SECONDS
from snips.running.costs import duration, fitting_pixels
from snips.running.devices import pick_device
from snips.running.sampler_settings import doubt_about

LINE_SECONDS = 10.0  # between two lines of progress where there is no terminal


@dataclass(frozen=True)
class ItemOptions(FileOptions):
    """How items were measured that say nothing of their own."""

    sigma: Annotated[str | None, typer.Option("--sigma", "-s", help="The noise, or `auto` (default).")] = None

    def told(self) -> dict[str, Any]:
        """What a manifest's columns could say; wrong options end the run here, and not item by item."""
        options = self.read_options()
        if self.problem is not None:
            problem_entry(self.problem)
        level = self.read_sigma(problem_entry(problem_name(self.problem, options)).own_scale)
        self.read_range()
        told = {"problem": self.problem, "sigma": level, "simulate": self.simulate or None, "mask": self.mask}
        told |= {"kernel": self.kernel, "factor": self.factor, "matrix": self.matrix}
        told |= {"shape": self.shape, "range": self.values}
        told |= {f"option.{name}": value for name, value in self.read_pairs().items()}
        return {name: _text(value) for name, value in told.items() if value is not None}


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


@app.command()
@grouped
def batch(
    source: Annotated[Path, typer.Argument(help="A folder, a .csv or .parquet manifest, a .zarr or .h5 array.")],
    output: Annotated[Path, typer.Option("--out", help="The folder of the run.")],
    stated: ItemOptions,
    sampling: SamplingOptions,
    dataset: Annotated[str | None, typer.Option(help="Which array of a .zarr or .h5 file.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads for each item; fixed for the run.")] = None,
    engine: Annotated[
        str, typer.Option(help="`local`, or `ray`: on a cluster, or all cores of this machine.")
    ] = "local",
    address: Annotated[str | None, typer.Option(help="ray: of an existing cluster; else one is started here.")] = None,
    checkpoint: Annotated[float, typer.Option(min=0, help="Seconds between two states on the disk.")] = SECONDS,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Restore every measurement of a folder, a manifest or an array. Stopped in whatever way, the same command goes on.

    Examples:

    `snips batch measurements --problem sr4 --sigma 0.05 --out restored`

    `snips batch manifest.csv --engine ray --out restored`
    """
    told = stated.told()
    check_prior_precision(sampling.prior, sampling.precision)
    stacks.optional("pyarrow", "the table of scores")
    if doubt := doubt_about(sampling.sampler, sampling.checked_settings()):
        one_line(f"warning: {doubt}")
    folder = RunFolder(output, checkpoint)
    recorded, where = {} if force else folder.recorded(), pick_device(sampling.device)
    machine = _machine(recorded, sampling.prior, threads, where, engine)
    settings = _settings(sampling, source_name(source, output, dataset), machine)
    items = read_items(source, told, output, dataset)
    try:
        with _Watch(quiet=as_json) as watch:
            scores = run_batch(
                items, folder, settings, engine=engine, address=address, force=force, progress=watch.update
            )
    except KeyboardInterrupt:
        one_line(f"stopped: {output} holds what is finished, and the same command goes on")
        raise typer.Exit(130) from None
    _report(scores, output, as_json)


def _settings(sampling: SamplingOptions, source: str, machine: dict[str, Any]) -> RunSettings:
    """What is the same for all items."""
    return RunSettings(
        seed=sampling.seed, samples=sampling.samples, sampler=sampling.sampler, sampler_options=sampling.named,
        prior=sampling.prior, prior_weights=weights_digests(sampling.prior), chunk=sampling.chunk,
        precision=sampling.precision, tile=sampling.tile, source=source, **machine,
    )  # fmt: skip


def _machine(
    recorded: dict[str, Any], prior: str | None, threads: int | None, where: torch.device, engine: str
) -> dict[str, Any]:
    """What this machine decides where a run begins, and run.json keeps: all of it changes the rounding.

    On Ray its memory is shared by as many workers as its cores hold; other nodes are taken to be like it.
    """
    each = int(threads or recorded.get("threads", torch.get_num_threads()))
    workers = max(1, (os.cpu_count() or 1) // each) if engine == "ray" else 1
    if "untiled_pixels" in recorded:
        untiled = recorded["untiled_pixels"]
    else:
        untiled = untiled_pixels(prior, workers) if where.type == "cpu" else None
    return {
        "chunk_pixels": recorded.get("chunk_pixels", fitting_pixels()),
        "threads": each,
        "device": str(where),
        "untiled_pixels": untiled,
    }


class _Watch(Watch):
    """Items done, their rate and the time left; in lines only now and then."""

    def __init__(self, quiet: bool) -> None:
        super().__init__("restoring", quiet, TimeRemainingColumn())
        self.started, self.told, self.quiet = time.monotonic(), 0.0, quiet

    def update(self, standing: Standing, outcome: ItemOutcome | None) -> None:
        if outcome is not None and outcome.error is not None and not self.quiet:
            one_line(f"{outcome.key}: {outcome.error}")
        done, seconds = standing.before + standing.done, time.monotonic() - self.started
        rate = f"{60 * standing.done / seconds:.3g} a minute" if standing.done else "restoring"
        self.show(rate, done, standing.total)
        if time.monotonic() - self.told > LINE_SECONDS or done == standing.total:
            self.told = time.monotonic()
            self.line(f"{done} of {standing.total}, {standing.failed} failed, {rate}, {_left(standing, seconds)}")


def _left(standing: Standing, seconds: float) -> str:
    """How long the rest takes at the rate so far."""
    remaining = standing.total - standing.before - standing.done
    if not remaining:
        return f"{duration(seconds)} in all"
    return f"{duration(seconds / standing.done * remaining)} left" if standing.done else "an unknown time left"


def _report(scores: Scores, output: Path, as_json: bool) -> None:
    """Exit code 1 where items failed: the others have their results."""
    failed = len(scores.failed)
    if as_json:
        counts = {"items": len(scores.rows), "failed": failed, "warnings": len(scores.warnings)}
        print(json.dumps({"folder": str(output), **counts}))
    else:
        for warning in scores.warnings:
            one_line(f"warning: {warning}")
        say(f"{len(scores.rows) - failed} of {len(scores.rows)} restored, {failed} failed")
        say(f"{output}: summary.html shows all; scores.parquet has the figures, items/ the results")
    if failed:
        raise typer.Exit(1)
