"""Training in several processes, as torchrun starts them."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from snips.training import train
from snips.training.checkpoint import read_checkpoint
from snips.training.data import Crops
from snips.training.image_files import load_images
from snips.training.loop import draw_batch, learning_rate, start
from snips.training.loss import denoising_loss
from training_cases import small_settings


@pytest.fixture
def settings(tmp_path):
    return small_settings(tmp_path)


def torchrun_command(settings):
    """Two processes of the command itself."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "snips"]
    return [*run, "train", "--data", settings.folders[0], "--crop", "16", "--batch", "2", "--threads", "1"]


def test_torchrun_speaks_with_one_voice(settings, tmp_path):
    """Two processes of the command itself: one result is printed; a mistake is told once by the first, in one line."""

    def torchrun(*more):
        command = [*torchrun_command(settings), "--steps", "2", *map(str, more)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)

    done = torchrun("--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["step"] == 2
    (tmp_path / "photos" / "5.png").write_bytes(b"no image")
    failed = torchrun("--out", tmp_path / "other")
    assert failed.returncode != 0
    told = [line for line in failed.stderr.splitlines() if line.startswith("snips: ")]
    assert any("cannot read the image" in line and "5.png" in line for line in told)
    assert "Traceback" not in failed.stderr.split("torch/distributed")[0]


def test_torchrun_keeps_what_was_computed_when_it_is_ended(settings, tmp_path):
    """Torchrun passes the signal on to both processes, which stop after the same step; the first writes."""
    ended = subprocess.Popen([*torchrun_command(settings), "--out", str(tmp_path / "run")], stderr=subprocess.DEVNULL)
    log = tmp_path / "run" / "log.jsonl"
    give_up = time.monotonic() + 120
    while not (log.is_file() and log.read_text().endswith("\n")) and time.monotonic() < give_up:
        time.sleep(0.1)
    time.sleep(1)
    ended.terminate()
    assert ended.wait(60) != 0
    assert read_checkpoint(tmp_path / "run" / "checkpoint.pt")["step"] > 0


def test_two_processes_take_the_mean_gradient(settings, tmp_path):
    settings = replace(settings, steps=2)
    context = torch.multiprocessing.get_context("spawn")
    ranks = [context.Process(target=_train_as, args=(settings, rank, str(tmp_path / "meet"))) for rank in (0, 1)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(120)
    assert [process.exitcode for process in ranks] == [0, 0]
    reached = read_checkpoint(tmp_path / "run" / "checkpoint.pt")["model"]
    for name, value in _trained_on_pairs(settings).state_dict().items():
        torch.testing.assert_close(reached[name], value, rtol=1e-4, atol=1e-5)


def _train_as(settings, rank, meeting):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    train(settings)
    torch.distributed.destroy_process_group()


def _trained_on_pairs(settings):
    """What two processes should reach: steps on the mean of two batches' gradients."""
    images, _ = load_images(settings.folders, settings.prepare, settings.cache)
    crops = Crops(images, settings.crop)
    state = start(replace(settings, out="/nonexistent"), crops)
    for step in range(settings.steps):
        state.optimiser.zero_grad()
        for part in (0, 1):
            clean, sigma, noise = draw_batch(state.model, settings, crops, 2 * step + part)
            (denoising_loss(state.model, clean, noise, sigma) / 2).backward()
        for group in state.optimiser.param_groups:
            group["lr"] = learning_rate(settings, step)
        state.optimiser.step()
    return state.model
