"""Command: restore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from snips.cli.app import (
    DeviceOption,
    ForceOption,
    JsonOption,
    PrecisionOption,
    SeedOption,
    TileOption,
    app,
    say,
    typed_command,
)
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
    with_sigma,
)
from snips.cli.restore_run import RestoreRun, discard, note, recorded, save_somewhere, uninterrupted
from snips.cli.sampler_options import (
    CallsOption,
    ChunkOption,
    LevelsOption,
    PresetOption,
    PriorOption,
    SamplerOption,
    SamplesOption,
    ShapeOption,
    SimulateOption,
)
from snips.names import check_count
from snips.posing.measured import posed_problem, problem_name
from snips.posing.measurements import is_measurement
from snips.posing.pictures import PhotoProblem
from snips.priors import Prior
from snips.priors.choice import choose_prior, misfit, prior_for, takes_grey
from snips.priors.precision import with_precision
from snips.priors.tiled import check_sides
from snips.problems import InverseProblem
from snips.restoration import Restoration, sampler_for
from snips.results import storage
from snips.results.checkpoints import Checkpoint
from snips.running import costs
from snips.running.devices import pick_device
from snips.running.sampler_settings import sampler_settings
from snips.running.tiling import Tiles, tiles_for
from snips.running.verification import check_samples
from snips.streams import checked_seed

ESTIMATE_FROM = 256 * 256  # pixels; from here on the cost is estimated first


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
    simulate: SimulateOption = False,
    prior: PriorOption = None,
    samples: SamplesOption = 8,
    sampler: SamplerOption = "fast",
    nfe: CallsOption = 100,
    preset: PresetOption = "celeba",
    levels: LevelsOption = None,
    mask: MaskOption = None,
    kernel: KernelOption = None,
    factor: FactorOption = None,
    matrix: MatrixOption = None,
    shape: ShapeOption = None,
    values: RangeOption = None,
    option: OptionOption = None,
    chunk: ChunkOption = None,
    tile: TileOption = None,
    device: DeviceOption = "cpu",
    precision: PrecisionOption = "float32",
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
    _check_numbers(samples, chunk, tile, seed, verify)
    options = read_options(option, mask, kernel, factor, matrix)
    measured_by = "matrix" if is_measurement(image) else problem_name(problem, options)  # a file checks its own noise
    level, grey = read_sigma(sigma, measured_by), takes_grey(prior)
    posed = posed_problem(image, problem, level, simulate, seed, options, read_range(values), shape, grey=grey)
    costs.check_results(posed.problem, samples)
    image_shape = posed.problem.operator.image_shape
    denoiser = with_precision(_prior(prior, image_shape, quiet=as_json), precision)
    checkpoint = Checkpoint(output.parent / f".{output.name}.partial" / "state.safetensors") if resume else None
    command = with_sigma(typed_command(ctx), sigma, level)
    where, threads = pick_device(device), torch.get_num_threads()

    def run_with(known: dict[str, Any]) -> RestoreRun:
        """The run, with what an earlier attempt chose where the command leaves it open."""
        torch.set_num_threads(known.get("threads", threads))
        fitting = known.get("chunk") or costs.chosen_chunk(image_shape, costs.fitting_pixels())
        tiles = _tiles(posed.problem, denoiser, tile, where, known, quiet=as_json)
        taken, own = tiles.prior if tiles else denoiser, {**settings, "chunk": fitting if chunk is None else chunk}
        return RestoreRun(posed, taken, sampler, samples, seed, own, command, where, checkpoint, tiles)

    finished = resume and not force and output.exists()
    run = run_with(recorded(output, checkpoint, finished) if checkpoint else {})
    if checkpoint is not None:
        storage.sweep(output)
    if checkpoint is not None and finished:
        result, code = run.completed(output, verify, quiet=as_json)
        discard(checkpoint)
        _report(result, output, as_json)
        raise typer.Exit(code)
    if checkpoint is not None and force and checkpoint.path.exists() and not run.is_begun():
        discard(checkpoint)
        run = run_with({})
    _tell(posed, as_json)
    _tell_cost(run, as_json)
    result, code = run.sampled(verify, quiet=as_json)
    with uninterrupted():
        save_somewhere(result, output, force)
        if checkpoint is not None:
            discard(checkpoint)
    _report(result, output, as_json)
    if code:
        raise typer.Exit(code)


def _check_numbers(samples: int, chunk: int | None, tile: int | None, seed: int, verify: bool) -> None:
    """Before a file is read."""
    check_count("samples", samples)
    check_count("chunk", 1 if chunk is None else chunk)
    if tile is not None:
        check_sides(tile)
    checked_seed(seed)
    if verify:
        check_samples(samples)


def _prior(name: str | None, image_shape: tuple[int, int, int], quiet: bool) -> Prior:
    """The prior by name, or the one that fits; what is used and what to expect of it is said."""
    if name is None:
        name, reason = choose_prior(image_shape)
        note(f"prior: {name} ({reason})", quiet)
    prior = prior_for(name, image_shape)
    if warning := misfit(prior, image_shape):
        note(f"warning: {warning}", quiet=False)
    return prior


def _tiles(
    problem: InverseProblem, prior: Prior, side: int | None, device: torch.device, known: dict[str, Any], quiet: bool
) -> Tiles | None:
    """Where the main memory does not hold one call on the whole image, or where they are asked for."""
    channels, height, width = problem.operator.image_shape
    if side is None and "tile" in known:
        return tiles_for(problem, prior, known["tile"], None)
    limit = None
    if device.type == "cpu" and height * width > costs.EXTRAPOLATE_FROM and not hasattr(prior, "image_shape"):
        limit = costs.untiled_pixels(prior, channels)
    tiles = tiles_for(problem, prior, side, limit)
    if tiles is not None:
        reason = "" if side else "one call on the whole image would fill more than half of the free memory, so "
        note(f"{reason}{tiles}", quiet)
    elif side is not None:
        note(f"the image is too small for tiles of {side} pixels with their margins: it is denoised whole", quiet)
    return tiles


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
