"""The training loop: killed at any moment, it resumes and ends as if it had never stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from snips.files import locked, remove_leftovers
from snips.priors.base import Prior
from snips.priors.precision import with_precision
from snips.priors.stored import read_note
from snips.priors.unet import UNet
from snips.training.checkpoint import read_checkpoint, what_to_do
from snips.training.data import Crops, ImageSet
from snips.training.distributed import (
    agreed,
    average_gradients,
    first_alone,
    own_device,
    processes,
    rank,
    wait_for_all,
    world,
)
from snips.training.ema import PowerAverage
from snips.training.image_files import load_images
from snips.training.interrupts import Interrupts
from snips.training.networks import kind_of
from snips.training.optim import OPTIMISERS
from snips.training.record import Log, keep, make_log, record
from snips.training.settings import CHECKPOINT, EXAMPLES, WEIGHTS, TrainSettings
from snips.training.state import TrainState, drawn_from

OF_CHANNELS = ("stem", "head", "wiener")  # parts of a U-Net that exist once for each count of channels


OnStep = Callable[[TrainState, float], None]  # gets the state and the loss


def train(settings: TrainSettings, on_step: OnStep | None = None) -> TrainState:
    """Train until `settings.steps`, or for ever; returns the last state. `on_step` may show progress."""
    with processes(settings.device), ExitStack() as stack:
        first_alone(lambda: _open(Path(settings.out), stack))
        images, held = first_alone(
            lambda: load_images(settings.folders, settings.prepare, settings.cache, settings.own, settings.crop)
        )
        crops = Crops(images, settings.crop)
        state = start(settings, crops)
        log = make_log(settings) if rank() == 0 else lambda row: None
        begun = {"event": "start", "step": state.step, "images": len(images), "hours": state.seconds / 3600}
        log({**begun, "settings": asdict(settings)})
        _run(state, settings, crops, held, log, on_step or (lambda state, loss: None))
        wait_for_all()
    return state


def _open(run: Path, stack: ExitStack) -> None:
    """The run's folder, for these processes alone until the stack is closed."""
    if rank() == 0:
        stack.enter_context(locked(run))
        for name in (CHECKPOINT, WEIGHTS, EXAMPLES):
            remove_leftovers(run / name)


def _run(state: TrainState, settings: TrainSettings, crops: Crops, held: ImageSet, log: Log, on_step: OnStep) -> None:
    trace: list[tuple[float, float]] = []  # loss and gradient of each step since the last checkpoint
    clock, saved = _computed(settings), time.monotonic()
    with Interrupts() as interrupts:
        while settings.steps is None or state.step < settings.steps:
            trace.append(train_step(state, settings, crops))
            state.seconds += _computed(settings) - clock
            on_step(state, trace[-1][0])
            if agreed(interrupts.came):  # several processes stop after the same step
                if rank() == 0:
                    keep(state, settings)
                wait_for_all()
                raise KeyboardInterrupt
            if rank() == 0 and time.monotonic() - saved >= 60 * settings.minutes:
                record(state, settings, held, trace, log)
                trace.clear()
                saved = time.monotonic()
            clock = _computed(settings)
    if rank() == 0:
        record(state, settings, held, trace, log)


def _computed(settings: TrainSettings) -> float:
    """Seconds of work per thread: what a pause or a busy machine adds to the wall clock does not count."""
    if settings.device != "cpu":
        return time.monotonic()
    return time.process_time() / torch.get_num_threads()


def start(settings: TrainSettings, crops: Crops) -> TrainState:
    """The state in the run's checkpoint, or a new one."""
    torch.manual_seed(settings.seed)
    path = Path(settings.out) / CHECKPOINT
    stored = read_checkpoint(path) if path.exists() else None
    if stored is None and path.with_name(WEIGHTS).exists():
        raise ValueError(f"{path} is missing, and a new start would replace {WEIGHTS} beside it: {what_to_do(path)}")
    model = _new_model(settings, crops) if stored is None else kind_of(settings.network).build(settings.network)
    model.to(own_device(settings.device)).train().requires_grad_(True)
    if settings.compile:
        if not isinstance(model, UNet):
            raise ValueError("only our own network, --network unet, can be compiled: leave out --compile")
        model._body = torch.compile(model._body)  # pyright: ignore[reportAttributeAccessIssue]
    optimiser = OPTIMISERS[settings.optimiser](model, settings.lr, getattr(torch, settings.precision))
    averages = [PowerAverage(model, gamma) for gamma in settings.averages]
    state = TrainState(settings.network, model, optimiser, averages, drawn_from(settings))
    if stored is not None:
        state.restore(stored, path)
    elif settings.init is not None:
        state.seconds = state.inherited = 3600 * _told_hours(settings.init)
    return state


