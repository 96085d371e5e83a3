"""Command: restore."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from snips.cli.app import ForceOption, JsonOption, app, say, typed_command
from snips.cli.grouped import grouped
from snips.cli.problem_options import FileOptions, with_sigma
from snips.cli.restore_plan import RestorePlan
from snips.cli.restore_run import RestoreRun, discard, note, recorded, save_somewhere, uninterrupted
from snips.cli.sampler_options import SamplingOptions
from snips.posing.from_files import Said, posed_problem, problem_name, read_shape
from snips.posing.measurement_files import is_measurement
from snips.posing.pictures import PhotoProblem
from snips.priors import Prior
from snips.priors.choice import choose_prior, misfit, prior_for, takes_grey
from snips.priors.precision import with_precision
from snips.problems import problem_entry
from snips.restoration import Restoration, sampler_for
from snips.results import storage
from snips.results.checkpoints import Checkpoint
from snips.running import costs
from snips.running.devices import pick_device
from snips.running.sampler_settings import doubt_about
from snips.running.verification import check_samples

ESTIMATE_FROM = 256 * 256  # pixels; from here on the cost is estimated first


@dataclass(frozen=True)
class ResultOptions:
    """Where the result goes, and what becomes of that which is there already."""

    output: Annotated[Path, typer.Option("--out", help="A new folder for the results.")] = Path("restored")
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep states on the disk: killed, the same command goes on.")
    ] = False
    force: ForceOption = False

    def check(self, image: Path) -> None:
        storage.check_target(self.output, self.force or self.resume)
        if image.parent.resolve() == self.output.resolve():
            raise ValueError(f"{image} lies in the folder for the results: choose another folder with --out")

    def checkpoint(self) -> Checkpoint | None:
        """The state on the disk, in a hidden folder beside the results."""
        if not self.resume:
            return None
        return Checkpoint(self.output.parent / f".{self.output.name}.partial" / "state.safetensors")

    def is_finished(self) -> bool:
        """Whether the folder should hold the result of an earlier run of the same command."""
        return self.resume and not self.force and self.output.exists()


@app.command(name="restore")
@grouped
def restore_command(
    ctx: typer.Context,
    image: Annotated[Path, typer.Argument(help="The measurement: a picture, .npy, .npz, or from `snips degrade`.")],
    *,
    stated: FileOptions,
    sampling: SamplingOptions,
    verify: Annotated[bool, typer.Option("--verify", help="Repeat with twice the calls: did the result move?")] = False,
    results: ResultOptions,
    as_json: JsonOption = False,
) -> None:
    """Restore a photo or a measurement: several sharp samples, their mean, and a map of what is uncertain.

    Examples:

    `snips restore small.png --problem sr4 --sigma 0.05`

    `snips restore scratched.png --mask mask.png`

    `snips restore clean.png --problem deblur_uniform --sigma 0.1 --simulate`

    `snips restore measured.npz --samples 16 --out results`
    """
    results.check(image)
    settings = sampling.checked_settings()
    if verify:
        check_samples(sampling.samples)
    posed, level = _posed(image, stated, sampling)
    costs.check_results(posed.problem, sampling.samples)
    prior = with_precision(_prior(sampling.prior, posed.problem.operator.image_shape, as_json), sampling.precision)
    command, where = with_sigma(typed_command(ctx), stated.sigma, level), pick_device(sampling.device)
    plan = RestorePlan(posed, prior, sampling, settings, command, where, results.checkpoint(), quiet=as_json)
    if results.is_finished():
        result, code = _completed(plan, results.output, verify)
    else:
        result, code = _sampled(plan, results, verify)
    _report(result, results.output, as_json)
    if code:
        raise typer.Exit(code)


def _posed(image: Path, stated: FileOptions, sampling: SamplingOptions) -> tuple[PhotoProblem, float | str | None]:
    """The problem, and the noise as it was meant."""
    options = stated.read_options()
    # a stored measurement knows its problem, and checks the noise itself
    own_scale = is_measurement(image) or problem_entry(problem_name(stated.problem, options)).own_scale
    level, shape, values = stated.read_sigma(own_scale), read_shape(stated.shape), stated.read_range()
    grey = takes_grey(sampling.prior)
    said = Said(stated.problem, level, stated.simulate, sampling.seed, options, values, shape, grey)
    return posed_problem(image, said), level


def _prior(name: str | None, image_shape: tuple[int, int, int], quiet: bool) -> Prior:
    """The prior by name, or the one that fits; what is used and what to expect of it is said."""
    if name is None:
        name, reason = choose_prior(image_shape)
        note(f"prior: {name} ({reason})", quiet)
    prior = prior_for(name, image_shape)
    if warning := misfit(prior, image_shape):
        note(f"warning: {warning}", quiet=False)
    return prior


def _completed(plan: RestorePlan, folder: Path, verify: bool) -> tuple[Restoration, int]:
    """The result that is there already, and the exit code."""
    run = plan.run(recorded(folder, plan.checkpoint, finished=True))
    storage.sweep(folder)
    result, code = run.completed(folder, verify, plan.quiet)
    discard(plan.checkpoint)
    return result, code


def _sampled(plan: RestorePlan, results: ResultOptions, verify: bool) -> tuple[Restoration, int]:
    """The result, which is saved, and the exit code."""
    run = _begun(plan, results)
    _tell(plan.posed, plan.quiet)
    if doubt := doubt_about(run.sampler, run.settings):
        note(f"warning: {doubt}", quiet=False)
    _tell_cost(run, plan.quiet)
    result, code = run.sampled(verify, plan.quiet)
    with uninterrupted():
        save_somewhere(result, results.output, results.force)
        discard(plan.checkpoint)
    return result, code


def _begun(plan: RestorePlan, results: ResultOptions) -> RestoreRun:
    """The run that goes on from the state on the disk, or a new one; another's state gives way only when forced."""
    checkpoint = plan.checkpoint
    run = plan.run(recorded(results.output, checkpoint, finished=False))
    if checkpoint is None:
        return run
    storage.sweep(results.output)
    if results.force and checkpoint.path.exists() and not run.is_begun():
        discard(checkpoint)
        return plan.run({})
    return run


def _tell(posed: PhotoProblem, quiet: bool) -> None:
    """What was done to the values and where sigma_0 comes from; a guess is a warning, which is always shown."""
    for text in posed.notes:
        note(text, quiet)
    if posed.noise is not None:
        note(f"warning: {posed.noise}" if posed.noise.doubt else str(posed.noise), quiet and not posed.noise.doubt)


def _tell_cost(run: RestoreRun, quiet: bool) -> None:
    """One line before a long run; what does not fit into memory is refused."""
    _, height, width = run.posed.problem.operator.image_shape
    if height * width < ESTIMATE_FROM or run.device.type != "cpu":
        return
    problem, chunk = run.posed.problem, run.settings["chunk"]
    sampler = sampler_for(run.sampler, problem)
    cost = costs.estimate_cost(problem, run.prior, sampler, run.calls, run.samples, chunk)
    note(f"{run.samples} samples of {width} x {height} pixels will take {cost}", quiet)
    costs.check_cost(cost, chunk)


def _report(result: Restoration, folder: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"folder": str(folder), **json.loads((folder / "result.json").read_text())}))
        return
    say(repr(result))
    if "verification" in result.settings:
        say(result.settings["verification"]["verdict"])
    spread = "std_map.png, samples.webp, " if len(result.samples) > 1 else ""
    say(f"{folder / 'report.html'} shows all; beside it sample_*.png, mean.png, {spread}grid.png")
