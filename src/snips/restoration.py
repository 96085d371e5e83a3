"""restore(): a problem and a prior in, samples with everything one asks of them out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from snips import storage
from snips.metrics import Faithfulness, faithfulness, psnr
from snips.names import unknown_name
from snips.priors.base import Prior
from snips.problems import InverseProblem
from snips.report import comparison_grid
from snips.samplers import fast, langevin, matrix_free
from snips.samplers.base import OnStep

SAMPLERS: dict[str, Callable[..., Tensor]] = {"fast": fast, "langevin": langevin, "matrix_free": matrix_free}


@dataclass(frozen=True, eq=False)
class Restoration:
    """Posterior samples of an inverse problem, and what follows from them."""

    problem: InverseProblem
    samples: Tensor  # (K, B, C, H, W), not clamped
    settings: dict[str, Any] = field(default_factory=dict)  # sampler, options, seed, prior, seconds

    @property
    def mean(self) -> Tensor:
        """The mean of the samples, (B, C, H, W): an estimate of E[x | y]."""
        return self.samples.mean(0)

    @property
    def std(self) -> Tensor:
        """The (unbiased) standard deviation of each pixel, (B, C, H, W): what y leaves uncertain."""
        if len(self.samples) < 2:
            raise ValueError("a standard deviation needs at least 2 samples: restore with samples=2 or more")
        return self.samples.std(0)

    def faithfulness(self) -> Faithfulness:
        """Whether each sample explains the measurement."""
        return faithfulness(self.problem, self.samples)

    def psnr(self) -> tuple[Tensor, Tensor] | None:
        """PSNR in dB of each sample (K, B) and of their mean (B,); None where the truth is not known."""
        if self.problem.truth is None:
            return None
        clamped = self.samples.clamp(0, 1)
        return psnr(clamped, self.problem.truth), psnr(clamped.mean(0), self.problem.truth)

    def grid(self):
        """The paper's comparison grid as a PIL image."""
        return comparison_grid(self.problem, self.samples)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write pictures, samples.safetensors and result.json; an existing folder only with force=True."""
        return storage.save(self, Path(folder), force)

    @classmethod
    def load(cls, folder: str | Path, operator=None) -> Restoration:
        """Read what `save` wrote. `operator` is needed only where it was not built by `make_operator`."""
        return cls(*storage.load(Path(folder), operator))

    def __repr__(self) -> str:
        K, B, C, H, W = self.samples.shape
        lines = [
            f"Restoration: {K} samples of {B} image{'s' * (B > 1)} {C}x{H}x{W}, sigma_0 = {self.problem.sigma_0:g}"
        ]
        if (scores := self.psnr()) is not None:
            lines.append(f"PSNR {scores[0].mean():.2f} dB (samples), {scores[1].mean():.2f} dB (their mean)")
        verdict = self.faithfulness()
        if verdict.faithful is not None and verdict.std_ratio is not None:
            share = f"{int(verdict.faithful.sum())} of {verdict.faithful.numel()} samples"
            lines.append(f"faithful: {share}, residual std {verdict.std_ratio.mean():.3f} x sigma_0")
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        """In a notebook: the comparison grid under the summary."""
        return f"<pre>{self!r}</pre><img src='data:image/png;base64,{storage.png_base64(self.grid())}'/>"


def restore(
    problem: InverseProblem,
    prior: Prior,
    *,
    sampler: str = "fast",
    samples: int = 8,
    seed: int = 0,
    on_step: OnStep | None = None,
    **sampler_options: Any,
) -> Restoration:
    """Draw samples of p(x | y).

    Args:
        problem: the measurement, its operator and noise level.
        prior: a denoiser on the device of the measurement.
        sampler: a name in `SAMPLERS`; its further arguments are `sampler_options`. An operator without an SVD is
            sampled by "matrix_free" in place of "fast".
        samples: K samples for each image.
        seed: the same seed gives the same samples.
        on_step: called after each step with a `StepInfo`; raise from it to cancel.
    """
    if sampler not in SAMPLERS:
        raise ValueError(unknown_name("sampler", sampler, list(SAMPLERS)))
    if sampler == "fast" and not problem.operator.has_svd:
        sampler = "matrix_free"
    started = time.perf_counter()
    drawn = SAMPLERS[sampler](problem, prior, samples=samples, seed=seed, on_step=on_step, **sampler_options)
    settings = {
        "sampler": sampler,
        "sampler_options": sampler_options,
        "seed": seed,
        "prior": getattr(prior, "name", "") or type(prior).__name__,
        "seconds": round(time.perf_counter() - started, 3),
        "threads": torch.get_num_threads(),
    }
    return Restoration(problem, drawn, storage.plain(settings))
