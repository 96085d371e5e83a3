"""One restoration that a command asks for: sampled with a bar, stopped, resumed, verified."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import typer
from rich.progress import TimeRemainingColumn

from snips.cli.app import err
from snips.cli.progress import progress_bar
from snips.files import read_json
from snips.memory import is_out_of_memory
from snips.posing.pictures import PhotoProblem
from snips.priors import Prior
from snips.restoration import Broken, Interrupted, Restoration, sampler_for
from snips.results import storage
from snips.results.checkpoints import Checkpoint, run_facts, run_fingerprint
from snips.running.devices import moved, restore_on
from snips.running.tiling import Tiles
from snips.running.verification import finer, verified
from snips.samplers.table import sampler_entry

KEPT = "the samples are kept, without a verdict"
EXPECTED = (ValueError, OSError, FloatingPointError, MemoryError)  # others are mistakes in snips, and show where


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What was finished reaches the disk, however often Ctrl-C is pressed."""
    if threading.current_thread() is not threading.main_thread():  # only there can signals be handled
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def save_somewhere(result: Restoration, folder: Path, force: bool) -> None:
    """Write the result; samples took long, so where the folder cannot take them, a new temporary one does."""
    try:
        result.save(folder, force=force)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        try:
            rescued = result.save(Path(tempfile.mkdtemp(prefix="snips-")) / folder.name)
        except OSError as again:
            place = f"nor {tempfile.gettempdir()} ({again.strerror or again})"
            raise ValueError(f"neither {folder} can be written ({reason}), {place}: make room on the disk") from again
        raise ValueError(f"{folder} cannot be written ({reason}): the result is in {rescued} instead") from error


@dataclass(frozen=True)
class RestoreRun:
    """All that sampling needs."""

    posed: PhotoProblem
    prior: Prior
    sampler: str
    samples: int
    seed: int
    settings: dict[str, Any]
    command: str
    device: torch.device
    checkpoint: Checkpoint | None = None
    tiles: Tiles | None = None  # in which the prior sees the image

    @property
    def calls(self) -> int:
        """How often the denoiser is called for each sample."""
        return sampler_entry(self.sampler).calls(self.settings)

    def sample(self, quiet: bool) -> Restoration:
        with progress_bar(quiet, TimeRemainingColumn()) as progress:
            bar = progress.add_task("sampling", total=None)
            result = restore_on(
                self.device,
                self.posed,
                self.prior,
                sampler=self.sampler,
                samples=self.samples,
                seed=self.seed,
                on_step=lambda info: progress.update(bar, completed=info.step, total=info.total),
                checkpoint=self.checkpoint,
                **self.settings,
            )
        return self._with_origin(result)

    def sampled(self, quiet: bool) -> tuple[Restoration, int]:
        """The result, or what was finished when Ctrl-C came, and the exit code."""
        try:
            return self.sample(quiet), 0
        except Interrupted as stop:
            return self.kept(stop), 130
        except Broken as failure:
            if self.checkpoint is not None:
                raise ValueError(f"{failure}; the steps before are kept: the same command goes on") from failure
            if failure.finished is None:
                raise ValueError(f"{failure} before a sample was finished; --resume would keep its steps") from failure
            note(f"error: {failure}; {failure.finished.settings['interrupted']} samples are kept", quiet=False)
            return self._with_origin(failure.finished), 2

    def completed(self, folder: Path, verify: bool, quiet: bool) -> tuple[Restoration, int]:
        """The result that is there already, with the verdict that it may lack, and the exit code."""
        result = self.finished(folder)
        if not verify or "verification" in result.settings:
            return result, 0
        return self.verified(result, folder, quiet)

    def finished(self, folder: Path) -> Restoration:
        """What an earlier run of this command wrote; a folder with anything else is not touched."""
        result = Restoration.load(folder, self.posed.problem.operator)
        if result.settings.get("fingerprint") != self.fingerprint():
            raise ValueError(
                f"{folder} exists already, and is no result of this command with --resume: choose another folder, or "
                "overwrite its results with --force"
            )
        return result

    def is_begun(self) -> bool:
        """Whether the state on the disk is this run's."""
        return self.checkpoint is not None and self.checkpoint.recorded().get("fingerprint") == self.fingerprint()

    def fingerprint(self) -> str:
        sampler = sampler_for(self.sampler, self.posed.problem)
        described = {"sampler": sampler, "sampler_options": self.settings, "seed": self.seed}
        problem = moved(self.posed.problem, self.device)
        return run_fingerprint(problem, self.prior, run_facts(problem, self.prior, self.samples, described))

    def kept(self, stop: Interrupted) -> Restoration:
        """The samples that were finished when Ctrl-C came, unless the run can go on from its state."""
        if self.checkpoint is not None:
            note("stopped: the same command goes on", quiet=False)
            raise typer.Exit(130)
        if stop.finished is None:
            note("stopped before a sample was finished: nothing is written", quiet=False)
            raise typer.Exit(130)
        note(f"stopped; {stop.finished.settings['interrupted']} samples were finished and are kept", quiet=False)
        return self._with_origin(stop.finished)

    def verified(self, result: Restoration, folder: Path, quiet: bool) -> tuple[Restoration, int]:
        """The result, which is in `folder` already, with the verdict of a finer run, here and there; the exit code."""
        try:
            found = verified(result, self._finer(result).sample(quiet))
        except KeyboardInterrupt:
            note(f"stopped while verifying: {KEPT}", quiet=False)
            return result, 130
        except Exception as error:
            note(f"error while verifying: {_reason(error)}; {KEPT}", quiet=False)
            if not isinstance(error, EXPECTED) and not is_out_of_memory(error):
                raise
            return result, 2
        return found, _written(found, folder)

    def _finer(self, result: Restoration) -> RestoreRun:
        """The second run."""
        arguments = finer(result)
        fields = {name: arguments.pop(name) for name in ("sampler", "samples", "seed")}
        return replace(self, settings=arguments, checkpoint=None, **fields)

    def _with_origin(self, result: Restoration) -> Restoration:
        """What the command knows beside: its words, and into which tiles calls were cut."""
        origin = {"command": self.command, **({"tiles": self.tiles.record()} if self.tiles else {})}
        return replace(result, settings={**result.settings, **origin})


