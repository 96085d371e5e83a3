"""What deepinv's samplers are given in benchmarks/peers.py, and what it keeps: H, the noise, the denoiser, calls."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import Tensor

from deepinv_cases import deepinv
from scripts import ROOT, load_script
from snips import InverseProblem, make_operator
from snips.priors import GaussianMixture, Prior

methods = load_script(ROOT / "benchmarks" / "peer_methods.py")
peers = load_script(ROOT / "benchmarks" / "peers.py")

SHAPE, PIXELS = (1, 8, 8), 64
PEERS = list(methods.METHODS)
# Ends of their ranges: noise as large as can be, and a first level above the noise of all directions that count.
LIMITS = {"eta": 1.0, "zeta": 1.0, "etab": 1.0, "sigma_first": 1.0}
DEFAULTS = {"eta": 0.85, "etab": 1.0, "sigma_first": 1.0, "power": 1.0, "zeta": 0.1, "lambda_": 7.0, "weight": 1.0}


def mixture(spread: float) -> GaussianMixture:
    """Two components around 0.3 and 0.6, smooth, of standard deviation `spread`."""
    x = torch.linspace(0, 1, PIXELS, dtype=torch.float64)
    covariance = spread**2 * (torch.exp(-((x[:, None] - x) ** 2) * 20) + 0.01 * torch.eye(PIXELS))
    means = torch.stack([torch.full((PIXELS,), level, dtype=torch.float64) for level in (0.3, 0.6)])
    return GaussianMixture(torch.tensor([0.4, 0.6]), means, covariance.repeat(2, 1, 1), SHAPE)


PRIOR = mixture(0.2)


def measured(name: str, sigma_0: float = 0.1, images: int = 2) -> InverseProblem:
    return InverseProblem.simulate(make_operator(name, SHAPE), PRIOR.sample(images, seed=3), sigma_0, seed=0)


@pytest.mark.parametrize("name", peers.FIVE)
def test_peers_have_the_operator_and_the_noise(name):
    problem = measured(name, sigma_0=0.23)
    H, physics, x = problem.operator, methods.physics(problem), torch.rand(3, *SHAPE)
    torch.testing.assert_close(physics.A(x), H(x))
    y = torch.rand(3, *H.measurement_shape)
    expected = (y.flatten(1) @ H.as_matrix()).reshape(3, *SHAPE)
    torch.testing.assert_close(physics.A_adjoint(y), expected)
    assert float(physics.noise_model.sigma) == pytest.approx(0.23)


@pytest.mark.parametrize("levels", [[0.3], [0.3, 0.3, 0.3], [0.1, 0.5, 2.0]])
@pytest.mark.parametrize("shape", [(-1,), (-1, 1, 1, 1)])
def test_the_denoiser_is_the_priors_at_the_level_that_is_told(levels, shape):
    x, sigma = torch.rand(3, *SHAPE), torch.tensor(levels)
    found = methods.ExactDenoiser(PRIOR)(x, sigma.reshape(shape))
    each = [PRIOR.denoise(x[i : i + 1], level) for i, level in enumerate((levels * 3)[:3])]
    torch.testing.assert_close(found, torch.cat(each))
    assert (found - PRIOR.denoise(x, 2 * sigma.expand(3))).abs().max() > 0.01


def test_the_denoiser_takes_a_level_that_is_a_number():
    x = torch.rand(3, *SHAPE)
    assert torch.equal(methods.ExactDenoiser(PRIOR)(x, 0.3), PRIOR.denoise(x, 0.3))


@pytest.mark.parametrize("method", [*PEERS, "fast"])
def test_a_method_makes_as_many_calls_as_it_says(method):
    problem = measured("sr4")
    settings = [{}] if method == "fast" else methods.METHODS[method][1]
    assert settings[0] == {}
    for setting in settings[::5]:
        drawn, calls = methods.draw(method, setting, 5, PRIOR, problem, 3)
        assert calls == 5, setting
        assert drawn.shape == (3, 2, *SHAPE)


def test_calls_of_ours_are_counted_rather_than_believed(monkeypatch):
    def one_more(problem, prior, *, nfe, samples, seed):
        prior.denoise(PRIOR.sample(1), 0.1)
        return fast(problem, prior, nfe=nfe, samples=samples, seed=seed)

    fast = methods.fast
    monkeypatch.setattr(methods, "fast", one_more)
    assert methods.draw("fast", {}, 5, PRIOR, measured("sr4"), 2)[1] == 6


@pytest.mark.parametrize("method", PEERS)
def test_peers_look_at_the_noise_of_y(method):
    """A wrong sigma_0 changes the samples; only the default guidance of DPS does not know of it."""
    problem = measured("cs4")
    wrong = InverseProblem(problem.operator, problem.y, 0.2)
    setting = {"guidance": "annealed"} if method == "DPS" else {}
    right, other = (methods.draw(method, setting, 8, PRIOR, each, 4)[0] for each in (problem, wrong))
    assert (right - other).abs().mean() > 0.01


class OneImage(Prior):
    """Knows the only image there is, so that all else in what it is asked is noise; remembers noise / level."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.ratios = torch.full(SHAPE, 0.4), []

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        level = float(torch.as_tensor(sigma).flatten()[0])
        self.ratios.append(float((x.detach() - self.image).square().mean().sqrt()) / level if level else math.nan)
        return self.image + 0 * x


def noise_ratios(method: str) -> list[float]:
    """What a method's images have of noise over what it tells the denoiser; without the ends of its run."""
    prior = OneImage()
    problem = InverseProblem.simulate(make_operator("sr4", SHAPE), prior.image[None], 0.1, seed=0)
    methods.draw(method, {}, 12, prior, problem, 100)
    return prior.ratios[2:-2]


