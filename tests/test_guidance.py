"""The guide of the fast sampler, against the Gaussian law that it stands for, by matrices."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sampler_cases import SHAPE, N, operators
from snips import InverseProblem, make_operator
from snips.operators import Zero
from snips.samplers import guidance
from snips.samplers.conditional import Coordinates
from snips.samplers.guidance import Guide, Photographs
from snips.samplers.matrix_free import Law
from snips.samplers.matrix_free import chosen_sigmas as matrix_free_sigmas
from snips.samplers.predictor_corrector import planned_sigmas
from snips.schedules import FIRST
from snips.streams import Chain, Streams

SIGMA, SIGMA_0 = 0.3, 0.1  # measured coordinates of s = 1 are hidden


def covariance_of(model: Photographs) -> Tensor:
    """C as a matrix, row by row."""
    basis = torch.eye(N, dtype=torch.float64).reshape(N, *SHAPE)
    return model.image(model.variances * model.cosines(basis)).flatten(1)


def coordinates_matrix(operator) -> Tensor:
    """V^T as a matrix; the operators here have a real basis."""
    basis = torch.eye(N, dtype=torch.float64).reshape(N, *SHAPE)
    return operator.Vt(basis).flatten(1).T


class Hidden:
    """A noisy image whose measured coordinates are hidden, with a Gaussian prior that is the guide's own model.

    What is known of x_bar then: y_bar / s with noise sigma_0 / s where it is measured, and the noisy image with noise
    sigma elsewhere. A denoiser that takes sigma for the noise everywhere knows less.
    """

    def __init__(self, name: str, chains: int = 1) -> None:
        operator = dict(operators())[name].double()
        model = Photographs(operator)
        C, Vt = covariance_of(model), coordinates_matrix(operator)
        truth = 0.5 + torch.linalg.cholesky(C) @ noise(N)
        self.problem = InverseProblem.simulate(operator, truth.reshape(1, *SHAPE), SIGMA_0, seed=1)
        self.chains = [Chain(0, k) for k in range(chains)]
        coordinates = Coordinates(self.problem, self.chains)
        level = coordinates.at(SIGMA)
        self.guide = Guide(coordinates, model, level)
        measured = level.hidden.expand(1, *SHAPE).flatten()
        around = torch.where(measured, level.pull[0].flatten(), Vt @ truth)
        noisy_bar = around + level.variance.expand(1, *SHAPE).flatten().sqrt() * noise(N, seed=2)
        self.x = operator.V(noisy_bar.reshape(1, *SHAPE)).expand(chains, *SHAPE)
        self.denoised = conditional(C, Vt, noisy_bar, torch.full((N,), SIGMA**2))[0].reshape(1, *SHAPE)
        look = torch.where(measured, level.pull[0].flatten(), noisy_bar)
        s = operator.singular_values.expand(SHAPE).flatten()
        variance = torch.where(measured, (SIGMA_0 / s.clamp(min=1e-9)) ** 2, SIGMA**2)
        self.mean, self.covariance = conditional(C, Vt, look, variance)  # the law of x_bar


def conditional(C: Tensor, Vt: Tensor, seen: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Of N(1/2, C), given V^T x with noise: the mean of x, and the covariance of V^T x."""
    gain = C @ Vt.T @ torch.linalg.inv(Vt @ C @ Vt.T + torch.diag(variance.double()))
    mean = 0.5 + gain @ (seen - Vt @ torch.full((N,), 0.5, dtype=torch.float64))
    return mean, Vt @ (C - gain @ Vt @ C) @ Vt.T


def noise(*shape: int, seed: int = 9) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture(autouse=True)
def many_steps(monkeypatch):
    """Of conjugate gradients, so that nothing but the formulas is tested; the model is that of the prior as it is."""
    monkeypatch.setattr(guidance, "STEPS", 60)
    monkeypatch.setattr(Photographs, "fitted", lambda self, x, denoised, sigma: self.variances.expand_as(x))


@pytest.mark.parametrize("name", ["inpaint", "cs4", "denoise"])
def test_the_mean_is_that_given_the_noisy_image_and_y(name):
    case = Hidden(name)
    found = case.guide.operator.V(case.guide.mean(case.x, case.denoised))
    torch.testing.assert_close(found.flatten(), case.mean, atol=1e-8, rtol=0)
    assert (case.denoised.flatten() - case.mean).abs().max() > 0.01  # y does tell more than the noisy image


@pytest.mark.parametrize("name", ["inpaint", "cs4"])
def test_draws_have_that_law(name):
    """Mean and variance of each coordinate, 4,000 draws: 32 numbers, 4.5 standard errors, 1 in 4,000 fails."""
    K = 4000
    case = Hidden(name, chains=K)
    drawn = case.guide.draw(case.x, case.denoised.expand(K, *SHAPE), Streams(0, case.chains)).flatten(1)
    variance = case.covariance.diagonal()
    mean = coordinates_matrix(case.guide.operator) @ case.mean
    assert ((drawn.mean(0) - mean).abs() < 4.5 * (variance / K).sqrt()).all()
    assert ((drawn.var(0) / variance - 1).abs() < 4.5 * math.sqrt(2 / K)).all()


@pytest.mark.parametrize("sigma_0", [0.1, 1.0])
@pytest.mark.parametrize("name", ["zero", "denoise", "inpaint", "sr2", "deblur_uniform", "cs4"])
def test_plans_start_above_what_y_leaves_open(name, sigma_0):
    """The largest eigenvalue of (C^-1 + H^T H / sigma_0^2)^-1, by matrices; with an SVD and without."""
    operator = dict(operators())[name].double()
    H = operator.as_matrix()
    precision = torch.linalg.inv(covariance_of(Photographs(operator))) + H.T @ H / sigma_0**2
    exact = 1 / math.sqrt(torch.linalg.eigvalsh(precision)[0])
    problem = InverseProblem(operator, torch.zeros(1, *operator.measurement_shape, dtype=torch.float64), sigma_0)
    assert planned_sigmas(problem)[0] == pytest.approx(FIRST * exact, rel=0.02)
    assert matrix_free_sigmas(Law(problem, []), 100)[0] == pytest.approx(FIRST * exact, rel=0.02)


@pytest.mark.parametrize("name", ["inpaint", "colorize", "cs4", "mri"])
def test_plans_of_larger_images_do_not_depend_on_the_number_of_steps(name, monkeypatch):
    operator = make_operator(name, (3, 32, 32))
    problem = InverseProblem(operator, torch.zeros(1, *operator.measurement_shape), 0.1)
    start = planned_sigmas(problem)[0]
    for steps in (guidance.RATIO_STEPS + 1, 4 * guidance.RATIO_STEPS):
        monkeypatch.setattr(guidance, "RATIO_STEPS", steps)
        assert planned_sigmas(problem)[0] == pytest.approx(start, rel=0.2)


def test_nothing_measured_leaves_the_brightness_open():
    model = Photographs(Zero((1, 16, 16)))
    assert model.open_spread(torch.zeros_like, 0.0) == pytest.approx(math.sqrt(guidance.BRIGHTNESS) * 16, rel=1e-3)
