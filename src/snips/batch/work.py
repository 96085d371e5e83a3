"""One item from file to result. Everything a worker does, and what it keeps for the next item."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from snips.batch.folders import RunFolder, RunSettings
from snips.batch.items import Item
from snips.batch.posed import posed_item
from snips.operators import LinearOperator
from snips.priors import Prior
from snips.priors.choice import GAUSSIAN, choose_prior, misfit, prior_for, takes_grey
from snips.priors.digest import weights_digest
from snips.priors.precision import with_precision
from snips.priors.registry import BUNDLED, load_prior
from snips.priors.unet import UNet
from snips.problems import make_operator
from snips.restoration import Restoration
from snips.results.checkpoints import Checkpoint, fingerprint_of
from snips.results.storage import plain
from snips.running import costs
from snips.running.devices import restore_on
from snips.running.sampler_settings import sampler_settings
from snips.running.tiling import tiles_for

Kept = TypeVar("Kept")
MOST_KEPT = 8  # operators, and priors, that a worker keeps


@dataclass(frozen=True)
class ItemOutcome:
    """How an item ended."""

    key: str
    seconds: float
    error: str | None = None
    warning: str | None = None


class Workshop:
    """Operators and priors that were used last: loaded once, not for each item."""

    def __init__(self) -> None:
        self.operators: OrderedDict[Any, LinearOperator] = OrderedDict()
        self.priors: OrderedDict[Any, Prior] = OrderedDict()
        self.grey: OrderedDict[str | None, bool] = OrderedDict()

    def operator(self, name: str, image_shape: tuple[int, ...], **options: Any) -> LinearOperator:
        """`make_operator`, remembered."""
        arrays = {key: value for key, value in options.items() if isinstance(value, Tensor)}
        others = plain({key: value for key, value in options.items() if key not in arrays})
        key = fingerprint_of({"name": name, "shape": list(image_shape), "options": others}, arrays)
        return _kept(self.operators, key, lambda: _made(name, image_shape, options, others))

    def takes_grey(self, prior: str | None) -> bool:
        """`choice.takes_grey`, remembered: it may have to read a file."""
        return _kept(self.grey, prior, lambda: takes_grey(prior))

    def prior(self, name: str | None, image_shape: tuple[int, int, int], weights: dict[str, str]) -> Prior:
        """`prior_for`, remembered; other weights than the run began with end it, on whatever machine they are."""
        name = choose_prior(image_shape).name if name is None else name
        key = (name, image_shape if name == GAUSSIAN else image_shape[0])
        return _kept(self.priors, key, lambda: checked_weights(name, prior_for(name, image_shape), weights))


def _made(name: str, image_shape: tuple[int, ...], options: dict[str, Any], told: dict[str, Any]) -> LinearOperator:
    """`make_operator`; an option of a wrong type is bad input, too, and ends its item only."""
    try:
        return make_operator(name, image_shape, **options)
    except (TypeError, AttributeError, KeyError, IndexError) as error:
        raise ValueError(f"{name} cannot be made with the options {told}: {error}") from error


def weights_digests(name: str | None) -> dict[str, str]:
    """A hash of the weights that a run with this prior may use; of all bundled ones where each item has its own."""
    installed = [prior.name for prior in BUNDLED.values() if prior.file.is_file()]
    names = installed if name is None else [] if name == GAUSSIAN else [name]
    return {name: weights_digest(load_prior(name)) for name in names}


def check_prior_precision(name: str | None, precision: str) -> None:
    """That the prior can be used in that precision; before a run, and not for each of its items."""
    if name is not None:
        with_precision(prior_for(name, (1, 1, 1)) if name == GAUSSIAN else load_prior(name), precision)


def untiled_pixels(name: str | None, workers: int) -> int | None:
    """How many each of a machine's workers may denoise at once; of the prior for any size where each item has its own.

    None for all others: of a foreign network not even the number of channels is known.
    """
    fitting = next(prior for prior in BUNDLED.values() if prior.size is None)
    if name == GAUSSIAN or (name is None and not fitting.file.is_file()):
        return None
    prior = load_prior(name or fitting.name)
    return costs.untiled_pixels(prior, max(prior.config.channels)) // workers if isinstance(prior, UNet) else None


def checked_weights(name: str, prior: Prior, weights: dict[str, str]) -> Prior:
    if name != GAUSSIAN and weights.get(name) != weights_digest(prior):
        raise OSError(f"the prior {name} has other weights here than where the run began: install the same ones")
    return prior


def _kept(kept: OrderedDict[Any, Kept], key: Any, make: Callable[[], Kept]) -> Kept:
    value = kept.pop(key) if key in kept else make()
    kept[key] = value
    while len(kept) > MOST_KEPT:
        kept.popitem(last=False)
    return value


@cache
def workshop() -> Workshop:
    """The one of this process."""
    return Workshop()


def restore_item(folder: RunFolder, settings: RunSettings, item: Item) -> ItemOutcome:
    """Restore an item, or go on with it, and write its result.

    What is wrong with the item is its outcome, and the others go on; a disk that does not take the result ends the run.
    """
    started = time.perf_counter()
    torch.set_num_threads(settings.threads)
    try:
        result, checkpoint, warning = _restored(folder, settings, item)
    except OSError:
        raise
    except Exception as error:  # whatever it is, ten thousand others shall not wait for it
        told = _told(error)
        folder.note_failure(item, told)
        return ItemOutcome(item.key, time.perf_counter() - started, told)
    warning = _saved(result, folder, item) or warning
    checkpoint.remove()
    folder.forget_state(item)
    folder.forget_failure(item)
    return ItemOutcome(item.key, time.perf_counter() - started, warning=warning)


def _told(error: Exception) -> str:
    """In one line; what nobody foresaw with its type, as its words alone may say little."""
    words = " ".join(str(error).split())
    return words if words and isinstance(error, ValueError | RuntimeError) else f"{type(error).__name__}: {words}"


def _saved(result: Restoration, folder: RunFolder, item: Item) -> str | None:
    """Write the result -> what went wrong with its pictures, which can be drawn again."""
    if folder.is_finished(item):  # by another worker, which was thought to be dead
        return None
    try:
        result.save(folder.place(item))
    except OSError:
        raise
    except Exception as error:
        if not folder.is_finished(item):
            raise
        return f"{item.key}: its samples are safe, but its pictures could not be drawn ({_told(error)})"
    return None


def _restored(folder: RunFolder, settings: RunSettings, item: Item) -> tuple[Restoration, Checkpoint, str | None]:
    """The result of an item, its state on the disk, and a warning."""
    digest, seed = item.digest(), item.seed(settings.seed)
    posed = posed_item(item, seed, workshop().operator, workshop().takes_grey(settings.prior))
    costs.check_results(posed.problem, settings.samples)  # the system would end the run, and the next at the same item
    shape = posed.problem.operator.image_shape
    options = sampler_settings(settings.sampler, **settings.sampler_options)
    options["chunk"] = settings.chunk or costs.chosen_chunk(shape, settings.chunk_pixels)
    checkpoint = folder.checkpoint(item, digest)
    damage = checkpoint.drop_damaged()
    network = workshop().prior(settings.prior, shape, settings.prior_weights)
    prior = with_precision(network, settings.precision)
    tiles = tiles_for(posed.problem, prior, settings.tile, settings.untiled_pixels)
    result = restore_on(
        torch.device(settings.device),
        posed,
        tiles.prior if tiles else prior,
        sampler=settings.sampler,
        samples=settings.samples,
        seed=seed,
        checkpoint=checkpoint,
        **options,
    )
    origin: dict[str, Any] = {"item": {"key": item.key, "digest": digest, "options": item.options_digest()}}
    origin |= {"tiles": tiles.record()} if tiles else {}
    origin |= {"prior_doubt": doubt} if (doubt := misfit(network, shape)) else {}
    warning = f"{item.key}: its state could not be read, so it was begun anew ({damage})" if damage else None
    return replace(result, settings={**result.settings, **origin}), checkpoint, warning
