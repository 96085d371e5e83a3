"""A batch from its items to its table: what is finished stays, what is half done goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from snips.batch.engines import ENGINES, Restore
from snips.batch.folders import RunFolder, RunSettings
from snips.batch.items import Item
from snips.batch.scores import Scores, write_table
from snips.batch.summary import write_summary
from snips.batch.work import ItemOutcome
from snips.files import locked
from snips.names import unknown_name

Progress = Callable[["Standing", ItemOutcome | None], None]


@dataclass(frozen=True)
class Standing:
    """How far a run is."""

    total: int
    before: int  # were finished when it began
    done: int  # since then, the failed ones with them
    failed: int


def run_batch(
    items: Sequence[Item],
    folder: RunFolder,
    settings: RunSettings,
    *,
    engine: str = "local",
    address: str | None = None,
    force: bool = False,
    progress: Progress = lambda standing, outcome: None,
) -> Scores:
    """Restore all items that have no result yet, then write scores.parquet and summary.html -> the scores.

    The same call again, after whatever ended the first, leads to the same bits as one call that was never stopped.
    """
    if engine not in ENGINES:
        raise ValueError(unknown_name("engine", engine, list(ENGINES)))
    with ENGINES[engine](settings, address) as restore, locked(folder.path):
        folder.open(settings, force)
        folder.sweep(items)
        warnings = folder.doubts(items)
        try:
            _restore_all(items, folder, restore, warnings, progress)
        except KeyboardInterrupt:  # what is finished has its place in the table at once
            _written(folder, items, warnings)
            raise
        folder.sweep(items)
        return _written(folder, items, warnings)


def _restore_all(
    items: Sequence[Item], folder: RunFolder, restore: Restore, warnings: list[str], progress: Progress
) -> None:
    pending = [item for item in items if not folder.is_finished(item)]
    standing = Standing(len(items), len(items) - len(pending), 0, 0)
    progress(standing, None)
    for outcome in restore(folder, pending):
        failed = standing.failed + (outcome.error is not None)
        standing = Standing(standing.total, standing.before, standing.done + 1, failed)
        warnings += [outcome.warning] if outcome.warning else []
        progress(standing, outcome)


def _written(folder: RunFolder, items: Sequence[Item], warnings: list[str]) -> Scores:
    """scores.parquet and summary.html, from the results on the disk."""
    scores = Scores.of(folder, items, warnings)
    write_table(scores, folder.path / "scores.parquet")
    write_summary(scores, folder)
    return scores
