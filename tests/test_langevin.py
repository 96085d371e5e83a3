"""Algorithm 1 against the paper's matrices: every step, its moments, its presets."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sampler_cases import SHAPE, N, random_gaussian
from snips import InverseProblem, make_operator
from snips.operators import Denoising, Dense, Zero
from snips.priors import Gaussian
from snips.samplers import PRESETS, langevin
from snips.schedules import geometric
from snips.streams import Chain, Streams


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    return random_gaussian()


def random_matrix(m: int, rank: int = N) -> torch.Tensor:
    random = torch.Generator().manual_seed(m)
    left = torch.randn(m, rank, generator=random, dtype=torch.float64)
    return left @ torch.randn(rank, N, generator=random, dtype=torch.float64) / 4


OPERATORS = {
    "deblur": lambda: make_operator("deblur_uniform", SHAPE),
    "sr2": lambda: make_operator("sr2", SHAPE),
    "cs4": lambda: make_operator("cs4", SHAPE),
    "inpaint": lambda: make_operator("inpaint", SHAPE, mask=torch.arange(16).reshape(4, 4) % 3 > 0),
    "identity": lambda: Denoising(SHAPE),
    "circular": lambda: make_operator("deblur_motion", SHAPE, length=3, angle=20),
    "mri": lambda: make_operator("mri", SHAPE, acceleration=2),
    "wide": lambda: Dense(random_matrix(7), SHAPE),
    "square": lambda: Dense(random_matrix(N), SHAPE),
    "tall": lambda: Dense(random_matrix(N + 6), SHAPE),
    "rank_deficient": lambda: Dense(random_matrix(10, rank=3), SHAPE),
    "repeated_singular_values": lambda: Dense(torch.cat([torch.eye(N), torch.eye(N)[:5]]), SHAPE),
    "zero": lambda: Zero(SHAPE),
}


def problem_for(operator, prior: Gaussian, sigma_0: float) -> InverseProblem:
    return InverseProblem.simulate(operator, prior.sample(1, seed=3), sigma_0, seed=4)


class PaperAlgorithm:
    """Algorithm 1 as printed: the dense SVD of H, the diagonal of A_i, and d_t with its pseudo-inverse."""

    def __init__(self, problem: InverseProblem, prior: Gaussian, c: float) -> None:
        H = problem.operator.as_matrix().numpy()
        self.U, s, self.Vt = np.linalg.svd(H, full_matrices=True)
        self.s = np.zeros(N)
        self.s[: len(s)] = np.where(s > 1e-12, s, 0)
        self.Sigma = np.zeros(H.shape)
        np.fill_diagonal(self.Sigma, self.s)
        self.y_T = self.U.T @ problem.y.numpy().reshape(-1)
        self.sigma_0, self.prior, self.c = problem.sigma_0, prior, c

    def coefficients(self, sigma: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A_i, the pseudo-inverse of |sigma_0^2 I - sigma^2 Sigma Sigma^T|, and the mask of "not >"."""
        above = (sigma * self.s > self.sigma_0) & (self.s > 0)
        A = np.full(N, sigma**2)
        A[above] = sigma**2 - self.sigma_0**2 / self.s[above] ** 2
        below = ~above & (self.s > 0)
        A[below] = sigma**2 * (1 - self.s[below] ** 2 * sigma**2 / self.sigma_0**2)
        middle = np.abs(self.sigma_0**2 - sigma**2 * np.diag(self.Sigma @ self.Sigma.T))
        inverse = np.array([1 / value if value > 0 else 0.0 for value in middle])
        return A, inverse, ~above

    def step(self, x: np.ndarray, z: np.ndarray, sigma: float) -> np.ndarray:
        A, inverse, not_above = self.coefficients(sigma)
        x_T = self.Vt @ x
        score = self.prior.score(torch.from_numpy(x).reshape(1, *SHAPE), sigma).numpy().reshape(-1)
        d = self.Sigma.T @ (inverse * (self.y_T - self.Sigma @ x_T)) + not_above * (self.Vt @ score)
        return self.Vt.T @ (x_T + self.c * A * d + np.sqrt(2 * self.c * A) * (self.Vt @ z))

    def moments(self, sigmas: list[float], tau: int) -> tuple[np.ndarray, np.ndarray]:
        """With a Gaussian prior each step is affine: the algorithm's own mean and covariance, exactly."""
        mean, covariance = np.full(N, 0.5), np.eye(N) / 12
        for sigma in sigmas:
            offset = self.step(np.zeros(N), np.zeros(N), sigma)
            F = np.stack([self.step(e, np.zeros(N), sigma) - offset for e in np.eye(N)], 1)
            G = np.stack([self.step(np.zeros(N), e, sigma) - offset for e in np.eye(N)], 1)
            for _ in range(tau):
                mean, covariance = F @ mean + offset, F @ covariance @ F.T + G @ G.T
        return mean, covariance