def _written(verified: Restoration, folder: Path) -> int:
    """Add the verdict to what is saved -> the exit code."""
    try:
        with uninterrupted():
            storage.save_settings(verified, folder)
    except EXPECTED as error:
        note(f"error: the verdict cannot be added to {folder} ({_reason(error)})", quiet=False)
        return 2
    return 0


def _reason(error: Exception) -> str:
    """In one line."""
    return "there is not enough memory" if is_out_of_memory(error) else " ".join(str(error).split()) or repr(error)


def recorded(folder: Path, checkpoint: Checkpoint | None, finished: bool) -> dict[str, Any]:
    """Threads, chunk and tile that the machine chose where a run began, from its result or state: they change rounding.

    The same command takes them again, wherever and whenever it goes on.
    """
    if finished:
        settings = read_json(folder / "result.json")["settings"] if (folder / "result.json").is_file() else {}
        settings = {**settings, "tile": settings.get("tiles", {}).get("side")} if settings else {}
    else:
        settings = checkpoint.recorded() if checkpoint is not None else {}
    chosen = {name: settings[name] for name in ("threads", "tile") if name in settings}
    return chosen | {name: value for name, value in settings.get("sampler_options", {}).items() if name == "chunk"}


def discard(checkpoint: Checkpoint | None) -> None:
    """The state, where one is kept, with the hidden folder that was made for it."""
    if checkpoint is None:
        return
    checkpoint.remove()
    with suppress(OSError):  # it was never made, or somebody else put something there
        checkpoint.path.parent.rmdir()


def note(text: str, quiet: bool) -> None:
    if not quiet:
        err.print(f"snips: {text}", markup=False, highlight=False, soft_wrap=True)
