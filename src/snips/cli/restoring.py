"""Command: restore."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from snips import costs, storage
from snips.checkpoints import Checkpoint
from snips.cli.app import ForceOption, JsonOption, SeedOption, app, err, say, typed_command
from snips.cli.problem_options import (
    FactorOption,
    KernelOption,
    MaskOption,
    MatrixOption,
    OptionOption,
    ProblemOption,
    RangeOption,
    read_options,
    read_range,
    read_sigma,
)
from snips.photo_problems import PhotoProblem
from snips.posing import posed_problem
from snips.priors import Prior
from snips.priors.choice import choose_prior, misfit, prior_for
from snips.restoration import Interrupted, Restoration, restore, run_fingerprint, sampler_for
from snips.sampler_settings import sampler_settings
from snips.samplers import PRESETS
from snips.samplers.base import check_count
from snips.streams import checked_seed
from snips.verification import check_samples, finer, verified

LARGE = 256 * 256  # pixels; from here on the cost is estimated first


@app.command(name="restore")
def restore_command(
    ctx: typer.Context,
    image: Annotated[Path, typer.Argument(help="The measurement: a picture, .npy, .npz, or from `snips degrade`.")],
    problem: ProblemOption = None,
    sigma: Annotated[
        str | None,
        typer.Option(
            "--sigma", "-s", help="The noise's standard deviation, for pixels in [0, 1], or `auto` (default)."
        ),
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="The image is clean: degrade it first.")] = False,
    prior: Annotated[
        str | None, typer.Option(help="`gaussian`, a name from `snips priors`, or a file; chosen unless given.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", "-k", help="How many samples to draw.")] = 8,
    sampler: Annotated[
        str, typer.Option(help="`fast`; `langevin`: the paper's Algorithm 1; `matrix_free`: without an SVD.")
    ] = "fast",
    nfe: Annotated[int, typer.Option(help="fast, matrix_free: calls of the denoiser for each sample.")] = 100,
    preset: Annotated[str, typer.Option(help="langevin: the paper's settings for " + " or ".join(PRESETS))] = "celeba",
    levels: Annotated[int | None, typer.Option(help="langevin: noise levels, instead of the preset's.")] = None,
    mask: MaskOption = None,
    kernel: KernelOption = None,
    factor: FactorOption = None,
    matrix: MatrixOption = None,
    shape: Annotated[str | None, typer.Option(help="C,H,W of the image, where --matrix leaves it open.")] = None,
    values: RangeOption = None,
    option: OptionOption = None,
    chunk: Annotated[int | None, typer.Option(help="Samples drawn at a time; chosen by size unless given.")] = None,
    seed: SeedOption = 0,
    verify: Annotated[bool, typer.Option("--verify", help="Repeat with twice the calls: did the result move?")] = False,
    output: Annotated[Path, typer.Option("--out", help="A new folder for the results.")] = Path("restored"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep states on the disk: killed, the same command goes on.")
    ] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a photo or a measurement: several sharp samples, their mean, and a map of what is uncertain.

    Examples:

    `snips restore small.png --problem sr4 --sigma 0.05`

    `snips restore scratched.png --mask mask.png`

    `snips restore clean.png --problem deblur_uniform --sigma 0.1 --simulate`

    `snips restore measured.npz --samples 16 --out results`
    """
    storage.check_target(output, force or resume)
    if image.parent.resolve() == output.resolve():
        raise ValueError(f"{image} lies in the folder for the results: choose another folder with --out")
    settings = sampler_settings(sampler, nfe, preset, levels)
    check_count("samples", samples)
    check_count("chunk", 1 if chunk is None else chunk)
    checked_seed(seed)
    if verify:
        check_samples(samples)
    options = read_options(option, mask, kernel, factor, matrix)
    posed = posed_problem(image, problem, read_sigma(sigma), simulate, seed, options, read_range(values), shape)
    image_shape = posed.problem.operator.image_shape
    settings["chunk"] = costs.chosen_chunk(image_shape) if chunk is None else chunk
    denoiser = _prior(prior, image_shape, quiet=as_json).to(posed.problem.y.device)
    checkpoint = Checkpoint(output.parent / f".{output.name}.partial" / "state.safetensors") if resume else None
    run = _Run(posed, denoiser, sampler, samples, seed, settings, typed_command(ctx), checkpoint)
    if resume and not force and output.exists():
        _report(run.finished(output), output, as_json)
        return
    _tell(posed, as_json)
    _tell_cost(run, as_json)
    try:
        result, code = run.sample(quiet=as_json), 0
    except Interrupted as stop:
        result, code = run.kept(stop), 130
    if verify and not code:
        result, code = run.verified(result, quiet=as_json)
    result.save(output, force=force)
    if checkpoint is not None:
        checkpoint.remove()
    _report(result, output, as_json)
    if code:
        raise typer.Exit(code)


