"""The training loop: killed at any moment, it resumes and ends as if it had never stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips.files import locked, remove_leftovers
from snips.priors.base import Prior
from snips.priors.precision import with_precision
from snips.priors.unet import UNet, read_note
from snips.training.checkpoint import read_checkpoint, what_to_do, write_checkpoint
from snips.training.data import Crops, ImageSet
from snips.training.distributed import average_gradients, first_alone, own_device, processes, rank, world
from snips.training.ema import PowerAverage
from snips.training.image_files import load_images
from snips.training.interrupts import Interrupts
from snips.training.networks import Config, kind_of, signature
from snips.training.optim import OPTIMISERS, optimiser_name
from snips.training.record import Log, make_log, record
from snips.training.settings import CHECKPOINT, EXAMPLES, WEIGHTS, TrainSettings

OF_CHANNELS = ("stem", "head", "wiener")  # parts of a U-Net that exist once for each count of channels


@dataclass
class TrainState:
    """All that changes during a run."""

    config: Config
    model: Prior
    optimiser: torch.optim.Optimizer
    averages: list[PowerAverage]
    step: int = 0
    seconds: float = 0.0  # computed in steps, over all starts

    def as_dict(self) -> dict[str, Any]:
        form, config = signature(self.config)
        return {
            "format": form,
            "config": config,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "optimiser_name": optimiser_name(self.optimiser),
            "averages": [a.state() for a in self.averages],
            "exponents": [a.gamma for a in self.averages],
            "step": self.step,
            "seconds": self.seconds,
        }


NEEDED = {"model", "optimiser", "averages", "step", "seconds"}  # in every version's checkpoints

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
        log({"event": "start", "step": state.step, "images": len(images), "hours": state.seconds / 3600})
        _run(state, settings, crops, held, log, on_step or (lambda state, loss: None))
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
    with Interrupts(heeded=world() > 1) as interrupts:  # several processes must stop at the same step: all at once
        while settings.steps is None or state.step < settings.steps:
            trace.append(train_step(state, settings, crops))
            state.seconds += _computed(settings) - clock
            on_step(state, trace[-1][0])
            if interrupts.came:
                write_checkpoint(state.as_dict(), Path(settings.out) / CHECKPOINT)
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
    state = TrainState(settings.network, model, optimiser, [PowerAverage(model, g) for g in settings.averages])
    if stored is not None:
        _restore(state, stored, path)
    elif settings.init is not None:
        state.seconds = 3600 * read_note(settings.init).get("hours", 0.0)
    return state


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


def _restore(state: TrainState, stored: dict[str, Any], path: Path) -> None:
    there = stored.get("format"), stored.get("config")
    if signature(state.config) != there:
        raise ValueError(f"{path} is of another network ({', '.join(map(str, there))}); choose another --out")
    if missing := NEEDED - stored.keys():
        raise ValueError(f"{path} is no checkpoint of a run: it lacks {', '.join(sorted(missing))}; {what_to_do(path)}")
    _check_optimiser(state.optimiser, stored, path)
    _check_averages(state.averages, stored, path)
    state.model.load_state_dict(stored["model"])
    state.optimiser.load_state_dict(stored["optimiser"])
    for average, weights in zip(state.averages, stored["averages"], strict=True):
        average.restore(weights)
    state.step, state.seconds = stored["step"], stored["seconds"]


def _check_optimiser(optimiser: torch.optim.Optimizer, stored: dict[str, Any], path: Path) -> None:
    """Checkpoints of earlier versions do not name theirs: its groups of parameters tell."""
    wanted, there = optimiser_name(optimiser), stored.get("optimiser_name")
    if there is None:
        fits = _group_sizes(stored["optimiser"]) == _group_sizes(optimiser.state_dict())
        there = wanted if fits else "another optimiser"
    if there != wanted:
        raise ValueError(f"{path} was trained with {there}, not {wanted}: go on with that, or choose another --out")


def _group_sizes(state: dict[str, Any]) -> list[int]:
    return [len(group["params"]) for group in state["param_groups"]]


def _check_averages(averages: list[PowerAverage], stored: dict[str, Any], path: Path) -> None:
    """Checkpoints of earlier versions do not tell the exponents, only how many there are."""
    wanted, count = [average.gamma for average in averages], len(stored["averages"])
    there = stored.get("exponents", wanted if len(wanted) == count else f"{count} unknown ones")
    if there != wanted:
        raise ValueError(f"{path} averages weights with the exponents {there}, not {wanted}: choose another --out")


def train_step(state: TrainState, settings: TrainSettings, crops: Crops) -> tuple[float, float]:
    """One step, whose random numbers depend on the seed and its number alone; its loss and gradient's norm."""
    drawn = draw_batch(state.model, settings, crops, state.step)
    clean, sigma, noise = (each.to(own_device(settings.device)) for each in drawn)
    for group in state.optimiser.param_groups:
        group["lr"] = learning_rate(settings, state.step)
    state.optimiser.zero_grad(set_to_none=True)
    loss = kind_of(state.config).loss(with_precision(state.model, settings.precision), clean, noise, sigma)
    loss.backward()
    average_gradients(state.model)
    norm = torch.nn.utils.clip_grad_norm_(state.model.parameters(), settings.clip)
    if not math.isfinite(norm.item()):
        raise FloatingPointError(f"the gradient is {norm.item()} at step {state.step}: begin again with a smaller --lr")
    state.optimiser.step()
    state.step += 1
    for average in state.averages:
        average.update(state.model, state.step)
    return loss.item(), norm.item()


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
