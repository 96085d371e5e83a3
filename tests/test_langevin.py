"""Algorithm 1 against the paper's matrices, and its special cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sampler_cases import check_resumed_run
from snips import InverseProblem, make_operator
from snips.operators import Deblurring, Denoising, Dense, Zero, kernels
from snips.priors import Gaussian, Prior, StationaryGaussian
from snips.samplers import PRESETS, langevin, langevin_steps
from snips.schedules import geometric
from snips.streams import Chain, Streams

SHAPE = (1, 4, 4)
N = math.prod(SHAPE)


@pytest.fixture(scope="module")
def prior() -> Gaussian:
    random = torch.Generator().manual_seed(5)
    root = 0.2 * torch.randn(N, N, generator=random, dtype=torch.float64)
    mean = torch.rand(N, generator=random, dtype=torch.float64)
    return Gaussian(mean, root @ root.T + 0.01 * torch.eye(N), SHAPE).double()


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


@pytest.mark.parametrize("sigma_0", [0.0, 1e-30, 1e-12, 1e-6])
def test_rounding_errors_are_not_amplified(sigma_0):
    """A blur that hides most frequencies, in float32: samples stay images, and exact data are not worse than noisy."""
    shape = (1, 48, 48)
    prior = StationaryGaussian.natural(shape)
    x = prior.sample(1, seed=1)
    problem = InverseProblem.simulate(Deblurring(shape, kernels.gaussian(3, 25)), x, sigma_0, seed=0)
    samples = langevin(problem, prior, sigmas=geometric(20, 1e-4, 40), c=0.3, tau=3, samples=2)[:, 0]
    assert samples.abs().max() < 3
    assert (problem.operator(samples) - problem.y).square().mean().sqrt() < 1e-3


def test_noiseless_data_restore_well_at_any_size():
    """What float32 can tell is used: a mild blur of 96 x 96 pixels is undone."""
    shape = (3, 96, 96)
    prior = StationaryGaussian.natural(shape)
    x = prior.sample(1, seed=1)
    problem = InverseProblem.simulate(make_operator("deblur_uniform", shape), x, 0.0, seed=0)
    samples = langevin(problem, prior, sigmas=geometric(20, 1e-4, 40), c=0.3, tau=3, samples=1)[0]
    assert (samples - x).square().mean().sqrt() < 0.01


def test_synthesis_is_plain_annealed_langevin(prior):
    """H = 0 and sigma_0 = 0: x += c sigma^2 score + sqrt(2 c) sigma z, as in Song and Ermon 2019."""
    problem = InverseProblem(Zero(SHAPE), torch.zeros(1, 0, dtype=torch.float64), 0.0)
    sigmas, c = geometric(10, 0.01, 15), 0.1
    ours = langevin(problem, prior, sigmas=sigmas, c=c, tau=2, samples=1, seed=1)[0]
    streams = Streams(1, [Chain(0, 0)])
    x = streams.uniform(ours)
    for sigma in sigmas.tolist():
        for _ in range(2):
            x = x + c * sigma**2 * prior.score(x, sigma) + math.sqrt(2 * c) * sigma * streams.normal(x)
    torch.testing.assert_close(ours, x)


@pytest.mark.parametrize("empty", [lambda: Dense(torch.zeros(3, N), SHAPE), lambda: Zero(SHAPE)])
def test_all_ways_to_measure_nothing_agree(empty, prior):
    operator = empty()
    y = torch.zeros(1, *operator.measurement_shape, dtype=torch.float64)
    nothing_seen = make_operator("inpaint", SHAPE, mask=torch.zeros(4, 4))
    options = {"sigmas": geometric(10, 0.01, 10), "samples": 2}
    expected = langevin(InverseProblem(nothing_seen, torch.zeros(1, 1, 0).double(), 0.3), prior, **options)
    torch.testing.assert_close(langevin(InverseProblem(operator, y, 0.3), prior, **options), expected)


def test_identity_follows_y(prior):
    """The published code ignores y where H has full rank."""
    sigmas = geometric(10, 0.001, 60)
    for seed in (0, 1):
        problem = InverseProblem.simulate(Denoising(SHAPE), prior.sample(1, seed=seed), 0.01, seed)
        samples = langevin(problem, prior, sigmas=sigmas, c=0.2, tau=3, samples=4)
        assert (samples - problem.y).abs().max() < 0.06


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "zero"])
def test_noiseless_measurements_are_met(name, prior):
    problem = problem_for(OPERATORS[name](), prior, 0.0)
    samples = langevin(problem, prior, sigmas=geometric(10, 1e-4, 60), c=0.2, tau=3, samples=3)[:, 0]
    assert torch.isfinite(samples).all()
    assert (problem.operator(samples) - problem.y).abs().max() < 2e-3


@pytest.mark.parametrize("step", ["newton", "uniform"])
def test_the_boundary_between_the_regimes_is_harmless(step, prior):
    """s sigma = sigma_0 exactly: finite and, for the paper's step, the limit of its neighbours."""
    results = []
    for sigma_0 in (0.5 * (1 - 1e-9), 0.5, 0.5 * (1 + 1e-9)):
        problem = InverseProblem(Denoising(SHAPE), torch.full((1, *SHAPE), 0.3, dtype=torch.float64), sigma_0)
        results.append(langevin(problem, prior, sigmas=torch.tensor([0.5]), c=0.1, tau=1, samples=1, step=step))
    assert all(torch.isfinite(result).all() for result in results)
    if step == "newton":
        torch.testing.assert_close(results[0], results[1], atol=1e-4, rtol=0)
        torch.testing.assert_close(results[2], results[1], atol=1e-4, rtol=0)


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


