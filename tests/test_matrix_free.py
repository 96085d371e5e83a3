"""Sampling without an SVD: against exact posteriors, against the SVD route, and its contract."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.ndimage import convolve, correlate
from scipy.sparse.linalg import LinearOperator as ScipyOperator

import snips
from snips import InverseProblem, StationaryGaussian, make_operator
from snips.operators import MatrixFree
from snips.operators.linear_map import LinearMap
from snips.samplers import fast, matrix_free, matrix_free_steps
from snips.samplers.matrix_free import Law
from snips.solvers import conjugate_gradients
from snips.streams import Chain

SHAPE = (1, 4, 4)


def without_svd(operator) -> MatrixFree:
    H = LinearMap(operator.image_shape, operator.measurement_shape, operator.forward, operator.adjoint)
    return MatrixFree(H, operator.image_shape).double()


@pytest.fixture(scope="module")
def natural():
    return StationaryGaussian.natural(SHAPE).as_gaussian().double()


@pytest.mark.parametrize("sigma_0", [0.1, 0.5])
@pytest.mark.parametrize("name", ["deblur_uniform", "sr2", "inpaint", "denoise"])
def test_moments_are_the_posteriors(name, sigma_0, natural):
    """500 samples at 60 calls. A perfect sampler fails once in 500 (4 standard errors of each pixel's mean and
    variance, 32 numbers); 8 % of the standard deviation and 10 % of the variance are allowed on top."""
    operator = make_operator(name, SHAPE).double()
    problem = InverseProblem.simulate(operator, natural.sample(1, seed=3), sigma_0, seed=4)
    x = matrix_free(InverseProblem(without_svd(operator), problem.y, sigma_0), natural, nfe=60, samples=500).flatten(1)
    posterior = natural.posterior(problem)
    std = posterior.covariance.diagonal().sqrt()
    assert ((x.mean(0) - posterior.mean.flatten()) / std).abs().max() < 4 / math.sqrt(500) + 0.08
    assert (x.var(0) / std**2 - 1).abs().max() < 4 * math.sqrt(2 / 500) + 0.1


def test_a_prior_unlike_photographs_is_reached_with_more_calls(mixture):
    """White noise of a standard deviation above 1: without the model of photographs. 200 samples of an exact sampler
    have an error of about 0.29 themselves, sqrt(17 / 200)."""
    operator = make_operator("deblur_uniform", SHAPE, width=3).double()
    problem = InverseProblem.simulate(without_svd(operator), mixture.sample(1, seed=3), 0.1, seed=4)
    posterior = mixture.posterior(problem)
    errors = []
    for nfe in (5, 60):
        x = matrix_free(problem, mixture, nfe=nfe, samples=200, guided=False).flatten(1)
        errors.append(float((torch.cov(x.T) - posterior.covariance).norm() / posterior.covariance.norm()))
    assert errors[1] < 0.6 * errors[0]
    assert errors[1] < 0.35


def test_agrees_with_the_svd_route(natural):
    """The two routes' means and variances, 300 samples each: 4.5 standard errors of a difference and 10 % on top."""
    operator = make_operator("deblur_uniform", SHAPE).double()
    problem = InverseProblem.simulate(operator, natural.sample(1, seed=3), 0.1, seed=4)
    a = fast(problem, natural, nfe=40, samples=300, seed=1).flatten(1)
    b = matrix_free(InverseProblem(without_svd(operator), problem.y, 0.1), natural, nfe=40, samples=300).flatten(1)
    assert ((a.mean(0) - b.mean(0)) / a.std(0)).abs().max() < 4.5 * math.sqrt(2 / 300) + 0.1
    assert (b.var(0) / a.var(0) - 1).abs().max() < 4.5 * math.sqrt(4 / 300) + 0.1


@pytest.mark.parametrize("sigma", [0.01, 0.06])
def test_mean_and_root_are_those_of_the_svd_coordinates(sigma):
    """Where nothing is hidden both samplers have the same law: m and A written with the SVD."""
    operator = make_operator("deblur_uniform", SHAPE).double()
    problem = InverseProblem.simulate(operator, torch.rand(1, *SHAPE, dtype=torch.float64), 0.1)
    law = Law(InverseProblem(without_svd(operator), problem.y, 0.1), [Chain(0, 0)])
    assert law.shown(sigma)
    x, n = torch.randn(2, 1, *SHAPE, dtype=torch.float64)
    q = (operator.singular_values * sigma / 0.1) ** 2
    pull = operator.singular_values * operator.Ut(problem.y) * sigma**2 / 0.1**2
    torch.testing.assert_close(law.mean(x, sigma), operator.V((1 - q) * operator.Vt(x) + pull))
    root = law.root(sigma**2, sigma**4 / 0.1**2, n)
    torch.testing.assert_close(root, operator.V(sigma * (1 - q).sqrt() * operator.Vt(n)), rtol=0, atol=1e-5 * sigma)


