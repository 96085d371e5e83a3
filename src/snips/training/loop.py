"""The training loop: killed at any moment, it resumes and ends as if it had never stopped."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips.priors.unet import UNet, UNetConfig, load_unet, save_unet
from snips.training.checkpoint import read_checkpoint, write_checkpoint
from snips.training.data import Crops, ImageSet, held_out_crops, load_images
from snips.training.ema import PowerAverage
from snips.training.loss import NoiseLevels, denoising_loss, psnr_table
from snips.training.optim import OPTIMISERS

SIGMAS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)  # of the held-out table
FIT_IMAGES = 4096  # for the linear branch


@dataclass(frozen=True)
class TrainSettings:
    """A run. Given again with the same `out` it goes on; only `network` may not change on the way."""

    folders: tuple[str, ...]
    out: str
    cache: str
    prepare: str = "none"  # a name in data.PREPARE
    network: UNetConfig = field(default_factory=UNetConfig)
    levels: NoiseLevels = field(default_factory=NoiseLevels)
    crop: int = 64
    batch: int = 8
    optimiser: str = "adam"
    lr: float = 8e-4
    clip: float = 1.0  # largest norm of the gradient
    warmup: int = 300  # steps of growing learning rate
    steps: int | None = None  # the last step; None trains until killed
    cooldown: int = 0  # steps before the last in which the learning rate falls to 0
    averages: tuple[float, ...] = (16.97, 6.94)  # exponents of the weight averages; the first is exported
    seed: int = 0
    minutes: float = 10.0  # between checkpoints
    held_out: int = 64  # images in the held-out table
    compile: bool = False  # fuse the network's small operations; needs a C++ compiler
    init: str | None = None  # weights to start from, where there is no checkpoint


@dataclass
class TrainState:
    model: UNet
    optimiser: torch.optim.Optimizer
    averages: list[PowerAverage]
    step: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "config": json.dumps(dataclasses.asdict(self.model.config)),
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "averages": [a.state() for a in self.averages],
            "step": self.step,
            "seconds": self.seconds,
        }


def train(settings: TrainSettings, log: Callable[[dict[str, Any]], None] | None = None) -> TrainState:
    """Train until `settings.steps`, or for ever; returns the last state."""
    out = Path(settings.out)
    out.mkdir(parents=True, exist_ok=True)
    images, held = load_images(settings.folders, settings.prepare, settings.cache)
    crops = Crops(images, settings.crop)
    state = start(settings, crops)
    report = log or _append_to(out / "log.jsonl")
    report({"event": "start", "step": state.step, "images": len(images), "hours": state.seconds / 3600})
    run(state, settings, crops, held, report)
    return state


def run(
    state: TrainState,
    settings: TrainSettings,
    crops: Crops,
    held: ImageSet,
    report: Callable[[dict[str, Any]], None],
) -> None:
    trace: list[tuple[float, float]] = []  # loss and gradient of each step since the last checkpoint
    clock = saved = time.monotonic()
    while settings.steps is None or state.step < settings.steps:
        trace.append(train_step(state, settings, crops))
        state.seconds += time.monotonic() - clock
        clock = time.monotonic()
        if clock - saved >= 60 * settings.minutes:
            _record(state, settings, held, trace, report)
            clock = saved = time.monotonic()
    _record(state, settings, held, trace, report)


def start(settings: TrainSettings, crops: Crops) -> TrainState:
    """The state in the run's checkpoint, or a new one."""
    torch.manual_seed(settings.seed)
    path = Path(settings.out) / "checkpoint.pt"
    stored = read_checkpoint(path) if path.exists() else None
    model = _new_model(settings, crops) if stored is None else UNet(settings.network)
    model.train().requires_grad_(True)
    if settings.compile:
        model._body = torch.compile(model._body)  # pyright: ignore[reportAttributeAccessIssue]
    optimiser = OPTIMISERS[settings.optimiser](model, settings.lr)
    state = TrainState(model, optimiser, [PowerAverage(model, g) for g in settings.averages])
    if stored is not None:
        _restore(state, stored, path)
    return state


def _new_model(settings: TrainSettings, crops: Crops) -> UNet:
    if settings.init is not None:
        return load_unet(settings.init)
    model = UNet(settings.network)
    for channels in settings.network.channels:
        model.fit_linear(crops.draw(FIT_IMAGES, channels, keyed(settings.seed, -1)))
    return model