OPTIONS = {"sigmas": geometric(5, 0.05, 6), "c": 0.1, "tau": 2}


@pytest.fixture
def three_images(prior) -> InverseProblem:
    return InverseProblem.simulate(make_operator("sr2", SHAPE), prior.sample(3, seed=8), 0.1, seed=0)


def test_samples_do_not_depend_on_how_many_are_drawn(three_images, prior):
    many = langevin(three_images, prior, samples=4, **OPTIONS)
    few = langevin(three_images, prior, samples=2, **OPTIONS)
    assert many.shape == (4, 3, *SHAPE)
    torch.testing.assert_close(many[:2], few, rtol=1e-12, atol=1e-12)


def test_split_batches_give_the_same_samples(three_images, prior):
    together = langevin(three_images, prior, samples=2, **OPTIONS)
    parts = [langevin(three_images[i : i + 1], prior, samples=2, **OPTIONS) for i in range(3)]
    torch.testing.assert_close(together, torch.cat(parts, 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_chunks_give_the_same_samples(chunk, three_images, prior):
    together = langevin(three_images, prior, samples=2, **OPTIONS)
    torch.testing.assert_close(langevin(three_images, prior, samples=2, chunk=chunk, **OPTIONS), together)


def test_samples_differ_from_each_other_and_by_seed(three_images, prior):
    samples = langevin(three_images, prior, samples=2, **OPTIONS)
    other = langevin(three_images, prior, samples=2, seed=1, **OPTIONS)
    assert (samples[0] - samples[1]).abs().min() > 0
    assert (samples - other).abs().min() > 0


@pytest.mark.parametrize("stop", [1, 5, 11])
def test_a_resumed_run_is_bit_equal(stop, three_images, prior):
    chains = [Chain(image, sample) for sample in range(2) for image in range(3)]
    check_resumed_run(lambda stored: langevin_steps(three_images, prior, chains, resume=stored, **OPTIONS), stop, 12)


def test_on_step_reports_and_can_cancel(three_images, prior):
    seen = []
    langevin(three_images, prior, samples=2, chunk=3, on_step=seen.append, **OPTIONS)
    assert [info.step for info in seen] == list(range(1, 25))
    assert {info.total for info in seen} == {24}
    assert seen[0].sigma == pytest.approx(5)
    assert seen[0].denoised.shape == (3, *SHAPE)

    def cancel(info):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        langevin(three_images, prior, samples=2, on_step=cancel, **OPTIONS)


def test_presets_are_the_papers():
    celeba, lsun = PRESETS["celeba"].options(), PRESETS["lsun"].options()
    assert (celeba["c"], celeba["tau"], len(celeba["sigmas"])) == (0.033, 5, 500)
    assert (lsun["c"], lsun["tau"], len(lsun["sigmas"])) == (0.018, 3, 1086)
    assert celeba["sigmas"][[0, -1]].tolist() == pytest.approx([90, 0.01])
    assert lsun["sigmas"][[0, -1]].tolist() == pytest.approx([190, 0.01])
    ratios = celeba["sigmas"][1:] / celeba["sigmas"][:-1]
    assert ratios.max() - ratios.min() < 1e-12


class Broken(Prior):
    def __init__(self, result):
        super().__init__()
        self.result = result

    def denoise(self, x, sigma):
        return self.result(x)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: x * float("nan"), "NaN or Inf in step 1 at sigma = 5"),
        (lambda x: x[..., :2], "must keep shape"),
        (lambda x: x.float(), "must keep shape, dtype"),
    ],
)
def test_a_broken_prior_is_named(result, message, three_images):
    with pytest.raises(ValueError, match=message):
        langevin(three_images, Broken(result), samples=1, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigmas": torch.tensor([1.0, 2.0])}, "sigmas.* must fall"),
        ({"sigmas": torch.tensor([])}, "at least one"),
        ({"sigmas": torch.tensor([1.0, -1.0])}, "finite and positive"),
        ({"sigmas": torch.tensor([float("nan")])}, "finite and positive"),
        ({"c": 0.0}, "step size c"),
        ({"tau": 0}, "tau must be"),
        ({"tau": 1.5}, "tau must be"),
        ({"tau": True}, "tau must be .* but is True"),
        ({"samples": 1.5}, "samples must be"),
        ({"samples": 0}, "samples must be"),
        ({"step": "newtno"}, "unknown step 'newtno'"),
        ({"seed": -1}, "the seed must be"),
        ({"seed": 0.5}, "the seed must be"),
        ({"chunk": 0}, "chunk must be"),
    ],
)
def test_bad_settings(options, message, three_images, prior):
    with pytest.raises(ValueError, match=message):
        langevin(three_images, prior, **{**OPTIONS, **options})
