"""A sampler is one row of SAMPLER_TABLE: restore, verify, the trial of the cost and the commands know it by that."""

from __future__ import annotations

import inspect
import json

import pytest
import torch
from torch import Tensor

from command_line import refused, run
from photo_files import saved_photo
from snips import InverseProblem, StationaryGaussian, make_operator, restoration, restore, samplers, verify
from snips.cli import restoring
from snips.results.checkpoints import run_facts
from snips.running import costs
from snips.samplers.base import State, StepInfo, denoise_in_turn
from snips.samplers.base import run as drive
from snips.samplers.table import SAMPLER_TABLE, Doubled, SamplerEntry
from snips.streams import Streams

SHAPE = (1, 12, 12)
PRIOR = StationaryGaussian.natural(SHAPE)
LEVEL = 0.1
CALLS_PER_SWEEP = 2


def swept(problem, prior, *, sweeps=3, samples=8, seed=0, chunk=None, on_step=None, resume=None) -> Tensor:
    """A made-up sampler, whose images know nothing of y."""

    def steps(chains, resume):
        streams = Streams(seed, chains)
        x = problem.y.new_zeros(len(chains), *problem.operator.image_shape)
        state = State.from_tensors(resume, streams, x) if resume else State(0, streams.normal(x), streams)
        while state.step < CALLS_PER_SWEEP * sweeps:
            denoised = denoise_in_turn(prior, state.x, LEVEL, state.step + 1)
            state.x, state.step = denoised + LEVEL * streams.normal(denoised), state.step + 1
            yield StepInfo(state.step, CALLS_PER_SWEEP * sweeps, LEVEL, denoised, state)

    return drive(steps, problem, samples, chunk, on_step, resume)


def checked_sweeps(sweeps: int) -> dict[str, int]:
    return {"sweeps": sweeps}


ROW = SamplerEntry(
    swept,
    options={"sweeps": 3},
    settings=checked_sweeps,
    calls=lambda settings: CALLS_PER_SWEEP * settings["sweeps"],
    doubt=lambda settings: f"{settings['sweeps']} sweeps know nothing of y",
    planned_sigmas=lambda problem, *, sweeps=3, **_: [LEVEL] * CALLS_PER_SWEEP * sweeps,
    doubled=Doubled("sweeps", 3),
    shortest={"sweeps": 1},
)


@pytest.fixture
def calls(monkeypatch) -> list[int]:
    """The table with one more row, and the chains in each call of the denoiser."""
    monkeypatch.setitem(SAMPLER_TABLE, "swept", ROW)
    denoise, counted = StationaryGaussian.denoise, []

    def counting(prior, x, sigma):
        counted.append(len(x))
        return denoise(prior, x, sigma)

    monkeypatch.setattr(StationaryGaussian, "denoise", counting)
    return counted


@pytest.fixture
def problem() -> InverseProblem:
    return InverseProblem.simulate(make_operator("sr2", SHAPE), PRIOR.sample(1, seed=1), 0.1, seed=2)


@pytest.fixture
def photo(tmp_path):
    return saved_photo(tmp_path / "photo.png", 12, 12)


def restore_command(photo, *more):
    fixed = ("-p", "denoise", "-s", "0.1", "--prior", "gaussian", "-k", "6", "--out", photo.parent / "out")
    return run("restore", photo, *fixed, *more)


def test_restore_and_verify_know_it(problem, calls):
    result = restore(problem, PRIOR, sampler="swept", sweeps=2, samples=6)
    assert len(calls) == 2 * CALLS_PER_SWEEP
    assert result.settings["sampler_options"] == {"sweeps": 2}
    found = verify(result, PRIOR).settings["verification"]
    assert (found["option"], found["value"]) == ("sweeps", 4)
    assert len(calls) == (2 + 4) * CALLS_PER_SWEEP
    by_default = restore(problem, PRIOR, sampler="swept", samples=6)
    assert verify(by_default, PRIOR).settings["verification"]["value"] == 6


