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
from snips.files import check_settings, locked, new_file, read_json, write_json
from snips.results.storage import plain, versions
from snips.samplers.base import StepInfo

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
    folder.open(plain(study.settings), force)
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
            "command": request.command(name),
            "settings": study.settings,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
            "versions": versions(),
            "results": outcome.results,
            "pictures": sorted(outcome.pictures),
        }
    )


@dataclass(frozen=True)
class StudyFolder:
    """settings.json and parts/ while it runs; result.json, result.md and pictures at the end."""

    path: Path

    def open(self, settings: dict[str, Any], force: bool) -> None:
        """Go on in a folder with the same settings, or begin: in a new one, or, when forced, in one with others."""
        kept = self.path / "settings.json"
        if any(self.path.iterdir()) and not kept.is_file():
            raise ValueError(f"{self.path} holds something else: choose another folder with --out")
        if kept.is_file() and force:
            for old in (*(self.path / "parts").glob("*"), self.path / "result.json", self.path / "result.md"):
                old.unlink(missing_ok=True)
        elif kept.is_file():
            check_settings(self.path, read_json(kept), settings)
        (self.path / "parts").mkdir(parents=True, exist_ok=True)
        write_json(kept, settings)

    def load(self, part: Part) -> Measured | None:
        """What an earlier run found; the JSON is written last, so where it is, all is, unless somebody removed it."""
        facts, tensors = self._files(part)
        if not facts.is_file():
            return None
        found = read_json(facts)
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
