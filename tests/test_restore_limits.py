"""The limits of a run of `snips restore`: time and memory that are estimated first, Ctrl-C, full disks."""

from __future__ import annotations

import errno
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
import torch
from PIL import Image

from command_line import QUICK, refused, restored, run
from photo_files import random_pixels, saved_photo
from snips import Restoration, restoration
from snips.results import storage
from snips.running import costs
from snips.samplers import fast


@pytest.fixture
def photo(tmp_path):
    return saved_photo(tmp_path / "photo.png", 12, 20)


def test_large_photos_are_estimated_first(tmp_path):
    Image.fromarray(random_pixels(256, 256)).save(tmp_path / "large.png")
    result = restored(tmp_path, tmp_path / "large.png", "-s", "0.1", "--prior", "gaussian")
    assert "2 samples of 256 x 256 pixels will take about" in result.stderr
    assert "GiB of memory" in result.stderr


# The peak that a parent is told of its child counts the parent's own memory, from before the child became a program.
WITH_PEAK = """
import atexit, pathlib, snips.cli
atexit.register(lambda: print(pathlib.Path("/proc/self/status").read_text()))
snips.cli.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its peak of memory")
def test_the_estimated_memory_is_that_of_the_whole_program(tmp_path):
    """Program and weights included, as a task manager shows it: within a fifth of what the process really took."""
    Image.fromarray(random_pixels(256, 256)).save(tmp_path / "large.png")
    arguments = ["restore", tmp_path / "large.png", "-s", "0.1", "--nfe", "4", "-k", "2", "--out", tmp_path / "out"]
    done = subprocess.run([sys.executable, "-c", WITH_PEAK, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (gibibytes,) = re.findall(r"and ([\d.]+) GiB of memory", done.stderr)
    (kibibytes,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stdout)
    assert float(gibibytes) == pytest.approx(int(kibibytes) / 2**20, rel=0.2)


def test_ctrl_c_before_the_first_step_is_answered_in_one_line(tmp_path, monkeypatch):
    Image.fromarray(random_pixels(256, 256)).save(tmp_path / "large.png")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("snips.running.costs.estimate_cost", interrupted)
    result = run("restore", tmp_path / "large.png", "-s", "0.1", "--prior", "gaussian", "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert result.stderr.strip().splitlines() == ["snips: stopped"]
    assert not (tmp_path / "out").exists()


def test_what_does_not_fit_into_memory_is_refused_before(tmp_path, monkeypatch):
    Image.fromarray(random_pixels(256, 256)).save(tmp_path / "large.png")
    monkeypatch.setattr("snips.running.costs.available_memory", lambda: 1000)
    result = run("restore", tmp_path / "large.png", "-s", "0.1", "--out", tmp_path / "out", "--prior", "gaussian")
    assert result.exit_code == 2
    assert "GiB are free" in result.stderr
    assert not (tmp_path / "out").exists()


def test_more_interrupts_while_saving(photo, tmp_path, monkeypatch):
    """Ctrl-C again and again: what was finished is kept all the same."""
    real = Restoration.save

    def save(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(Restoration, "save", save)
    monkeypatch.setitem(restoration.SAMPLERS, "fast", interrupting(25))
    quick = ("-s", "0.1", "--nfe", "10", "-k", "5", "--chunk", "1", "--prior", "gaussian", "--out", tmp_path / "out")
    assert run("restore", photo, *quick).exit_code == 130
    assert len(Restoration.load(tmp_path / "out").samples) == 2


def interrupting(step):
    """The fast sampler, with Ctrl-C after some step."""

    def sampler(*arguments, on_step, **options):
        def then_stop(info):
            on_step(info)
            if info.step == step:
                raise KeyboardInterrupt

        return fast(*arguments, on_step=then_stop, **options)

    return sampler


@pytest.mark.parametrize(("step", "kept"), [(25, 2), (5, 0)])
def test_ctrl_c_keeps_finished_samples(step, kept, photo, tmp_path, monkeypatch):
    whole = ("restore", photo, "-s", "0.1", "--nfe", "10", "-k", "5", "--chunk", "1", "--prior", "gaussian", "--out")
    run(*whole, tmp_path / "whole")
    monkeypatch.setitem(restoration.SAMPLERS, "fast", interrupting(step))
    result = run(*whole, tmp_path / "out")
    assert result.exit_code == 130
    if not kept:
        assert "nothing is written" in result.stderr
        assert not (tmp_path / "out").exists()
        return
    assert "2 of 5 samples were finished and are kept" in result.stderr
    samples = Restoration.load(tmp_path / "out").samples
    assert torch.equal(samples, Restoration.load(tmp_path / "whole").samples[:2])


@pytest.mark.slow
def test_ctrl_c_from_a_terminal(tmp_path):
    """A real signal in a real process, while it is sampling; far too many samples to be finished."""
    np.save(tmp_path / "photo.npy", np.full((64, 64), 1.1))
    command = (sys.executable, "-m", "snips", "restore", "photo.npy", "-s", "0.1", "-k", "5000", "--prior", "gaussian")
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "1 is white" in process.stderr.readline()  # the last words before sampling
    time.sleep(10)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert ("are kept" in said) == (tmp_path / "restored" / "report.html").exists()


def test_more_samples_than_memory_holds_are_refused_before(photo, tmp_path, monkeypatch):
    monkeypatch.setattr("snips.running.costs.available_memory", lambda: 2**30)
    line = refused(run("restore", photo, "-s", "0.1", "-k", "100000000", "--out", tmp_path / "out", "--nfe", "4"))
    assert "100,000,000 samples need 1072.9 GiB of memory, but 1.0 GiB are free: take at most 93,206" in line


def test_a_folder_that_cannot_be_made_is_noticed_before(photo, monkeypatch):
    monkeypatch.setattr("snips.cli.restoring.posed_problem", lambda *_, **__: pytest.fail("too late"))
    assert "/proc/foo cannot be created" in refused(run("restore", photo, "--out", "/proc/foo", *QUICK))


def test_a_full_disk_does_not_lose_the_samples(photo, tmp_path, monkeypatch):
    real = storage.write_pictures

    def write(restoration, folder):
        if folder.parent == tmp_path / "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(restoration, folder)

    monkeypatch.setattr(storage, "write_pictures", write)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    arguments = ("-s", "0.1", "--prior", "gaussian", "--out", tmp_path / "full" / "out")
    line = refused(run("restore", photo, *arguments, *QUICK))
    assert f"{tmp_path / 'full' / 'out'} cannot be written (No space left on device)" in line
    rescued = re.search("the result is in (.*) instead", line)[1]
    assert len(Restoration.load(rescued).samples) == 2
    assert list((tmp_path / "full").iterdir()) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 second"),
        (1.4, "1 second"),
        (40, "40 seconds"),
        (95, "2 minutes"),
        (5399, "90 minutes"),
        (9000, "2.5 hours"),
    ],
)
def test_durations_are_words(seconds, words):
    assert costs.duration(seconds) == words