def test_the_trial_of_the_cost_knows_it(problem, calls):
    cost = costs.estimate_cost(problem, PRIOR, "swept", calls=100, chains=1, chunk=1)
    assert calls == [1] * CALLS_PER_SWEEP
    assert cost.seconds > 0


def test_the_command_knows_it(photo, calls, monkeypatch):
    """With a trial of the cost, states on the disk and a second run, as far as `snips restore` goes."""
    monkeypatch.setattr(restoring, "ESTIMATE_FROM", 1)
    told = restore_command(photo, "--sampler", "swept", "--resume", "--verify", "--chunk", "6")
    assert told.exit_code == 0, told.output
    assert "warning: 3 sweeps know nothing of y" in told.stderr
    assert "6 samples of 12 x 12 pixels will take about" in told.stderr
    settings = json.loads((photo.parent / "out" / "result.json").read_text())["settings"]
    assert (settings["sampler"], settings["sampler_options"]) == ("swept", {"sweeps": 3, "chunk": 6})
    assert settings["verification"]["value"] == 6
    assert len(calls) == (1 + 3 + 6) * CALLS_PER_SWEEP


def test_states_on_the_disk_know_its_plan(problem, calls):
    described = {"sampler": "swept", "sampler_options": {"sweeps": 1, "chunk": 2}, "seed": 0}
    assert run_facts(problem, PRIOR, 6, described)["plan"] == ["0.1"] * CALLS_PER_SWEEP


def test_options_of_others_are_refused_in_its_name(photo, calls):
    told = refused(restore_command(photo, "--sampler", "swept", "--nfe", "5"))
    assert "--nfe is for `fast` and `matrix_free`, and has no effect on swept" in told


def test_its_name_is_suggested(problem, calls):
    with pytest.raises(ValueError, match="did you mean swept"):
        restore(problem, PRIOR, sampler="swep")


def test_a_row_of_a_function_alone_takes_nfe(photo, monkeypatch):
    monkeypatch.setitem(SAMPLER_TABLE, "quick", SamplerEntry(samplers.fast))
    told = restore_command(photo, "--sampler", "quick", "--nfe", "5", "--verify", "--json")
    assert told.exit_code == 0, told.output
    settings = json.loads(told.stdout)["settings"]
    assert (settings["sampler"], settings["sampler_options"]["nfe"]) == ("quick", 5)
    assert settings["verification"]["value"] == 10


def test_functions_by_name(problem, calls, monkeypatch):
    """`restoration.SAMPLERS` is the table's functions; what is put there is used."""
    assert restoration.SAMPLERS["swept"] is swept
    assert dict(restoration.SAMPLERS) == {name: entry.function for name, entry in SAMPLER_TABLE.items()}
    with monkeypatch.context() as patched:
        patched.setitem(restoration.SAMPLERS, "fast", swept)
        patched.setitem(restoration.SAMPLERS, "other", swept)
        for sampler in ("fast", "other"):
            restore(problem, PRIOR, sampler=sampler, sweeps=1, samples=1)
        assert SAMPLER_TABLE["fast"].without_svd == "matrix_free"
    assert len(calls) == 2 * CALLS_PER_SWEEP
    assert restoration.SAMPLERS["fast"] is samplers.fast
    assert "other" not in SAMPLER_TABLE


@pytest.mark.parametrize("name", SAMPLER_TABLE)
def test_rows_agree_with_their_functions(name, problem):
    entry = SAMPLER_TABLE[name]
    taken = inspect.signature(entry.function).parameters
    assert taken[entry.doubled.option].default == entry.doubled.default
    usual = entry.settings(**entry.options)
    for settings in (usual, entry.shortest):
        assert settings.keys() <= taken.keys()
    steps = []
    entry.function(problem, PRIOR, samples=1, on_step=steps.append, **entry.shortest)
    assert len(steps) == entry.calls(entry.shortest) < entry.calls(usual)
    assert torch.isfinite(steps[-1].state.x).all()