def test_draws_have_the_moments_of_the_conditional_law():
    """4,000 draws: perturbing and solving against the covariance by matrices; 4.5 standard errors and 3 % on top."""
    operator = make_operator("sr2", SHAPE).double()
    y = torch.rand(1, *operator.measurement_shape, dtype=torch.float64)
    chains = [Chain(0, k) for k in range(4000)]
    law, sigma = Law(InverseProblem(without_svd(operator), y, 0.1), chains), 0.3
    assert not law.shown(sigma)
    grey = torch.full((4000, *SHAPE), 0.5, dtype=torch.float64)
    x = law.draw(grey, grey, sigma, snips.streams.Streams(0, chains))  # equal images leave the model as it is
    basis = torch.eye(16, dtype=torch.float64).reshape(16, *SHAPE)
    C = law.model.image(law.spread(sigma) ** 2 * law.model.cosines(basis)).flatten(1)
    H = operator.as_matrix()
    gain = C @ H.T @ torch.linalg.inv(H @ C @ H.T + 0.01 * torch.eye(len(H)))
    mean = 0.5 + gain @ (y.flatten() - H @ torch.full((16,), 0.5, dtype=torch.float64))
    covariance = C - gain @ H @ C
    std = covariance.diagonal().sqrt()
    assert ((x.flatten(1).mean(0) - mean) / std).abs().max() < 4.5 / math.sqrt(4000) + 0.03
    assert (x.flatten(1).var(0) / std**2 - 1).abs().max() < 4.5 * math.sqrt(2 / 4000) + 0.03


@pytest.mark.parametrize("sigma_0", [0, 1e-6, 10])
@pytest.mark.parametrize("name", ["deblur_uniform", "cs4", "sr2"])
def test_extreme_noise(name, sigma_0, natural):
    operator = make_operator(name, SHAPE).double()
    problem = InverseProblem.simulate(without_svd(operator), natural.sample(2, seed=3), sigma_0, seed=4)
    samples = matrix_free(problem, natural, nfe=20, samples=2)
    assert samples.isfinite().all()
    assert samples.abs().max() < 3
    if sigma_0 < 0.1:
        assert (problem.operator(samples[0]) - problem.y).abs().max() < 0.02


def test_nothing_measured_and_no_noise(natural):
    """Then y tells nothing, and samples are those of the prior."""
    operator = snips.as_operator(np.zeros((4, 3 * 8 * 8)), (3, 8, 8), svd=False)
    samples = matrix_free(
        InverseProblem(operator, torch.zeros(1, 4), 0.0), StationaryGaussian.natural((3, 8, 8)), nfe=12
    )
    assert samples.isfinite().all()
    assert samples.std(0).mean() > 0.05


def test_restore_chooses_it_and_says_so(natural, tmp_path):
    operator = without_svd(make_operator("deblur_uniform", SHAPE))
    problem = InverseProblem.simulate(operator, natural.sample(1, seed=3), 0.1)
    result = snips.restore(problem, natural, samples=2, nfe=8)
    assert result.settings["sampler"] == "matrix_free"
    assert torch.equal(result.samples, matrix_free(problem, natural, samples=2, nfe=8))
    result.save(tmp_path / "out")
    again = snips.Restoration.load(tmp_path / "out", operator=operator)
    assert torch.equal(again.samples, result.samples)
    with pytest.raises(ValueError, match="has no SVD: sample with sampler='matrix_free'"):
        snips.restore(problem, natural, sampler="langevin")


@pytest.mark.parametrize("name", ["sr2", "deblur_uniform"])
def test_samples_do_not_depend_on_the_batch(name):
    prior = StationaryGaussian.natural((1, 16, 16)).double()
    operator = without_svd(make_operator(name, (1, 16, 16)))
    problem = InverseProblem.simulate(operator, prior.sample(2, seed=3), 0.1)
    together = matrix_free(problem, prior, nfe=12, samples=3)
    alone = matrix_free(problem[1], prior, nfe=12, samples=2)[:, 0]
    torch.testing.assert_close(alone, together[:2, 1], atol=1e-10, rtol=0)
    torch.testing.assert_close(matrix_free(problem, prior, nfe=12, samples=3, chunk=2), together, atol=1e-10, rtol=0)