def _restore(state: TrainState, stored: dict[str, Any], path: Path) -> None:
    if stored["config"] != json.dumps(dataclasses.asdict(state.model.config)):
        raise ValueError(f"{path} is of another network ({stored['config']}); choose another --out")
    state.model.load_state_dict(stored["model"])
    state.optimiser.load_state_dict(stored["optimiser"])
    for average, weights in zip(state.averages, stored["averages"], strict=True):
        average.restore(weights)
    state.step, state.seconds = stored["step"], stored["seconds"]


def train_step(state: TrainState, settings: TrainSettings, crops: Crops) -> tuple[float, float]:
    """One step, whose random numbers depend on the seed and its number alone; its loss and gradient's norm."""
    clean, sigma, noise = draw_batch(settings, crops, state.step)
    for group in state.optimiser.param_groups:
        group["lr"] = learning_rate(settings, state.step)
    state.optimiser.zero_grad(set_to_none=True)
    loss = denoising_loss(state.model, clean, noise, sigma)
    if not math.isfinite(loss.item()):
        raise FloatingPointError(f"the loss is {loss.item()} at step {state.step}; resume with a smaller --lr")
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(state.model.parameters(), settings.clip)
    state.optimiser.step()
    state.step += 1
    for average in state.averages:
        average.update(state.model, state.step)
    return loss.item(), norm.item()


def draw_batch(settings: TrainSettings, crops: Crops, step: int) -> tuple[Tensor, Tensor, Tensor]:
    """Clean images, noise levels and noise of one step."""
    random = keyed(settings.seed, step)
    kinds = settings.network.channels
    channels = kinds[int(torch.randint(len(kinds), (), generator=random))]
    clean = crops.draw(settings.batch, channels, random)
    sigma = settings.levels.draw(settings.batch, random)
    return clean, sigma, torch.randn(clean.shape, generator=random)


def keyed(seed: int, step: int) -> torch.Generator:
    """A random stream of its own for each step."""
    key = np.random.SeedSequence([seed, step + 1]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(key >> np.uint64(1)))


def learning_rate(settings: TrainSettings, step: int) -> float:
    """Warm-up, a plateau of any length, and a linear descent to zero if an end is set."""
    left = math.inf if settings.steps is None else settings.steps - step
    return settings.lr * min(1.0, (step + 1) / settings.warmup, left / max(settings.cooldown, 1))


def _record(
    state: TrainState,
    settings: TrainSettings,
    held: ImageSet,
    trace: list[tuple[float, float]],
    report: Callable[[dict[str, Any]], None],
) -> None:
    """Checkpoint first, then the table and the exported weights."""
    out = Path(settings.out)
    write_checkpoint(state.as_dict(), out / "checkpoint.pt")
    row: dict[str, Any] = {"event": "checkpoint", "step": state.step, "hours": state.seconds / 3600}
    loss, gradient = np.mean(trace, axis=0).tolist() if trace else (None, None)
    row |= {"loss": loss, "gradient": gradient, "lr": learning_rate(settings, state.step)}
    trace.clear()
    for i, average in enumerate(state.averages):
        model = averaged(state.model, average)
        row[f"psnr_{average.gamma:g}"] = held_out_table(model, settings, held)
        if i == 0:
            save_unet(model, out / "weights.safetensors", row)
    report(row)


def averaged(model: UNet, average: PowerAverage) -> UNet:
    """A copy of the network with the averaged weights."""
    copy = UNet(model.config).eval().requires_grad_(False)
    copy.load_state_dict(model.state_dict())
    average.copy_to(copy)
    return copy


def held_out_table(model: UNet, settings: TrainSettings, held: ImageSet) -> dict[str, dict[str, float]]:
    """PSNR by number of channels and by sigma."""
    kinds = model.config.channels
    crops = {c: held_out_crops(held, settings.crop, settings.held_out, c) for c in kinds}
    return {str(c): psnr_table(model, crops[c], SIGMAS) for c in kinds}


def _append_to(path: Path) -> Callable[[dict[str, Any]], None]:
    def append(row: dict[str, Any]) -> None:
        with open(path, "a") as file:
            file.write(json.dumps(row) + "\n")

    return append
