"""deepinv: the samplers of this package as one of its reconstruction models, `model(y, physics)`."""

from __future__ import annotations

import hashlib
from typing import Any

from torch import Tensor, nn

from snips.conversion import as_operator
from snips.inverse_problem import InverseProblem
from snips.operators.base import LinearOperator
from snips.priors.denoiser import as_prior
from snips.restoration import Restoration, restore


class SNIPS(nn.Module):
    """Posterior samples by deepinv's convention: `SNIPS(denoiser)(y, physics)` returns their mean, (B, C, H, W).

    Args:
        denoiser: whatever `as_prior` takes: a deepinv Denoiser, a function, a Prior.
        sigma_0: the noise level; that of the physics' GaussianNoise where not given.
        estimate: "mean" of the samples, or "sample": the first one.
        operator_options: svd, rank, cache and progress of `as_operator`.
        options: of `restore`: samples, seed, sampler, nfe and the like.

    The result is exactly that of `restore` with `InverseProblem(as_operator(physics, shape), y, sigma_0)` and
    `as_prior(denoiser)`; `.restoration(y, physics)` gives all of it.
    """

    def __init__(
        self,
        denoiser: Any,
        *,
        sigma_0: float | None = None,
        estimate: str = "mean",
        operator_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if estimate not in ("mean", "sample"):
            raise ValueError(f"estimate must be 'mean' or 'sample', not {estimate!r}")
        self.prior, self.sigma_0, self.estimate = as_prior(denoiser), sigma_0, estimate
        self.operator_options, self.options = operator_options or {}, options
        self._converted: tuple[str, LinearOperator] | None = None

    def forward(self, y: Tensor, physics: Any, **kwargs: Any) -> Tensor:
        """The reconstruction of measurements y (B, ...); further arguments of deepinv's tools are not needed."""
        result = self.restoration(y, physics)
        return result.mean if self.estimate == "mean" else result.samples[0]

    def restoration(self, y: Tensor, physics: Any) -> Restoration:
        """All samples, their spread and their faithfulness."""
        sigma_0 = noise_level(physics) if self.sigma_0 is None else self.sigma_0
        return restore(InverseProblem(self._operator(y, physics), y, sigma_0), self.prior, **self.options)

    def _operator(self, y: Tensor, physics: Any) -> LinearOperator:
        """Converted once for the same physics with the same parameters."""
        if not isinstance(y, Tensor):
            raise ValueError(f"y is a {type(y).__name__}: only physics that measure one tensor are sampled")
        shape = tuple(physics.A_adjoint(y[:1]).shape[1:])
        key = state_key(physics, shape)
        if self._converted is None or self._converted[0] != key:
            self._converted = key, as_operator(physics, shape, **self.operator_options)
        return self._converted[1]


def noise_level(physics: Any) -> float:
    """The sigma of the physics' Gaussian noise, one for the whole batch."""
    noise = getattr(physics, "noise_model", None)
    sigma = getattr(noise, "sigma", None)
    if type(noise).__name__ != "GaussianNoise" or sigma is None:
        raise ValueError(
            f"the noise of the physics is {type(noise).__name__}, not GaussianNoise: give SNIPS(..., sigma_0=)"
        )
    # A float32 of 0.1 is 0.10000000149: take the decimal number that it was made of, as its owner would write it.
    levels = set(map(float, map(str, sigma.flatten().cpu().numpy()))) if isinstance(sigma, Tensor) else {float(sigma)}
    if len(levels) != 1:
        raise ValueError("the images of this batch have different noise levels: give one batch for each")
    return levels.pop()


def state_key(physics: Any, shape: tuple[int, ...]) -> str:
    """A hash of the physics' parameters, which deepinv's generators change between batches."""
    digest = hashlib.sha256(f"{id(physics)} {type(physics).__name__} {shape}".encode())
    for name, value in (*physics.named_buffers(), *physics.named_parameters()):
        if "noise_model" not in name:
            digest.update(name.encode() + value.detach().cpu().resolve_conj().contiguous().numpy().tobytes())
    return digest.hexdigest()
