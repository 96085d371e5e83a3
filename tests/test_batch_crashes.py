"""A batch that is killed, has no room or may not write: nothing is lost, and the results are those of a calm run."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from batch_cases import SETTINGS, assert_same_bits, items_of, pictures, run
from batch_kills import check, nothing_left, survive_kills
from snips import files
from snips.batch import RunFolder, folders, run_batch
from snips.files import locked
from snips.results.checkpoints import Checkpoint

FEW, MANY = 6, 60


@pytest.fixture
def source(tmp_path):
    return pictures(tmp_path / "in")


def test_a_few_kills(source, tmp_path):
    assert survive_kills(source, tmp_path, FEW, seed=0)["kills"] == FEW


@pytest.mark.slow
def test_many_kills(source, tmp_path):
    assert survive_kills(source, tmp_path, MANY, seed=1)["kills"] == MANY


def test_a_killed_item_goes_on_from_its_last_step(source, tmp_path, monkeypatch):
    """Stopped in the midst of an item, the rest of its calls are made, and no more."""
    from snips.priors import StationaryGaussian

    run(source, tmp_path / "calm")
    denoise, calls = StationaryGaussian.denoise, []

    def counted(prior, x, sigma):
        calls.append(sigma)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return denoise(prior, x, sigma)

    monkeypatch.setattr(StationaryGaussian, "denoise", counted)
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out")
    errors = pyarrow.parquet.read_table(tmp_path / "out" / "scores.parquet")["error"].to_pylist()
    assert errors == [None, "not restored yet", "not restored yet"]  # the table is there already
    run(source, tmp_path / "out")
    assert len(calls) == 1 + 3 * 2 * 12  # the interrupted call is made again: 3 items, 2 chunks, 12 calls
    assert_same_bits(tmp_path / "calm", tmp_path / "out")


def test_killed_between_a_result_and_the_end_of_its_state(source, tmp_path, monkeypatch):
    """The next run tidies up what the first could not."""

    def killed(*_):
        raise KeyboardInterrupt

    remove = Checkpoint.remove
    monkeypatch.setattr(Checkpoint, "remove", killed)
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out")
    monkeypatch.setattr(Checkpoint, "remove", remove)
    assert list((tmp_path / "out" / "states").iterdir())
    run(source, tmp_path / "out")
    assert not list((tmp_path / "out" / "states").iterdir())


def test_a_full_disk_ends_the_run_and_loses_nothing(source, tmp_path, monkeypatch):
    """No room at each place in turn where a file is flushed; with room again, the run goes on."""
    flush, flushed = files.flush, []
    monkeypatch.setattr(files, "flush", lambda path: (flushed.append(path), flush(path)))
    run(source, tmp_path / "calm")
    assert len(flushed) > 100
    for place in range(1, len(flushed), 23):
        left = [place]

        def full(path, left=left):
            left[0] -= 1
            if left[0] == 0:
                raise OSError(errno.ENOSPC, "No space left on device", str(path))
            flush(path)

        out = tmp_path / f"full_{place}"
        monkeypatch.setattr(files, "flush", full)
        with pytest.raises(OSError, match="No space left"):
            run(source, out)
        monkeypatch.setattr(files, "flush", flush)
        check(source, out, tmp_path / "calm")


@pytest.mark.parametrize(
    "left",
    [[], ["items/"], ["items/", "states/", "failed/"], [".run-7.json"], ["items/", ".run-7.json", ".scores-7.parquet"]],
)
@pytest.mark.parametrize("force", [False, True])
def test_killed_before_the_run_was_recorded(left, force, source, tmp_path):
    """Whatever was there by then, the same command goes on."""
    (tmp_path / "out").mkdir()
    for name in left:
        path = tmp_path / "out" / name
        path.mkdir() if name.endswith("/") else path.write_bytes(b"{")
    assert all(row["error"] is None for row in run(source, tmp_path / "out", force=force))
    nothing_left(tmp_path / "out")


@pytest.mark.parametrize("foreign", ["items/thesis.txt", ".run-7.json/thesis.txt", "items"])
def test_what_only_looks_like_a_beginning_is_left_alone(foreign, source, tmp_path):
    file = tmp_path / "out" / foreign
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    with pytest.raises(ValueError, match="something else"):
        run(source, tmp_path / "out")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("removals", range(1, 7))
def test_killed_while_old_results_are_removed(removals, source, tmp_path, monkeypatch):
    """--force, stopped before each removal in turn, begins again."""
    run(source, tmp_path / "out")
    remove, left = folders._remove, [removals]

    def killed(path):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        remove(path)

    monkeypatch.setattr(folders, "_remove", killed)
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "out", force=True)
    monkeypatch.setattr(folders, "_remove", remove)
    assert all(row["error"] is None for row in run(source, tmp_path / "out", force=True))


def test_a_damaged_state_is_dropped_with_a_warning(source, tmp_path):
    """A disk may lose the end of a file; the item begins anew instead of failing for ever."""
    run(source, tmp_path / "calm")
    items, folder = items_of(source, tmp_path / "out"), RunFolder(tmp_path / "out", 0)
    state = folder.checkpoint(items[0], items[0].digest()).path
    with locked(folder.path):
        folder.open(SETTINGS, force=False)
    state.parent.mkdir(parents=True)
    state.write_bytes(b"torn")
    scores = run_batch(items, folder, SETTINGS)
    assert not scores.failed
    assert len(scores.warnings) == 1
    assert "begun anew" in scores.warnings[0]
    assert_same_bits(tmp_path / "calm", tmp_path / "out")


def test_failures_go_with_their_sources(source, tmp_path):
    (source / "bad.png").write_bytes(b"nothing")
    run(source, tmp_path / "out")
    assert (tmp_path / "out" / "failed" / "bad.png.json").is_file()
    (source / "bad.png").unlink()
    run(source, tmp_path / "out")
    assert not list((tmp_path / "out" / "failed").iterdir())


COMMAND = """
import sys
from snips.cli import main
{before}
sys.argv = ["snips", "batch", *sys.argv[1:], "-p", "sr2", "-s", "0.1", "-k", "2", "--nfe", "12", "--prior", "gaussian"]
main()
"""


def command(before: str, source: Path, out: Path, **options) -> subprocess.CompletedProcess:
    arguments = [sys.executable, "-c", COMMAND.format(before=before), str(source), "--out", str(out)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False, **options)


def test_files_that_must_not_grow_are_one_clear_line(source, tmp_path):
    """A limit of the system on the size of files stops writing in its midst, as a full disk does."""
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    done = command(limit, source, tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr.splitlines()[-1]
    assert not list((tmp_path / "out" / "items").iterdir())


def as_anybody() -> None:
    """Root may write everywhere; a process that it starts without this capability may not."""
    drop_capability, write_everywhere = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE of Linux
    if os.getuid() == 0 and ctypes.CDLL(None).prctl(drop_capability, write_everywhere, 0, 0, 0):
        raise OSError("the capability cannot be dropped")


def test_a_folder_that_cannot_be_written(source, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o555)
    done = command("", source, tmp_path / "locked" / "out", preexec_fn=as_anybody)
    assert done.returncode == 2, done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("snips:")]) == 1
    assert "Traceback" not in done.stderr
    assert not os.listdir(tmp_path / "locked")


def test_results_that_cannot_be_written(source, tmp_path):
    """The run's folder is there and may be read, but no more: nothing in it changes."""
    assert command("", source, tmp_path / "out").returncode == 0
    folders = [tmp_path / "out", *(path for path in (tmp_path / "out").rglob("*") if path.is_dir())]
    (tmp_path / "out" / "scores.parquet").unlink()
    for folder in folders:
        folder.chmod(0o555)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    done = command("", source, tmp_path / "out", preexec_fn=as_anybody)
    for folder in folders:
        folder.chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert "Permission denied" in done.stderr.splitlines()[-1]
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
