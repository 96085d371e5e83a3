"""Run an experiment: every finished part is kept at once, and what is kept is not computed again."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from snips.experiments.base import Experiment, Measured, Outcome, Part, Request, Study
from snips.experiments.stored import stored_record
from snips.files import check_settings, is_leftover, locked, new_file, read_json, write_json
from snips.results.storage import plain, versions
from snips.samplers.base import StepInfo
from snips.samplers.multistep import STEPS_VERSION

Progress = Callable[[str, int, int, StepInfo | None], None]  # label, parts done, parts in all, and the step within

TENSORS = "has_tensors"  # in the JSON of a part: whether there must be a file of tensors beside it
QUICK_NOTE = """**This was a quick run.** It shows that everything works. Its figures mean nothing: there are few
images, few samples and far too few steps, with which `langevin` gives noise.

"""


def run(name: str, experiment: Experiment, request: Request, progress: Progress, force: bool = False) -> dict[str, Any]:
    """Compute what is missing, then write result.json, result.md and pictures -> what result.json holds."""
    study = experiment.prepare(request)
    with locked(request.out / name):
        return _run(name, experiment, study, request, progress, force)


def _run(
    name: str, experiment: Experiment, study: Study, request: Request, progress: Progress, force: bool
) -> dict[str, Any]:
    folder = StudyFolder(request.out / name)
    folder.open(name, plain(study.settings), force)
    measured = []
    for done, part in enumerate(study.parts):
        progress(part.label, done, len(study.parts), None)
        measured.append(folder.load(part) or _compute(folder, part, done, len(study.parts), progress))
    progress("", len(study.parts), len(study.parts), None)
    outcome = study.conclude(measured)
    record = _record(name, request, study, outcome)
    folder.write(record, (QUICK_NOTE if request.quick else "") + experiment.describe(record["results"]), outcome)
    return record


def _compute(folder: StudyFolder, part: Part, done: int, total: int, progress: Progress) -> Measured:
    """As it will be read again: a run that was never stopped gives exactly what a resumed one does."""
    folder.store(part, part.compute(lambda info: progress(part.label, done, total, info)))
    stored = folder.load(part)
    assert stored is not None, "it was written a moment ago"
    return stored


def _record(name: str, request: Request, study: Study, outcome: Outcome) -> dict[str, Any]:
    return plain(
        {
            "experiment": name,
            "command": outcome.command or request.command(name),
            "settings": study.settings,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
            "versions": {**versions(), "steps of fast": STEPS_VERSION},
            "results": outcome.results,
            "pictures": sorted(outcome.pictures),
        }
    )


@dataclass(frozen=True)
class StudyFolder:
    """settings.json and parts/ while it runs; result.json, result.md and pictures at the end."""

    path: Path

    def open(self, name: str, settings: dict[str, Any], force: bool) -> None:
        """Go on in a folder with the same settings, or begin: in a new one, or, when forced, in one with others.

        A kill at any moment leaves a folder that opens again: parts never lie beside settings that are not theirs.
        """
        if not self._is_own(name):
            raise ValueError(f"{self.path} holds something else: choose another folder with --out")
        if force:
            self._remove(*(self.path / "parts").glob("*"))
        else:
            self._check(name, settings)
        write_json(self.path / "settings.json", settings)
        if force:
            self._remove(self.path / "result.json", self.path / "result.md")
        (self.path / "parts").mkdir(exist_ok=True)

    def _is_own(self, name: str) -> bool:
        """Whether it is of this experiment, or holds nothing but what a killed process left."""
        if (self.path / "settings.json").is_file() or self._record(name):
            return True
        return all(is_leftover(file) or _is_empty_folder(file) for file in self.path.iterdir())

    def _check(self, name: str, settings: dict[str, Any]) -> None:
        """What an earlier run left must be of the same settings, and not damaged: that is noticed before the work."""
        kept, result = self._settings(name), self.path / "result.json"
        if kept is not None:
            check_settings(self.path, kept, settings)
        if result.is_file():
            with stored_record(result, name):
                pass

    def _settings(self, name: str) -> dict[str, Any] | None:
        """Those of the run that the folder holds; a clone of the repository has them in result.json alone."""
        kept = self.path / "settings.json"
        if not kept.is_file():
            record = self._record(name)
            return None if record is None else record["settings"]
        found = read_json(kept)
        if not isinstance(found, dict):
            raise ValueError(f"{kept} is damaged (it holds no settings): begin again with --force")
        return found

    def _record(self, name: str) -> dict[str, Any] | None:
        """The result.json, if it is of this experiment."""
        file = self.path / "result.json"
        found = read_json(file) if file.is_file() else None
        mine = isinstance(found, dict) and found.get("experiment") == name and isinstance(found.get("settings"), dict)
        return found if mine else None

    @staticmethod
    def _remove(*files: Path) -> None:
        for old in files:
            old.unlink(missing_ok=True)

    def load(self, part: Part) -> Measured | None:
        """What an earlier run found; the JSON is written last, so where it is, all is, unless somebody removed it."""
        facts, tensors = self._files(part)
        if not facts.is_file():
            return None
        found = read_json(facts)
        if not (found and isinstance(found, dict)):
            raise ValueError(f"{facts} is damaged (it holds no results): remove it, and the same command goes on")
        if found.pop(TENSORS, tensors.is_file()) and not tensors.is_file():
            return None
        try:
            return Measured(found, load_file(tensors) if tensors.is_file() else {})
        except SafetensorError as error:
            raise ValueError(f"{tensors} is damaged ({error}): remove it, and the same command goes on") from error

    def store(self, part: Part, measured: Measured) -> None:
        facts, tensors = self._files(part)
        if measured.tensors:
            with new_file(tensors) as work:
                save_file({name: value.contiguous() for name, value in measured.tensors.items()}, work)
        write_json(facts, {**plain(measured.facts), TENSORS: bool(measured.tensors)})

    def write(self, record: dict[str, Any], text: str, outcome: Outcome) -> None:
        for name, picture in outcome.pictures.items():
            with new_file(self.path / f"{name}.png") as work:
                picture.save(work)
        with new_file(self.path / "result.md") as work:
            work.write_text(f"# {record['experiment']}\n\n`{record['command']}`\n\n{text}", encoding="utf-8")
        write_json(self.path / "result.json", record)

    def _files(self, part: Part) -> tuple[Path, Path]:
        base = self.path / "parts" / part.key
        return base.with_name(f"{part.key}.json"), base.with_name(f"{part.key}.safetensors")


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
