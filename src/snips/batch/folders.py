"""The folder of a batch: what is fixed for the run, what is finished, what is half done, what failed."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from snips.batch.items import Item
from snips.files import check_settings, read_json, write_json
from snips.names import printable
from snips.results.checkpoints import SECONDS, Checkpoint
from snips.results.storage import plain, versions

OWN = ("items", "states", "failed", "scores.parquet", "summary.html", "run.json")  # run.json last: it marks the folder
FOLDERS = OWN[:3]
RECORD = {"seed", "samples", "sampler", "prior_weights", "versions"}  # what tells our run.json from somebody else's
RESULT = {"settings", "operator", "sigma_0", "psnr", "ssim", "faithfulness"}  # what the table takes from a result.json
HALF_WRITTEN = tuple(f".{Path(name).stem}-*" for name in OWN if "." in name)  # what `new_file` calls them until then


@dataclass(frozen=True)
class RunSettings:
    """What is the same for all items of a run, on whatever machine: with an item's key, it decides every bit."""

    seed: int
    samples: int
    sampler: str
    sampler_options: dict[str, Any]  # of `sampler_settings`, by name
    prior: str | None  # None: the one that fits each item
    prior_weights: dict[str, str]  # of `weights_digests`: the same name may stand for other weights one day
    chunk: int | None  # chains at a time; None: as many as have chunk_pixels
    chunk_pixels: int  # of `costs.fitting_pixels`: chosen where the run begins, for all items and machines
    threads: int
    device: str = "cpu"
    precision: str = "float32"
    tile: int | None = None  # pixels of a tile's side; None: tiles that fit, for images of more than untiled_pixels
    untiled_pixels: int | None = None  # chosen where the run begins, as chunk_pixels is; None: no tiles by themselves
    source: str = ""  # of `source_name`: another one may give the same keys to other measurements


