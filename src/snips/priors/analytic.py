"""Priors whose denoiser and posterior are known exactly: the oracle against which samplers are measured."""

from __future__ import annotations

import copy
import math
from typing import Protocol

import torch
from torch import Tensor

from snips.buffers import ExactBuffers
from snips.memory import check_memory
from snips.operators.base import LinearOperator, checked_image_shape
from snips.operators.separable import aligned_svd
from snips.priors.base import Prior, check_images, per_image


class MeasuredProblem(Protocol):
    """What a posterior needs to know of an InverseProblem."""

    @property
    def operator(self) -> LinearOperator: ...
    @property
    def y(self) -> Tensor: ...
    @property
    def sigma_0(self) -> float: ...


class GaussianMixture(ExactBuffers, Prior):
    """p(x) = sum_k w_k N(x; mu_k, C_k), with everything in closed form; a posterior is a mixture again.

    Args:
        weights: (K,), positive; normalised to sum 1.
        means: (K, N), rows are images in row-major order.
        covariances: (K, N, N), symmetric, no negative eigenvalues.
        image_shape: (C, H, W) with N = C H W.
    """

    log_weights: Tensor
    means: Tensor
    covariances: Tensor

    def __init__(self, weights: Tensor, means: Tensor, covariances: Tensor, image_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.image_shape = checked_image_shape(image_shape)
        n = math.prod(self.image_shape)
        weights, means, covariances = (torch.as_tensor(t).to(torch.float64) for t in (weights, means, covariances))
        expected = ((len(weights),), (len(weights), n), (len(weights), n, n))
        actual = tuple(tuple(t.shape) for t in (weights, means, covariances))
        if actual != expected:
            raise ValueError(f"weights, means and covariances have shapes {actual}; {expected} are needed")
        if not all(torch.isfinite(t).all() for t in (weights, means, covariances)) or not (weights > 0).all():
            raise ValueError("weights must be positive, and weights, means and covariances finite")
        self.register_exact("log_weights", (weights / weights.sum()).log())
        self.register_exact("means", means)
        covariances = (covariances + covariances.mT) / 2
        self.register_exact("covariances", covariances)
        slack = 1e-6 * covariances.diagonal(dim1=1, dim2=2).amax(1).clamp(min=1e-30)  # singular ones are allowed
        if torch.linalg.cholesky_ex(covariances + slack[:, None, None] * torch.eye(n)).info.any():
            raise ValueError("a covariance has negative eigenvalues")

    @property
    def weights(self) -> Tensor:
        return self.log_weights.exp()

    @property
    def mean(self) -> Tensor:
        """E[x], (C, H, W)."""
        return (self.weights @ self.means).reshape(self.image_shape)

    @property
    def covariance(self) -> Tensor:
        """Cov[x], (N, N): within the components plus between them."""
        offsets = self.means - self.weights @ self.means
        between = torch.einsum("k,kn,km->nm", self.weights, offsets, offsets)
        return torch.einsum("k,knm->nm", self.weights, self.covariances) + between

    def eigen(self) -> tuple[Tensor, Tensor]:
        """C_k = Q diag(lambda) Q^T: lambda (K, N) and Q (K, N, N), computed when first needed."""
        if "eigenvalues" not in self._exact:
            eigenvalues, eigenvectors = torch.linalg.eigh(self._exact["covariances"])
            self.register_exact("eigenvalues", eigenvalues.clamp(min=0))
            self.register_exact("eigenvectors", eigenvectors)
            self.to(self.means)
        return self.get_buffer("eigenvalues"), self.get_buffer("eigenvectors")

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """sum_k p(k | x) [mu_k + C_k (C_k + sigma^2 I)^-1 (x - mu_k)]."""
        check_images(x, self.image_shape)
        self.follow(x)
        eigenvalues, eigenvectors = self.eigen()
        rotated = self._rotate(x)  # (K, B, N)
        total = eigenvalues[:, None] + per_image(sigma, x.flatten(1)) ** 2  # (K, B or 1, N)
        responsibility = torch.softmax(self._log_joint(rotated, total), 0)  # (K, B)
        shrunk = rotated * (responsibility[..., None] * eigenvalues[:, None] / total)
        denoised = responsibility.T @ self.means + (shrunk @ eigenvectors.mT).sum(0)
        return denoised.reshape(x.shape)

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x) for x (B, C, H, W) -> (B,)."""
        self.follow(x)
        eigenvalues, _ = self.eigen()
        if (eigenvalues <= 1e-14 * eigenvalues.max()).any():
            raise ValueError("the covariance is singular, so there is no density")
        return torch.logsumexp(self._log_joint(self._rotate(x), eigenvalues[:, None]), 0)

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """n independent draws, (n, C, H, W)."""
        random = torch.Generator().manual_seed(seed)
        component = torch.multinomial(self.weights.cpu().double(), n, replacement=True, generator=random)
        noise = torch.randn(n, self.means.shape[1], generator=random, dtype=torch.float64)
        draws = torch.empty_like(noise)
        for k in component.unique().tolist():
            chosen = component == k
            draws[chosen] = self._exact["means"][k] + noise[chosen] @ self._root(k).T
        return draws.reshape(n, *self.image_shape).to(self.means)

    def posterior(self, problem: MeasuredProblem) -> GaussianMixture:
        """The exact p(x | y) for one measurement, computed in float64 from the dense H."""
        check_single(problem)
        H, y = dense_measurement(problem)
        log_weights = self._exact["log_weights"].clone()
        means, covariances = (
            torch.empty_like(self._exact["means"]),
            torch.empty_like(self._exact["covariances"]),
        )
        for k in range(len(log_weights)):
            prior = self._exact["means"][k], self._root(k)
            means[k], covariances[k], evidence = condition(*prior, H, y, problem.sigma_0)
            log_weights[k] += evidence
        weights = torch.softmax(log_weights, 0).clamp(min=1e-300)
        return GaussianMixture(weights, means, covariances, self.image_shape).to(problem.y)

    def _root(self, k: int) -> Tensor:
        """R with C_k = R R^T, in float64."""
        self.eigen()
        return self._exact["eigenvectors"][k] * self._exact["eigenvalues"][k].sqrt()

    def _rotate(self, x: Tensor) -> Tensor:
        """Q_k^T (x - mu_k): (B, C, H, W) -> (K, B, N)."""
        return (x.flatten(1) - self.means[:, None]) @ self.eigen()[1]

    def _log_joint(self, rotated: Tensor, variances: Tensor) -> Tensor:
        """log w_k + log N(...) for coordinates (K, B, N) and their variances (K, B or 1, N) -> (K, B)."""
        quadratic = (rotated**2 / variances).sum(-1) + (2 * math.pi * variances).log().sum(-1)
        return self.log_weights[:, None] - quadratic / 2


class Gaussian(GaussianMixture):
    """N(mean (N,), covariance (N, N)) over images of shape (C, H, W)."""

    def __init__(self, mean: Tensor, covariance: Tensor, image_shape: tuple[int, ...]) -> None:
        mean, covariance = torch.as_tensor(mean), torch.as_tensor(covariance)
        super().__init__(torch.ones(1), mean.reshape(1, -1), covariance[None], image_shape)


def check_single(problem: MeasuredProblem) -> None:
    if len(problem.y) != 1:
        raise ValueError(f"the posterior is of one measurement, but there are {len(problem.y)}: use problem[:1]")


def dense_measurement(problem: MeasuredProblem) -> tuple[Tensor, Tensor]:
    """H (M, N) and y (M,) in float64."""
    n = math.prod(problem.operator.image_shape)
    check_memory(8 * 6 * n * n, f"an exact posterior of {n} pixels", "use a smaller image")
    H = copy.deepcopy(problem.operator).cpu().double().as_matrix()
    return H, problem.y.reshape(-1).cpu().double()


def condition(mean: Tensor, root: Tensor, H: Tensor, y: Tensor, sigma_0: float) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and covariance of N(mean, R R^T) given y = H x + z, and the evidence log N(y; H mean, S), for a root R.

    With the SVD H R = U diag(d) W^T the covariance is R W diag(sigma_0^2 / (d^2 + sigma_0^2)) W^T R^T: a square, so it
    has no negative eigenvalue at any sigma_0, 0 included.
    """
    U, d, W = aligned_svd(H @ root)
    offset = y - H @ mean
    residual, variance, seen = U.T @ offset, d**2 + sigma_0**2, d > 0
    gain = torch.where(seen, d / torch.where(seen, variance, 1), 0)
    kept = root @ W * torch.where(seen, sigma_0 / torch.where(seen, variance, 1).sqrt(), 1)
    evidence = -((residual[seen] ** 2 / variance[seen]).sum() + (2 * math.pi * variance[seen]).log().sum()) / 2
    if sigma_0 > 0:  # the part of y that no image explains counts for every component alike, up to its rank
        outside, rest = offset.square().sum() - residual.square().sum(), len(y) - int(seen.sum())
        evidence = evidence - (outside / sigma_0**2 + rest * math.log(2 * math.pi * sigma_0**2)) / 2
    return mean + root @ (W @ (residual * gain)), kept @ kept.T, evidence
