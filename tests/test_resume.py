"""`snips restore --resume`: killed, the same command goes on."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import snips
from batch_cases import pictures
from snips.cli import app, restoring
from snips.cli.restore_run import recorded
from snips.priors import StationaryGaussian
from snips.results.checkpoints import Checkpoint
from snips.running import costs
from snips.samplers.table import SAMPLER_TABLE

CALLS = 12


def restore(folder, out, *more, chunk=("--chunk", "2")):
    arguments = [
        "restore",
        folder / "in" / "picture_0.png",
        "--out",
        folder / out,
        "-s",
        "0.1",
        "-k",
        "3",
        "--nfe",
        CALLS,
    ]
    typed = [str(part) for part in (*arguments, *chunk, "--prior", "gaussian", "--json", *more)]
    return CliRunner().invoke(app, typed)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pictures(tmp_path / "in", 2)
    monkeypatch.setattr(restoring, "Checkpoint", lambda path: Checkpoint(path, seconds=0))
    return tmp_path


def test_resume_gives_the_same_bits(folder, monkeypatch):
    assert restore(folder, "calm").exit_code == 0
    denoise, calls = StationaryGaussian.denoise, []

    def counted(prior, x, sigma):
        calls.append(sigma)
        if len(calls) in (5, 17):
            raise MemoryError("killed")
        return denoise(prior, x, sigma)

    monkeypatch.setattr(StationaryGaussian, "denoise", counted)
    assert [restore(folder, "out", "--resume").exit_code for _ in range(3)] == [2, 2, 0]
    assert len(calls) == 2 * CALLS + 2  # two chunks, and the two calls that were stopped
    calm, out = (load_file(folder / name / "samples.safetensors") for name in ("calm", "out"))
    assert calm.keys() == out.keys()
    assert all(calm[name].equal(out[name]) for name in calm)
    assert not (folder / ".out.partial").exists()
    again = restore(folder, "out", "--resume")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["settings"]["fingerprint"]
    assert len(calls) == 2 * CALLS + 2


def test_a_state_is_not_continued_with_something_else(folder, monkeypatch):
    monkeypatch.setattr(Checkpoint, "remove", lambda self: None)
    assert restore(folder, "out", "--resume").exit_code == 0
    assert (folder / ".out.partial").exists()
    (folder / "out").rename(folder / "elsewhere")
    other = restore(folder, "out", "--resume", "--seed", "1")
    assert other.exit_code == 2
    assert "belongs to another" in other.stderr
    assert "(seed differ)" in other.stderr


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("snips.schedules.DENSITY", 3.0, "plan"),
        ("snips.schedules.FIRST", 9.0, "plan"),
        ("snips.results.storage.__version__", "0.0.1", "versions"),
    ],
)
def test_a_state_is_not_continued_by_another_version(folder, monkeypatch, name, value, told):
    """One with another number, or another plan of noise levels under the same one."""
    stop_after(monkeypatch, 5)
    assert restore(folder, "out", "--resume").exit_code == 2
    monkeypatch.setattr(name, value)
    other = restore(folder, "out", "--resume")
    assert other.exit_code == 2
    assert f"({told} differ)" in other.stderr


@pytest.mark.parametrize("name", [name for name, entry in SAMPLER_TABLE.items() if entry.planned_sigmas])
def test_the_plan_is_what_the_sampler_takes(name):
    operator = snips.make_operator("deblur_uniform", (1, 8, 8))
    problem = snips.InverseProblem.simulate(operator, torch.full((2, 1, 8, 8), 0.5), 0.1, seed=0)
    taken, prior = [], StationaryGaussian.natural((1, 8, 8))
    entry = SAMPLER_TABLE[name]
    settings = {**entry.settings(**entry.options), "chunk": 2}
    entry.function(problem, prior, samples=1, on_step=lambda info: taken.append(info.sigma), **settings)
    assert entry.planned_sigmas(problem, **settings) == taken


def test_a_finished_folder_of_other_settings_is_kept(folder):
    assert restore(folder, "out", "--resume").exit_code == 0
    before = (folder / "out" / "samples.safetensors").read_bytes()
    other = restore(folder, "out", "--resume", "--seed", "1")
    assert other.exit_code == 2
    assert "exists already" in other.stderr
    assert (folder / "out" / "samples.safetensors").read_bytes() == before


def stop_after(monkeypatch, calls):
    """The denoiser fails once, after so many calls."""
    denoise, left = StationaryGaussian.denoise, [calls]

    def counted(prior, x, sigma):
        left[0] -= 1
        if left[0] == 0:
            raise MemoryError("killed")
        return denoise(prior, x, sigma)

    monkeypatch.setattr(StationaryGaussian, "denoise", counted)


def test_what_the_machine_chose_is_taken_again(folder, monkeypatch):
    """Other threads and another free memory are no other command: before the end, and after it."""
    threads = torch.get_num_threads()
    stop_after(monkeypatch, 5)
    try:
        for number, pixels, code in ((1, 64, 2), (2, 10**6, 0), (2, 10**6, 0)):
            torch.set_num_threads(number)
            monkeypatch.setattr(costs, "fitting_pixels", lambda pixels=pixels: pixels)
            result = restore(folder, "out", "--resume", chunk=())
            assert result.exit_code == code, result.stderr
    finally:
        torch.set_num_threads(threads)
    settings = json.loads(result.stdout)["settings"]
    assert (settings["threads"], settings["sampler_options"]["chunk"]) == (1, 1)


def test_tiles_are_taken_again(folder):
    state = Checkpoint(folder / "state.safetensors", seconds=0)
    state.save("of a run", lambda: {"x": torch.zeros(1)}, {"threads": 1, "tile": 128, "sampler_options": {"chunk": 3}})
    assert recorded(folder / "out", state, finished=False) == {"threads": 1, "tile": 128, "chunk": 3}


def test_leftovers_of_killed_saving_are_swept(folder, monkeypatch):
    """A copy of the results beside the folder, and a state whose result is there; what is not ours stays."""
    monkeypatch.setattr(restoring, "discard", lambda checkpoint: None)
    assert restore(folder, "out", "--resume").exit_code == 0
    monkeypatch.undo()
    shutil.copytree(folder / "out", folder / ".out-abcd1234")
    (folder / ".out-somebody").mkdir()
    (folder / ".out-somebody" / "thesis.txt").write_text("mine")
    (folder / ".out-else-abcd1234").mkdir()
    assert (folder / ".out.partial").is_dir()
    assert restore(folder, "out", "--resume").exit_code == 0
    left = sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
    assert left == [".out-else-abcd1234", ".out-somebody"]


def test_force_overrides_the_state_of_another_run(folder, monkeypatch):
    stop_after(monkeypatch, 5)
    assert restore(folder, "out", "--resume").exit_code == 2
    assert (folder / ".out.partial").is_dir()
    forced = restore(folder, "out", "--resume", "--force", "--seed", "1")
    assert forced.exit_code == 0, forced.stderr
    assert json.loads(forced.stdout)["settings"]["seed"] == 1


def test_force_goes_on_with_its_own_state(folder, monkeypatch):
    stop_after(monkeypatch, 5)
    assert restore(folder, "out", "--resume", "--force").exit_code == 2
    calls, denoise = [], StationaryGaussian.denoise
    monkeypatch.setattr(StationaryGaussian, "denoise", lambda *given: calls.append(1) or denoise(*given))
    assert restore(folder, "out", "--resume", "--force").exit_code == 0
    assert len(calls) == 2 * CALLS - 4


def test_verify_does_not_take_the_state_of_what_it_verifies(folder):
    result = restore(folder, "out", "--resume", "--verify", "-k", "6")
    assert result.exit_code == 0, result.stderr


def test_a_state_is_removed_and_nothing_beside_it(tmp_path):
    for name in ("thesis.txt", ".state-notes.safetensors", ".state-7.safetensors", "state.safetensors"):
        (tmp_path / name).write_text("x")
    Checkpoint(tmp_path / "state.safetensors").remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".state-notes.safetensors", "thesis.txt"]


def test_seconds_of_all_attempts_are_added(tmp_path):
    state = Checkpoint(tmp_path / "state.safetensors", seconds=0)
    state.began -= 50
    state.save("of a run", lambda: {"x": torch.zeros(1)})
    again = Checkpoint(state.path, seconds=0)
    again.load("of a run")
    assert 50 <= again.spent < 60