def test_a_row_of_a_solve_does_not_depend_on_its_neighbours():
    """The first is near enough after one step, the second needs many."""
    eigenvalues = torch.logspace(0, 3, 30, dtype=torch.float64)
    b = torch.zeros(2, 30, dtype=torch.float64)
    b[0, 3], b[0, 4], b[1] = 1.0, 0.1, 1.0
    steps = []

    def solved(rows):
        steps.append(0)

        def apply(x):
            steps[-1] += 1
            return eigenvalues * x

        return conjugate_gradients(apply, rows, steps=60, tolerance=0.1)

    torch.testing.assert_close(solved(b), torch.cat([solved(b[:1]), solved(b[1:])]), atol=1e-14, rtol=0)
    assert steps[1] == 1
    assert steps[0] == steps[2] > 10


def test_goes_on_exactly_where_it_stopped(natural):
    problem = InverseProblem.simulate(without_svd(make_operator("sr2", SHAPE)), natural.sample(1, seed=3), 0.1)
    chains = [Chain(0, 0), Chain(0, 1)]
    whole = [info.state.tensors() for info in matrix_free_steps(problem, natural, chains, nfe=12)]
    for stop in (3, 8):
        rest = list(matrix_free_steps(problem, natural, chains, nfe=12, resume=whole[stop - 1]))
        assert torch.equal(rest[-1].state.x, whole[-1]["x"])
        assert len(rest) == 12 - stop


def radon(size: int, angles: int) -> scipy.sparse.csr_matrix:
    """Parallel-beam projections: each pixel's centre falls between two cells of the detector."""
    at = np.arange(size) - (size - 1) / 2
    rows, cells, weights = [], int(np.ceil(size * np.sqrt(2))) + 1, []
    for k, angle in enumerate(np.linspace(0, np.pi, angles, endpoint=False)):
        position = (at[:, None] * np.sin(angle) + at * np.cos(angle)).ravel() + (cells - 1) / 2
        left = np.floor(position).astype(int)
        rows += [k * cells + left, k * cells + left + 1]
        weights += [left + 1 - position, position - left]
    columns = np.tile(np.arange(size**2), 2 * angles)
    entries = np.concatenate(weights) / size, (np.concatenate(rows), columns)
    return scipy.sparse.csr_matrix(entries, shape=(angles * cells, size**2))


@pytest.mark.slow
def test_tomography_of_256_pixels():
    """Far too large for an SVD; the exact posterior mean comes from linear solves."""
    shape = (1, 256, 256)
    H = snips.as_operator(radon(256, 30), shape)
    assert isinstance(H, MatrixFree)
    assert_near_the_exact_posterior(H, sigma_0=0.02)


def assert_near_the_exact_posterior(H, sigma_0: float) -> None:
    """Two samples: their mean lies 0.7 standard deviations off the exact one, and each of them is faithful."""
    prior = StationaryGaussian.natural(H.image_shape)
    problem = InverseProblem.simulate(H, prior.sample(1, seed=1), sigma_0)
    result = snips.restore(problem, prior, samples=2, nfe=20)
    exact = prior.posterior(problem).mean
    spread = (result.samples[0] - result.samples[1]).square().mean().sqrt() / 2**0.5
    assert 0.5 * spread < (result.mean[0] - exact).square().mean().sqrt() < spread
    assert result.faithfulness().std_ratio.sub(1).abs().max() < 0.05


@pytest.mark.slow
def test_a_blur_of_512_pixels_with_zero_boundary():
    """Not separable and far too large for an SVD; the exact posterior mean comes from linear solves."""
    shape, random = (1, 512, 512), np.random.default_rng(0)
    kernel = random.random((5, 5)) * np.tri(5)
    kernel /= kernel.sum()

    def apply(x, filter=convolve):
        return filter(x.reshape(512, 512), kernel, mode="constant").ravel()

    blur = ScipyOperator((512**2,) * 2, matvec=apply, rmatvec=lambda y: apply(y, correlate), dtype=np.float64)
    H = snips.as_operator(blur, shape)
    assert isinstance(H, MatrixFree)
    assert_near_the_exact_posterior(H, sigma_0=0.1)
