"""Command: train."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

from snips.cli.app import JsonOption, SeedOption, app, say
from snips.cli.grouped import grouped
from snips.cli.progress import progress_bar
from snips.names import unknown_name
from snips.posing.from_files import read_numbers
from snips.priors.registry import BUNDLED
from snips.running.devices import pick_device

if TYPE_CHECKING:
    from snips.training import TrainSettings

PRESET_HELP = "A recipe: `faces` or `natural` (data = the folder of the collections), or `custom` (data = one folder)."
NETWORK_HELP = "`unet`, ours; or the paper's with its own loss and sigmas: `ncsnv2` (64x64), `ncsnv2deeper` (128x128)."
CHANNELS_HELP = "`1` for grey images, `3` for colours, `1,3` for both; unless given, by what the images are."
PRECISION_HELP = "`float32`; or `bfloat16`, faster on CPUs that have it (weights and averages stay in full)."


@dataclass(frozen=True)
class TrainingOptions:
    """What may be chosen instead of the recipe's own: the names are those of `TrainSettings`."""

    steps: Annotated[int | None, typer.Option(help="The last step; until stopped, unless given.")] = None
    cooldown: Annotated[int | None, typer.Option(help="Steps at the end in which the learning rate falls.")] = None
    batch: Annotated[int | None, typer.Option(help="Images per step and process.")] = None
    chunk: Annotated[
        int | None, typer.Option(help="How many of them at once; all, or 4 of an NCSNv2, if not given.")
    ] = None
    optimiser: Annotated[
        str | None, typer.Option(help="`adam`; or `muon`, for going on from good weights: with --batch 16.")
    ] = None
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None
    crop: Annotated[int | None, typer.Option(help="Side of the random crops.")] = None
    init: Annotated[
        str | None, typer.Option(help="Weights to start from: a file, or `natural`. A preset may have more blocks.")
    ] = None
    minutes: Annotated[float | None, typer.Option(help="Time between checkpoints.")] = None
    device: Annotated[str | None, typer.Option(help="`cpu`, `cuda`, `mps`; or `auto`.")] = None
    precision: Annotated[str | None, typer.Option(help=PRECISION_HELP)] = None
    compile: Annotated[bool | None, typer.Option("--compile/--no-compile", help="Use torch.compile.")] = None
    tensorboard: Annotated[bool | None, typer.Option(help="Also log for TensorBoard (extra `train`).")] = None
    seed: SeedOption = 0

    def given(self) -> dict[str, Any]:
        chosen = {name: value for name, value in asdict(self).items() if value is not None}
        if self.cooldown and self.steps is None:
            raise ValueError("--cooldown needs to know the end: give --steps, too")
        if self.device is not None:
            chosen["device"] = str(pick_device(self.device))
        return chosen | ({"init": str(BUNDLED[self.init].file)} if self.init in BUNDLED else {})


@app.command()
@grouped
def train(
    data: Annotated[Path, typer.Option(help="The training images.")],
    run: Annotated[Path, typer.Option("--out", help="The folder of the run; given again, training goes on.")],
    preset: Annotated[str, typer.Option(help=PRESET_HELP)] = "custom",
    network: Annotated[str, typer.Option(help=NETWORK_HELP)] = "unet",
    channels: Annotated[str | None, typer.Option(help=CHANNELS_HELP)] = None,
    cache: Annotated[Path | None, typer.Option(help="Where decoded images are kept; in the run, unless given.")] = None,
    *,
    options: TrainingOptions,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a prior of your own on a folder of images. Stopped or killed, the same command goes on.

    The run's folder holds `weights.safetensors` (use it with `snips restore --prior`), `log.jsonl` with the held-out
    PSNR, and a picture of denoised examples. Several processes: `torchrun --nproc-per-node 2 -m snips train ...`.

    Examples:

    `snips train --data photos --out run --steps 100000 --cooldown 20000`

    `snips train --data scans --out run --init natural`
    """
    from snips.training import is_first  # torch.compile and friends take seconds to import
    from snips.training import train as run_training

    if threads is not None:
        torch.set_num_threads(threads)
    settings = _settings(preset, network, str(data), run, cache, options.given())
    settings = _with_channels(settings, preset, channels, str(data))
    with progress_bar(as_json or not is_first(), TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        state = run_training(settings, on_step=_Bar(progress, settings.steps))
    facts = {"weights": str(run / "weights.safetensors"), "step": state.step, "hours": state.seconds / 3600}
    facts["hours_before"] = state.inherited / 3600
    if not is_first():
        return
    if as_json:
        print(json.dumps(facts))
    else:
        before = f" ({state.inherited / 3600:.2f} of them before this run)" if state.inherited else ""
        say(f"{facts['weights']}: {state.step} steps, {facts['hours']:.2f} hours{before}")


def _settings(
    preset: str, network: str, data: str, run: Path, cache: Path | None, given: dict[str, Any]
) -> TrainSettings:
    """The recipe with what was given instead; a prior of one's own begins as the network that it is to go on with."""
    from snips.training import CHECKPOINT, PRESETS, with_network, with_network_of

    if preset not in PRESETS:
        raise ValueError(unknown_name("preset", preset, list(PRESETS)))
    settings = with_network(PRESETS[preset](data, str(run), str(cache or run / "cache")), network)
    settings = replace(settings, **given)
    if settings.init and not Path(settings.init).exists() and not (run / CHECKPOINT).exists():
        raise ValueError(f"{unknown_name('prior', settings.init, list(BUNDLED))}, and there is no such file")
    custom = preset == "custom" and network == "unet"
    return with_network_of(settings, settings.init) if custom and settings.init else settings


def _with_channels(settings: TrainSettings, preset: str, channels: str | None, data: str) -> TrainSettings:
    """For grey images or for colours, as said; what the images are decides only where no recipe does."""
    from snips.training import are_grey, with_channels

    if channels is not None:
        return with_channels(settings, read_numbers("--channels", channels, None, int))
    return with_channels(settings, (1,) if are_grey(data, settings.own) else (3,)) if preset == "custom" else settings


class _Bar:
    """Shows step and smoothed loss, a few times a second at most."""

    def __init__(self, progress: Progress, steps: int | None) -> None:
        self.progress, self.task = progress, progress.add_task("training", total=steps)
        self.loss, self.shown = None, 0.0

    def __call__(self, state: Any, loss: float) -> None:
        self.loss = loss if self.loss is None else 0.98 * self.loss + 0.02 * loss
        if time.monotonic() - self.shown > 0.25:
            self.shown = time.monotonic()
            self.progress.update(self.task, completed=state.step, description=f"training, loss {self.loss:.4f}")