def _told_hours(weights: str) -> float:
    """How long given weights were trained, as far as they tell."""
    hours = read_note(weights).get("hours", 0.0)
    if not isinstance(hours, int | float) or not 0 <= hours < math.inf:
        raise ValueError(f"{weights} is damaged: it tells {hours!r} hours of training; fetch or make it again")
    return float(hours)


def _new_model(settings: TrainSettings, crops: Crops) -> Prior:
    if settings.init is not None:
        return _given_model(settings)
    kind = kind_of(settings.network)
    model = kind.build(settings.network)
    for channels in settings.network.channels:
        kind.fit(model, channels, lambda count, c=channels: crops.draw(count, c, keyed(settings.seed, -1)))
    return model


def _given_model(settings: TrainSettings) -> Prior:
    """The given weights, in a network that may have more blocks than theirs: new ones start as the identity.

    Of weights for grey images and for colours, those that are not wanted are left out.
    """
    kind, channels = kind_of(settings.network), settings.network.channels
    given, model = kind.load(str(settings.init)), kind.build(settings.network)
    own = model.state_dict()
    weights = {name: value for name, value in given.state_dict().items() if _serves(name, channels)}
    unknown = set(channels) - set(kind.config(given).channels)
    if unknown:
        raise ValueError(f"{settings.init} knows no images of {unknown.pop()} channels: choose others, or --channels")
    if any(name not in own or own[name].shape != value.shape for name, value in weights.items()):
        raise ValueError(f"{settings.init} is of another network ({kind.config(given)}); train it as it is or leave it")
    model.load_state_dict(own | weights)
    return model


def _serves(name: str, channels: tuple[int, ...]) -> bool:
    """Whether a weight is of use for images of these channels; a U-Net has some of its own for each count."""
    parts = name.split(".")
    return parts[0] not in OF_CHANNELS or int(parts[1]) in channels


def train_step(state: TrainState, settings: TrainSettings, crops: Crops) -> tuple[float, float]:
    """One step, whose random numbers depend on the seed and its number alone; its loss and gradient's norm."""
    drawn = draw_batch(state.model, settings, crops, state.step)
    clean, sigma, noise = (each.to(own_device(settings.device)) for each in drawn)
    for group in state.optimiser.param_groups:
        group["lr"] = learning_rate(settings, state.step)
    state.optimiser.zero_grad(set_to_none=True)
    loss = _mean_loss(state, settings, clean, noise, sigma)
    average_gradients(state.model)
    norm = torch.nn.utils.clip_grad_norm_(state.model.parameters(), settings.clip)
    if not math.isfinite(norm.item()):
        raise FloatingPointError(
            f"the gradient is {norm.item()} at step {state.step}: go on from the last checkpoint with a smaller --lr"
        )
    state.optimiser.step()
    state.step += 1
    for average in state.averages:
        average.update(state.model, state.step)
    return loss, norm.item()


def _mean_loss(state: TrainState, settings: TrainSettings, clean: Tensor, noise: Tensor, sigma: Tensor) -> float:
    """The loss of a batch, and its gradient: as many images at once as memory is meant to hold."""
    network, loss_of = with_precision(state.model, settings.precision), kind_of(state.config).loss
    pieces = zip(*(each.split(settings.chunk or len(clean)) for each in (clean, noise, sigma)), strict=True)
    total = 0.0
    for piece in pieces:
        loss = len(piece[0]) / len(clean) * loss_of(network, *piece)
        loss.backward()
        total += loss.item()
    return total


def draw_batch(model: Prior, settings: TrainSettings, crops: Crops, step: int) -> tuple[Tensor, Tensor, Tensor]:
    """Clean images, noise levels and noise of one step of this process."""
    random = keyed(settings.seed, step * world() + rank())
    kinds = settings.mix or settings.network.channels
    channels = kinds[int(torch.randint(len(kinds), (), generator=random))]
    clean = crops.draw(settings.batch, channels, random)
    sigma = kind_of(settings.network).draw_sigmas(model, settings.levels, settings.batch, random)
    return clean, sigma, torch.randn(clean.shape, generator=random)


def keyed(seed: int, step: int) -> torch.Generator:
    """A random stream of its own for each step."""
    key = np.random.SeedSequence([seed, step + 1]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(key >> np.uint64(1)))


def learning_rate(settings: TrainSettings, step: int) -> float:
    """Warm-up, a plateau of any length, and a linear descent to zero if an end is set."""
    left = math.inf if settings.steps is None else settings.steps - step
    return settings.lr * min(1.0, (step + 1) / settings.warmup, left / max(settings.cooldown, 1))