@dataclass(frozen=True)
class RunFolder:
    """run.json, items/NAME with a result each, states/NAME of what is under way, failed/NAME.json."""

    path: Path
    checkpoint_seconds: float = SECONDS

    def open(self, settings: RunSettings, force: bool) -> None:
        """Go on in a folder with the same settings, or begin: in a new one, or, when forced, in one with others."""
        wanted, kept = plain({**asdict(settings), "versions": versions()}), self.recorded()
        if not kept and not self._barely_begun():
            raise ValueError(f"{self.path} holds something else: choose another folder with --out")
        if kept and not force:
            check_settings(self.path, kept, wanted)
        elif kept:
            self._clear()
        write_json(self.path / "run.json", wanted)
        for name in FOLDERS:
            (self.path / name).mkdir(exist_ok=True)

    def recorded(self) -> dict[str, Any]:
        """What run.json says; empty where no run has begun. Somebody else's is refused, as results would be removed."""
        file = self.path / "run.json"
        if not file.is_file():
            return {}
        record = _read(file, RECORD)
        if record is None:
            raise ValueError(f"{file} is damaged, or of something else: choose another folder with --out")
        return record

    def check_versions(self) -> None:
        """On a node of a cluster: other versions than the run's would go on with other bits."""
        here, began = versions(), self.recorded().get("versions", {})
        for name, version in began.items():
            if here.get(name) != version:
                told = f"{platform.node()} has {name} {here.get(name)}, but the run began with {version}"
                raise OSError(f"{told}: install the same on all nodes")

    def place(self, item: Item) -> Path:
        return self.path / "items" / item.name

    def result(self, item: Item) -> dict[str, Any] | None:
        """What result.json says of a finished item; a folder that lacks it, or has a damaged one, is told of."""
        place = self.place(item)
        if not place.exists():
            return None
        result = _read(place / "result.json", RESULT)
        if result is None:
            raise ValueError(
                f"{place / 'result.json'} is damaged or gone: remove the folder {place}, and the same command restores "
                "it again"
            )
        return result

    def is_finished(self, item: Item) -> bool:
        """Whether the item has its result. One with other options is another run's, and is not overwritten."""
        result = self.result(item)
        if result is None:
            return False
        if result["settings"].get("item", {}).get("options") != item.options_digest():
            raise ValueError(
                f"{self.place(item)} was restored with other options than {item.key} has now: choose another folder "
                "with --out, or begin again with --force"
            )
        return True

    def doubts(self, items: Sequence[Item]) -> list[str]:
        """Where finished results and the sources of today do not fit together; the results stay as they are."""
        known, places = {item.name for item in items}, (self.path / "items").iterdir()
        gone = sorted(place.name for place in places if place.is_dir() and place.name not in known)
        told = [f"items/{name}: nothing in the source has this name any more; the result is kept" for name in gone]
        return [*filter(None, map(self._doubt, items)), *told]

    def _doubt(self, item: Item) -> str | None:
        result = self.result(item)
        if result is None:
            return None
        try:
            changed = result["settings"].get("item", {}).get("digest") != item.digest()
        except ValueError as error:
            return f"{item.key}: its source is gone since it was restored, the result is kept ({error})"
        if changed:
            return f"{item.key}: its source has changed since it was restored; the result is of what it was"
        return None

    def checkpoint(self, item: Item, digest: str) -> Checkpoint:
        """The state of an item that is under way; that of a changed one has another name."""
        return Checkpoint(self.path / "states" / item.name / f"{digest[:16]}.safetensors", self.checkpoint_seconds)

    def forget_state(self, item: Item) -> None:
        """All of an item that has its result, those of what its source was before with them."""
        _remove(self.path / "states" / item.name)

    def note_failure(self, item: Item, error: str) -> None:
        write_json(self._failure(item), {"key": item.key, "error": printable(error)})

    def failure(self, item: Item) -> str | None:
        file = self._failure(item)
        return read_json(file)["error"] if file.is_file() else None

    def forget_failure(self, item: Item) -> None:
        self._failure(item).unlink(missing_ok=True)

    def sweep(self, items: Sequence[Item]) -> None:
        """Remove what dead processes left: half-written files, and states and failures of items that got their result.

        Failures of items that the source does not have any more go, too.

        Only while nobody works here: before a run, and after it, as Ray replaces workers that die in its midst.
        """
        patterns = ("items/.*-*", "failed/.*-*", *HALF_WRITTEN)
        for left in (path for pattern in patterns for path in self.path.glob(pattern)):
            _remove(left)
        for result in self.path.glob("items/*/result.json"):
            name = result.parent.name
            _remove(self.path / "states" / name)
            _remove(self.path / "failed" / f"{name}.json")
        for failure in set(self.path.glob("failed/*.json")) - set(map(self._failure, items)):
            _remove(failure)

    def _failure(self, item: Item) -> Path:
        return self.path / "failed" / f"{item.name}.json"

    def _barely_begun(self) -> bool:
        """Nothing but what a run that died before its run.json was there leaves: half-written files, empty folders."""
        left = {path for pattern in HALF_WRITTEN for path in self.path.glob(pattern) if path.is_file()}
        left |= {path for name in FOLDERS if (path := self.path / name).is_dir() and not any(path.iterdir())}
        return left >= set(self.path.iterdir())

    def _clear(self) -> None:
        for name in OWN:
            _remove(self.path / name)


def source_name(source: Path, out: Path, dataset: str | None) -> str:
    """Where the measurements lie, seen from the run's folder: both may be moved together, or mounted elsewhere."""
    try:
        seen = os.path.relpath(source.resolve(), out.resolve())
    except ValueError:  # on another drive of Windows
        seen = str(source.resolve())
    return Path(seen).as_posix() + ("" if dataset is None else f":{dataset}")


def _read(file: Path, fields: set[str]) -> dict[str, Any] | None:
    """A record of ours, with these fields among others; None where there is none that can be read."""
    try:
        record = read_json(file)
    except (ValueError, FileNotFoundError, NotADirectoryError):
        return None
    return record if isinstance(record, dict) and fields <= record.keys() else None


def _remove(path: Path) -> None:
    """A folder with all in it, a file, or nothing."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