@dataclass(frozen=True)
class _Run:
    """All that sampling needs."""

    posed: PhotoProblem
    prior: Prior
    sampler: str
    samples: int
    seed: int
    settings: dict[str, Any]
    command: str
    checkpoint: Checkpoint | None = None

    @property
    def calls(self) -> int:
        """How often the denoiser is called for each sample."""
        langevin = self.sampler == "langevin"
        return len(self.settings["sigmas"]) * self.settings["tau"] if langevin else self.settings["nfe"]

    def sample(self, quiet: bool) -> Restoration:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as progress:
            bar = progress.add_task("sampling", total=None)
            result = restore(
                self.posed.problem,
                self.prior,
                sampler=self.sampler,
                samples=self.samples,
                seed=self.seed,
                on_step=lambda info: progress.update(bar, completed=info.step, total=info.total),
                checkpoint=self.checkpoint,
                **self.settings,
            )
        return self._with_origin(result)

    def finished(self, folder: Path) -> Restoration:
        """What an earlier run of this command wrote; a folder with anything else is not touched."""
        result = Restoration.load(folder, self.posed.problem.operator)
        if result.settings.get("fingerprint") != self.fingerprint():
            raise ValueError(
                f"{folder} exists already, and is no result of this command with --resume: choose another folder, or "
                "overwrite its results with --force"
            )
        return result

    def fingerprint(self) -> str:
        sampler = sampler_for(self.sampler, self.posed.problem)
        described = {"sampler": sampler, "sampler_options": self.settings, "seed": self.seed}
        return run_fingerprint(self.posed.problem, self.prior, self.samples, described)

    def kept(self, stop: Interrupted) -> Restoration:
        """The samples that were finished when Ctrl-C came, unless the run can go on from its state."""
        if self.checkpoint is not None:
            _note("stopped: the same command goes on", quiet=False)
            raise typer.Exit(130)
        if stop.finished is None:
            _note("stopped before a sample was finished: nothing is written", quiet=False)
            raise typer.Exit(130)
        _note(f"stopped; {stop.finished.settings['interrupted']} samples were finished and are kept", quiet=False)
        return self._with_origin(stop.finished)

    def verified(self, result: Restoration, quiet: bool) -> tuple[Restoration, int]:
        """The result with the verdict of a finer run, and the exit code."""
        arguments = finer(result)
        fields = {name: arguments.pop(name) for name in ("sampler", "samples", "seed")}
        try:
            return verified(result, replace(self, settings=arguments, **fields).sample(quiet)), 0
        except Interrupted:
            _note("stopped while verifying: the samples are kept, without a verdict", quiet=False)
            return result, 130

    def _with_origin(self, result: Restoration) -> Restoration:
        """What the command knows and the mathematics does not: its words, notes on the file, its transparency."""
        origin = {"command": self.command, "notes": list(self.posed.notes)}
        origin |= {"noise": str(self.posed.noise)} if self.posed.noise else {}
        return replace(result, settings={**result.settings, **origin}, alpha=self.posed.alpha)


def _prior(name: str | None, image_shape: tuple[int, int, int], quiet: bool) -> Prior:
    """The prior by name, or the one that fits; what is used and what to expect of it is said."""
    if name is None:
        name, reason = choose_prior(image_shape)
        _note(f"prior: {name} ({reason})", quiet)
    prior = prior_for(name, image_shape)
    if warning := misfit(prior, image_shape):
        _note(f"warning: {warning}", quiet=False)
    return prior


def _tell(posed: PhotoProblem, quiet: bool) -> None:
    """What was done to the values and where sigma_0 comes from; a guess is a warning, which is always shown."""
    for note in posed.notes:
        _note(note, quiet)
    if posed.noise is not None:
        _note(f"warning: {posed.noise}" if posed.noise.doubt else str(posed.noise), quiet and not posed.noise.doubt)


def _tell_cost(run: _Run, quiet: bool) -> None:
    """One line before a long run; what does not fit into memory is refused."""
    _, height, width = run.posed.problem.operator.image_shape
    if height * width < LARGE:
        return
    chunk = run.settings["chunk"]
    cost = costs.estimate_cost(run.posed.problem, run.prior, run.sampler, run.calls, run.samples, chunk)
    if cost is not None:
        _note(f"{run.samples} samples of {width} x {height} pixels will take {cost}", quiet)
        costs.check_cost(cost, chunk)


def _note(text: str, quiet: bool) -> None:
    if not quiet:
        err.print(f"snips: {text}", markup=False, highlight=False, soft_wrap=True)


def _report(result: Restoration, folder: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"folder": str(folder), **json.loads((folder / "result.json").read_text())}))
        return
    say(repr(result))
    if "verification" in result.settings:
        say(result.settings["verification"]["verdict"])
    say(f"{folder / 'report.html'} shows all; beside it sample_*.png, mean.png, std_map.png, grid.png, samples.webp")