NOISE = {**dict.fromkeys(PEERS, 1.0), "DDRM": math.sqrt(0.5)}


@pytest.mark.parametrize("method", PEERS)
def test_levels_that_are_told_are_those_of_the_images(method):
    """6,400 pixels at each level: 10 % are 11 standard errors; DDRM's one direction in 16 with noise of y adds less."""
    assert noise_ratios(method) == pytest.approx([NOISE[method]] * 8, rel=0.1)


needs_the_line = pytest.mark.skipif(deepinv.__version__ != "0.5.0", reason="the line that is mended is that of 0.5.0")


@needs_the_line
def test_the_mended_ddrm_is_ddrm_with_noise_times_the_root_of_two(monkeypatch):
    problem = measured("sr4")
    plain, mended = (methods.draw(name, {"eta": 0.6}, 8, PRIOR, problem, 3)[0] for name in PEERS[:2])
    assert (plain - mended).abs().mean() > 0.01
    standard = torch.randn_like
    monkeypatch.setattr(torch, "randn_like", lambda x: math.sqrt(2) * standard(x))
    torch.testing.assert_close(methods.draw("DDRM", {"eta": 0.6}, 8, PRIOR, problem, 3)[0], mended)


def test_mending_leaves_deepinv_as_it_was():
    before = methods.diffusion.np
    methods.draw("DDRM, noise mended", {}, 3, PRIOR, measured("sr4"), 1)
    assert methods.diffusion.np is before
    assert methods.RootOfTwoIsOne().sqrt(0.75) == math.sqrt(0.75)


def test_powers_draw_levels_together_near_the_image():
    denoiser = methods.ExactDenoiser(PRIOR)
    assert methods.solver(4).timesteps.tolist() == [1, 0.75, 0.5, 0.25, 0]  # deepinv's own, see its DPS
    assert methods.solver(4, 2.0).timesteps.tolist() == [1, 0.5625, 0.25, 0.0625, 0]
    assert methods.METHODS["DPS"][0](denoiser, 4, power=2.0).solver.timesteps[1] == 0.5625
    assert methods.METHODS["PiGDM"][0](denoiser, 4, power=2.0).solver.timesteps[1] == 0.5625
    ddrm = methods.METHODS["DDRM"][0](denoiser, 5, sigma_first=2.0, power=2.0)
    assert ddrm.sigmas.tolist() == [2, 1.125, 0.5, 0.125, 0]


def test_a_grid_leaves_defaults_out():
    found = methods.grid(weight=(1.0, 2.0), power=(1.0, 3.0))
    assert found == [{}, {"power": 3.0}, {"weight": 2.0}, {"weight": 2.0, "power": 3.0}]


def swept_row(setting: dict, mixture: int) -> dict:
    row = {"kind": "sweep", "method": "DPS", "setting": setting, "nfe": 50, "problem": "sr4", "ratio": 2.0}
    return {**row, "mixture": mixture}


def test_rows_of_another_mixture_are_measured_again(monkeypatch, tmp_path):
    now, kept = peers.SWEEP_MIXTURE, []
    stored = [swept_row({}, now + 1), swept_row({"weight": 3.0}, now), swept_row({"weight": 77.0}, now)]
    (tmp_path / "peers.json").write_text(json.dumps({"results": stored}))
    monkeypatch.setattr(peers, "RESULTS", tmp_path)
    monkeypatch.setattr(peers, "store", lambda name, rows: kept.append(rows))
    results = peers.Results()
    for setting in ({}, {"weight": 3.0}):
        row = next(peers.rows_for("sweep", now, "DPS", setting, 50))
        results.measure(row, lambda: {"ratio": 4.0})
    assert [row["ratio"] for row in kept[-1]] == [2.0, 2.0, 2.0, 4.0]
    results.forget_others()
    assert [(row["setting"], row["ratio"]) for row in kept[-1]] == [({}, 4.0), ({"weight": 3.0}, 2.0)]


def test_settings_are_chosen_with_other_mixtures_than_the_final_ones():
    exactness = load_script(ROOT / "benchmarks" / "exactness.py")
    assert peers.MIXTURES == exactness.UNSEEN
    assert peers.SWEEP_MIXTURE not in (*exactness.SEEDS, *exactness.UNSEEN)


def stored_rows() -> list[dict]:
    return json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())["results"]


def test_all_stored_rows_have_as_many_calls_as_they_say():
    assert [row for row in stored_rows() if row["kind"] != "time" and row["calls"] != row["nfe"]] == []


def means_of_sweep(nfe: int) -> dict[str, dict[str, float]]:
    """For each method its settings, as JSON, and their stored mean distances."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in stored_rows():
        if (row["kind"], row["nfe"]) == ("sweep", nfe):
            found.setdefault(row["method"], {}).setdefault(json.dumps(row["setting"]), []).append(row["ratio"])
    return {name: {key: sum(far) / len(far) for key, far in each.items()} for name, each in found.items()}


@pytest.mark.parametrize("nfe", peers.CALLS)
@pytest.mark.parametrize("method", PEERS)
def test_the_best_setting_is_inside_what_was_swept(method, nfe):
    """Else the sweep was too small; but a knob may stop where its range does."""
    means = means_of_sweep(nfe)[method]
    assert [json.loads(key) for key in means] == methods.METHODS[method][1]
    best = json.loads(min(means, key=means.__getitem__))
    for knob, value in best.items():
        if not isinstance(value, str) and value != LIMITS.get(knob):
            tried = [json.loads(key).get(knob, DEFAULTS[knob]) for key in means]
            assert min(tried) < value < max(tried), knob
    tables = [row["setting"] for row in stored_rows() if (row["kind"], row["nfe"]) == ("distance", nfe)]
    assert best in tables