@pytest.mark.parametrize("sigma_0", [0.1, 3.0, 1e-4])
@pytest.mark.parametrize("name", OPERATORS)
def test_every_step_is_the_papers(name, sigma_0, prior):
    problem = problem_for(OPERATORS[name](), prior, sigma_0)
    sigmas, tau, c = geometric(20, 0.01, 12).tolist(), 2, 0.1
    ours = langevin(problem, prior, sigmas=torch.tensor(sigmas), c=c, tau=tau, samples=1, seed=9)
    algorithm = PaperAlgorithm(problem, prior, c)
    streams = Streams(9, [Chain(0, 0)])
    like = torch.empty(1, *SHAPE, dtype=torch.float64)
    x = streams.uniform(like).numpy().reshape(-1)
    for sigma in sigmas:
        for _ in range(tau):
            x = algorithm.step(x, streams.normal(like).numpy().reshape(-1), sigma)
    np.testing.assert_allclose(ours.numpy().reshape(-1), x, atol=1e-7 * max(1, np.abs(x).max()))


@pytest.mark.parametrize("name", ["deblur", "cs4", "mri", "identity", "tall"])
def test_mean_and_variance_are_those_of_the_affine_recursion(name, prior):
    """4,000 chains; each of 32 moments may stray by 4.5 standard errors (false alarms: 2 in 10,000 runs)."""
    problem = problem_for(OPERATORS[name](), prior, 0.1)
    sigmas, tau, c, K = geometric(5, 0.02, 10), 3, 0.15, 4000
    samples = langevin(problem, prior, sigmas=sigmas, c=c, tau=tau, samples=K)[:, 0].reshape(K, N).numpy()
    mean, covariance = PaperAlgorithm(problem, prior, c).moments(sigmas.tolist(), tau)
    variance = np.diag(covariance)
    assert np.all(np.abs(samples.mean(0) - mean) < 4.5 * np.sqrt(variance / K))
    assert np.all(np.abs(samples.var(0, ddof=1) / variance - 1) < 4.5 * np.sqrt(2 / K))


@pytest.mark.parametrize("name", ["deblur", "sr2", "cs4"])
def test_longer_schedules_come_closer_to_the_true_posterior(name, prior):
    """No sampling error here: the algorithm's exact moments are compared with the exact posterior's."""
    problem = problem_for(OPERATORS[name](), prior, 0.1)
    posterior = prior.posterior(problem)
    truth = posterior.covariance.numpy()
    errors = []
    for levels in (10, 40, 160, 640):
        mean, covariance = PaperAlgorithm(problem, prior, 0.033).moments(geometric(20, 0.01, levels).tolist(), 5)
        shift = np.linalg.norm(mean - posterior.mean.numpy().reshape(-1)) / np.sqrt(np.trace(truth))
        errors.append(shift + np.linalg.norm(covariance - truth) / np.linalg.norm(truth))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.2 * errors[0]


@pytest.mark.parametrize("name", ["deblur", "sr2", "cs4", "circular", "mri"])
def test_samples_do_not_depend_on_the_basis(name, prior):
    """The same H as a structured operator and as a matrix, whose singular vectors LAPACK chose: equal samples."""
    problem = problem_for(OPERATORS[name](), prior, 0.1)
    y = problem.y.reshape(1, -1)
    dense = InverseProblem(Dense(problem.operator.as_matrix(), SHAPE), y, 0.1)
    options = {"sigmas": geometric(10, 0.01, 8), "samples": 2}
    torch.testing.assert_close(langevin(dense, prior, **options), langevin(problem, prior, **options))


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "zero"])
def test_noiseless_measurements_are_met(name, prior):
    problem = problem_for(OPERATORS[name](), prior, 0.0)
    samples = langevin(problem, prior, sigmas=geometric(10, 1e-4, 60), c=0.2, tau=3, samples=3)[:, 0]
    assert torch.isfinite(samples).all()
    assert (problem.operator(samples) - problem.y).abs().max() < 2e-3


def test_uniform_step_is_the_ablations(prior):
    problem = problem_for(OPERATORS["deblur"](), prior, 0.1)
    sigma, c = 0.3, 1e-3
    ours = langevin(problem, prior, sigmas=torch.tensor([sigma]), c=c, tau=1, samples=1, step="uniform", seed=2)
    algorithm, streams = PaperAlgorithm(problem, prior, c), Streams(2, [Chain(0, 0)])
    x, z = streams.uniform(ours[0]).numpy().reshape(-1), streams.normal(ours[0]).numpy().reshape(-1)
    A, inverse, not_above = algorithm.coefficients(sigma)
    x_T = algorithm.Vt @ x
    score = prior.score(torch.from_numpy(x).reshape(1, *SHAPE), sigma).numpy().reshape(-1)
    d = algorithm.Sigma.T @ (inverse * (algorithm.y_T - algorithm.Sigma @ x_T)) + not_above * (algorithm.Vt @ score)
    alpha = c * sigma**2
    expected = algorithm.Vt.T @ (x_T + alpha * d + math.sqrt(2 * alpha) * (algorithm.Vt @ z))
    np.testing.assert_allclose(ours.numpy().reshape(-1), expected, atol=1e-9)
    assert A.min() > 0


def test_presets_are_the_papers():
    celeba, lsun = PRESETS["celeba"].options(), PRESETS["lsun"].options()
    assert (celeba["c"], celeba["tau"], len(celeba["sigmas"])) == (0.033, 5, 500)
    assert (lsun["c"], lsun["tau"], len(lsun["sigmas"])) == (0.018, 3, 1086)
    assert celeba["sigmas"][[0, -1]].tolist() == pytest.approx([90, 0.01])
    assert lsun["sigmas"][[0, -1]].tolist() == pytest.approx([190, 0.01])
    ratios = celeba["sigmas"][1:] / celeba["sigmas"][:-1]
    assert ratios.max() - ratios.min() < 1e-12
