"""Where items are restored: in this process, or on Ray. The results are the same bits."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from snips.allocator import keep_freed_memory
from snips.batch.folders import RunFolder, RunSettings
from snips.batch.items import Item
from snips.batch.work import ItemOutcome, restore_item
from snips.extras import installing
from snips.priors.registry import BUNDLED, GAUSSIAN

Restore = Callable[[RunFolder, Sequence[Item]], Iterator[ItemOutcome]]
Engine = Callable[[RunSettings, str | None], AbstractContextManager[Restore]]  # entered before anything is written
DEATHS = ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError")  # of Ray: what an item's task may end with
ANSWER_SECONDS = 10.0  # that a cluster has to be there
RETRIES = 5  # of an item whose worker dies; Ray makes them, and each goes on from the item's last state


@contextmanager
def local(settings: RunSettings, address: str | None) -> Iterator[Restore]:
    """One after the other, here."""
    if address is not None:
        raise ValueError("--address is of a Ray cluster: add --engine ray")
    yield lambda folder, items: (restore_item(folder, settings, item) for item in items)


@contextmanager
def on_ray(settings: RunSettings, address: str | None) -> Iterator[Restore]:
    """A task for each item, on an existing cluster or on one of this machine's cores.

    A worker process serves many tasks and keeps its operators and priors. The folder and the measurements must be
    visible under the same names on all nodes.
    """
    ray = _ray()
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address, settings.threads)
    try:
        yield partial(_as_tasks, ray, settings)
    finally:
        if ours:
            ray.shutdown()


def _as_tasks(ray: Any, settings: RunSettings, folder: RunFolder, items: Sequence[Item]) -> Iterator[ItemOutcome]:
    needs = {"num_cpus": settings.threads, "num_gpus": int(settings.device.startswith("cuda"))}
    task = ray.remote(**needs, max_retries=RETRIES, scheduling_strategy="SPREAD")(on_node)
    there, chosen = replace(folder, path=folder.path.absolute()), _with_absolute_prior(settings)
    tasks = {task.remote(there, chosen, item): item for item in items}
    try:
        while tasks:
            ready, _ = ray.wait(list(tasks))
            for done in ready:
                yield _outcome(ray, done, folder, tasks.pop(done))
    finally:
        for left in tasks:  # in a cluster that goes on without us they would, too
            ray.cancel(left, force=True)


def _with_absolute_prior(settings: RunSettings) -> RunSettings:
    """Workers of an existing cluster live in another folder, where a relative name of a file means nothing."""
    name = settings.prior
    if name is None or name in (GAUSSIAN, *BUNDLED) or not Path(name).is_file():
        return settings
    path = str(Path(name).absolute())  # a link keeps its name, which results show
    return replace(settings, prior=path, prior_weights={path: settings.prior_weights[name]})


def _connect(ray: Any, address: str | None, threads: int) -> None:
    """To a cluster, or to one that is started here; what can never be scheduled would wait for ever without a word."""
    try:
        _check_address(address)
        ray.init(address=address, log_to_driver=False, include_dashboard=False, configure_logging=False)
    except (OSError, ValueError, RuntimeError) as error:
        told = " ".join(str(error).split())[:200]
        raise ValueError(f"no Ray cluster answers at {address or 'this machine'}: {told}") from error
    cores = int(ray.cluster_resources().get("CPU", 0))
    if threads > cores and address is None:
        ray.shutdown()
        raise ValueError(f"an item with {threads} threads never starts on {cores} cores: choose fewer with --threads")


def _check_address(address: str | None) -> None:
    """Ray itself tries for many minutes; `auto` and the like are names that it looks up here."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()


def on_node(folder: RunFolder, settings: RunSettings, item: Item) -> ItemOutcome:
    """An item in a worker process, on whatever machine that is."""
    if not (folder.path / "run.json").is_file():
        raise OSError(f"{folder.path} cannot be seen on all nodes of the cluster: take a shared folder for --out")
    folder.check_versions()
    keep_freed_memory()  # as the command line does for itself
    if folder.is_finished(item):  # by a worker that died between its result and its answer
        return ItemOutcome(item.key, 0.0)
    return restore_item(folder, settings, item)


def _outcome(ray: Any, done: Any, folder: RunFolder, item: Item) -> ItemOutcome:
    """What the task returned; that its worker died again and again is the item's failure, not the run's."""
    try:
        return ray.get(done)
    except tuple(getattr(ray.exceptions, name) for name in DEATHS) as error:
        told = f"its worker died {RETRIES + 1} times ({' '.join(str(error).split())[:200]})"
        folder.note_failure(item, told)
        return ItemOutcome(item.key, 0.0, told)
    except ray.exceptions.RayTaskError as error:
        raise error.cause if isinstance(error.cause, OSError | ValueError) else error from None
    except ray.exceptions.RayError as error:
        told = " ".join(str(error).split())[:200] or type(error).__name__
        raise OSError(f"Ray could not go on with {item.key}, but the same command does ({told})") from error


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ValueError(f"--engine ray needs Ray: {installing('ray')}") from error


ENGINES: dict[str, Engine] = {"local": local, "ray": on_ray}
