"""Commands: restore, degrade, problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from snips import measurements, storage
from snips.cli.app import ForceOption, JsonOption, SeedOption, app, err, out
from snips.names import unknown_name
from snips.priors import Prior, StationaryGaussian, load_prior
from snips.problems import PROBLEMS, InverseProblem
from snips.restoration import SAMPLERS, Restoration, restore
from snips.samplers import PRESETS
from snips.schedules import geometric
from snips.verification import check_samples, finer, verified

DEFAULT_PROBLEM, DEFAULT_SIGMA = "denoise", 0.1

ProblemOption = Annotated[
    str | None, typer.Option("--problem", "-p", help="What was measured: see `snips problems` (denoise).")
]
SigmaOption = Annotated[
    float | None,
    typer.Option("--sigma", "-s", help="Standard deviation of the noise, for pixels in [0, 1]. Default: 0.1."),
]
MaskOption = Annotated[Path | None, typer.Option(help="Image or .npy, white or 1 = seen (inpaint, mri).")]
KernelOption = Annotated[Path | None, typer.Option(help="Image or .npy with the blur's weights (deblur_kernel).")]
OptionOption = Annotated[
    list[str] | None, typer.Option("--option", "-o", help="An option of the problem, as name=value; repeatable.")
]


@app.command(name="restore")
def restore_command(
    image: Annotated[Path, typer.Argument(help="The measurement: an image, or an .npz from `snips degrade`.")],
    problem: ProblemOption = None,
    sigma: SigmaOption = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="The image is clean: degrade it first.")] = False,
    prior: Annotated[str, typer.Option(help="`gaussian`, a name from `snips priors`, or a file.")] = "gaussian",
    samples: Annotated[int, typer.Option("--samples", "-k", help="How many samples to draw.")] = 8,
    sampler: Annotated[str, typer.Option(help="`fast`, or `langevin`: the paper's Algorithm 1.")] = "fast",
    nfe: Annotated[int, typer.Option(help="fast: calls of the denoiser for each sample.")] = 100,
    preset: Annotated[str, typer.Option(help="langevin: the paper's settings for " + " or ".join(PRESETS))] = "celeba",
    levels: Annotated[int | None, typer.Option(help="langevin: noise levels, instead of the preset's.")] = None,
    mask: MaskOption = None,
    kernel: KernelOption = None,
    option: OptionOption = None,
    seed: SeedOption = 0,
    verify: Annotated[bool, typer.Option("--verify", help="Repeat with twice the calls: did the result move?")] = False,
    output: Annotated[Path, typer.Option("--out", help="A new folder for the results.")] = Path("restored"),
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a measurement: several sharp samples, their mean, and a map of what is uncertain.

    Examples:

    `snips restore small.png --problem sr4 --sigma 0.05`

    `snips restore clean.png --problem deblur_uniform --sigma 0.1 --simulate`

    `snips restore measured.npz --samples 16 --out results`
    """
    storage.check_target(output, force)
    task = _problem(image, problem, sigma, simulate, seed, _options(option, mask, kernel))
    if sampler not in SAMPLERS:
        raise ValueError(unknown_name("sampler", sampler, list(SAMPLERS)))
    settings = {"nfe": nfe} if sampler == "fast" else _langevin_options(preset, levels)
    model = _prior(prior, task)
    if verify:
        check_samples(samples)
    result = _sample(task, model, {"samples": samples, "seed": seed, "sampler": sampler, **settings}, quiet=as_json)
    if verify:
        result = verified(result, _sample(task, model, finer(result), quiet=as_json))
    result.save(output, force=force)
    _report(result, output, as_json)


@app.command()
def degrade(
    image: Annotated[Path, typer.Argument(help="A clean image.")],
    problem: ProblemOption = None,
    sigma: SigmaOption = None,
    mask: MaskOption = None,
    kernel: KernelOption = None,
    option: OptionOption = None,
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
    options = _options(option, mask, kernel)
    problem, sigma = problem or DEFAULT_PROBLEM, DEFAULT_SIGMA if sigma is None else sigma
    task = measurements.measure(image, problem, sigma, seed, options)
    measurements.save_measurement(task, output, force)
    shape = list(task.operator.measurement_shape)
    if as_json:
        print(json.dumps({"file": str(output), "problem": problem, "sigma_0": sigma, "measurement_shape": shape}))
    else:
        _say(f"{output}: {measurements.entries(task)}, sigma_0 = {sigma:g}")


@app.command()
def problems(as_json: JsonOption = False) -> None:
    """List the problems by name."""
    if as_json:
        print(json.dumps({name: {"summary": e.summary, "options": e.options} for name, e in PROBLEMS.items()}))
        return
    table = Table("name", "what it does", "options")
    for name, entry in PROBLEMS.items():
        table.add_row(name, entry.summary, entry.options)
    out.print(table)


def _options(pairs: list[str] | None, mask: Path | None, kernel: Path | None) -> dict[str, Any]:
    """name=value with the value as JSON where it is, else as text; arrays from files."""
    options: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or name in ("name", "image_shape"):
            raise ValueError(f"--option takes name=value with an option of the problem, not {pair!r}")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    if mask is not None:
        options["mask"] = measurements.load_array(mask) >= 0.5
    if kernel is not None:
        weights = measurements.load_array(kernel)
        options["kernel"] = weights / weights.sum() if weights.sum() != 0 else weights
    return options


def _problem(
    image: Path, name: str | None, sigma: float | None, simulate: bool, seed: int, options: dict[str, Any]
) -> InverseProblem:
    if image.suffix == ".npz":
        if name is not None or sigma is not None or options or simulate:
            raise ValueError(f"{image} knows its problem and noise: leave out --problem, --sigma and the like")
        return measurements.load_measurement(image)
    name, sigma = name or DEFAULT_PROBLEM, DEFAULT_SIGMA if sigma is None else sigma
    if simulate:
        return measurements.measure(image, name, sigma, seed, options)
    return measurements.as_measurement(image, name, sigma, options)


def _prior(name: str, problem: InverseProblem) -> Prior:
    if name == "gaussian":
        return StationaryGaussian.natural(problem.operator.image_shape)
    return load_prior(name).to(problem.y.device)


def _langevin_options(name: str, levels: int | None) -> dict[str, Any]:
    if name not in PRESETS:
        raise ValueError(unknown_name("preset", name, list(PRESETS)))
    preset = PRESETS[name]
    options = preset.options()
    return options if levels is None else {**options, "sigmas": geometric(preset.first, preset.last, levels)}


def _sample(problem: InverseProblem, prior: Prior, options: dict[str, Any], quiet: bool) -> Restoration:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as progress:
        bar = progress.add_task("sampling", total=None)
        return restore(
            problem,
            prior,
            on_step=lambda info: progress.update(bar, completed=info.step, total=info.total),
            **options,
        )


def _report(result: Restoration, folder: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"folder": str(folder), **json.loads((folder / "result.json").read_text())}))
        return
    _say(repr(result))
    if "verification" in result.settings:
        _say(result.settings["verification"]["verdict"])
    _say(f"pictures in {folder}: grid.png shows all; sample_*.png, mean.png, std.png")


def _say(text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)
