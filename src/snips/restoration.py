"""restore(): a problem and a prior in, samples with everything one asks of them out."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from snips.inverse_problem import InverseProblem
from snips.metrics import Faithfulness, faithfulness, psnr, ssim
from snips.metrics.quality import TOO_SMALL
from snips.names import check_count
from snips.operators import LinearOperator
from snips.posing.given import given_prior, given_problem
from snips.posing.pictures import PhotoProblem
from snips.priors.base import Prior
from snips.priors.choice import takes_grey
from snips.priors.tiled import tile_side
from snips.report import comparison_grid, data_uri
from snips.report.verdicts import failure_counts
from snips.results import labelled, storage
from snips.results.checkpoints import Checkpoint, run_facts, run_fingerprint
from snips.results.finished import FinishedChains
from snips.samplers.base import OnStep, PriorFailed, Stored, check_options
from snips.samplers.table import SAMPLER_TABLE, SamplerFunctions, sampler_entry

if TYPE_CHECKING:
    from PIL import Image

SHOWN_SAMPLES = 8  # in a notebook
SAMPLERS = SamplerFunctions(SAMPLER_TABLE)  # name -> function; what else is known of each stands in the table


@dataclass(frozen=True, eq=False)
class Restoration:
    """Posterior samples of an inverse problem, and what follows from them."""

    problem: InverseProblem
    samples: Tensor  # (K, B, C, H, W), not clamped
    settings: dict[str, Any] = field(default_factory=dict)  # sampler, options, seed, prior, seconds
    alpha: Tensor | None = None  # (B, 1, H, W): the transparency of the photo, at the size of the pictures

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

    def __getitem__(self, image: int) -> Restoration:
        """The result of one image without the others."""
        b = range(len(self.problem))[image]
        alpha = None if self.alpha is None else self.alpha[b : b + 1]
        return replace(self, problem=self.problem[b], samples=self.samples[:, b : b + 1], alpha=alpha)

    def faithfulness(self) -> Faithfulness:
        """Whether each sample explains the measurement."""
        return faithfulness(self.problem, self.samples)

    def psnr(self) -> tuple[Tensor, Tensor] | None:
        """PSNR in dB of each sample (K, B) and of their mean (B,); None where the truth is not known."""
        if self.problem.truth is None:
            return None
        clamped = self.samples.clamp(0, 1)
        return psnr(clamped, self.problem.truth), psnr(clamped.mean(0), self.problem.truth)

    def ssim(self) -> tuple[Tensor, Tensor] | None:
        """SSIM of each sample (K, B) and of their mean (B,); None without a truth, or for tiny images."""
        truth = self.problem.truth
        if truth is None or min(truth.shape[-2:]) <= TOO_SMALL:
            return None
        clamped = self.samples.clamp(0, 1)
        return torch.stack([ssim(x, truth) for x in clamped]), ssim(clamped.mean(0), truth)

    def grid(self) -> Image.Image:
        """The paper's comparison grid as a PIL image."""
        return comparison_grid(self.problem, self.samples)

    def to_numpy(self) -> np.ndarray:
        """The samples as an array (K, B, C, H, W)."""
        return self.samples.detach().cpu().numpy()

    def to_xarray(self) -> Any:
        """An xarray.Dataset: samples, mean, std, and truth where known, with named axes (extra `xarray`)."""
        return labelled.to_dataset(self)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write pictures, samples.safetensors and result.json; an existing folder only with force=True."""
        return storage.save(self, Path(folder), force)

    @classmethod
    def load(cls, folder: str | Path, operator: LinearOperator | None = None) -> Restoration:
        """Read what `save` wrote. `operator` is needed only where it was not built by `make_operator`."""
        return cls(*storage.load(Path(folder), operator))

    def __repr__(self) -> str:
        K, B, C, H, W = self.samples.shape
        lines = [
            f"Restoration: {K} sample{'s' * (K > 1)} of {B} image{'s' * (B > 1)} {C}x{H}x{W}, "
            f"sigma_0 = {self.problem.sigma_0:g}"
        ]
        if (scores := self.psnr()) is not None:
            lines.append(f"PSNR {scores[0].mean():.2f} dB (samples), {scores[1].mean():.2f} dB (their mean)")
        if (similar := self.ssim()) is not None:
            lines.append(f"SSIM {similar[0].mean():.3f} (samples), {similar[1].mean():.3f} (their mean)")
        verdict = self.faithfulness()
        if verdict.faithful is not None and verdict.std_ratio is not None:
            total, counts = verdict.faithful.numel(), failure_counts(verdict)
            share = f"{int(verdict.faithful.sum())} of {total} sample{'s' * (total > 1)}"
            why = f" ({counts})" if counts else ""
            lines.append(f"faithful: {share}{why}, residual std {verdict.std_ratio.mean():.3f} x sigma_0")
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        """In a notebook: the comparison grid under the summary, with the first of many samples."""
        grid = comparison_grid(self.problem, self.samples, shown=SHOWN_SAMPLES)
        return f"<pre>{html.escape(repr(self))}</pre><img src='{data_uri(grid)}'/>"


class Interrupted(KeyboardInterrupt):
    """Sampling was stopped by Ctrl-C; `finished` holds the samples that were complete, or None."""

    def __init__(self, finished: Restoration | None) -> None:
        super().__init__("sampling was interrupted")
        self.finished = finished


class Broken(ValueError):
    """The prior failed in the middle of a run; `finished` holds the samples that were complete, or None."""

    def __init__(self, reason: str, finished: Restoration | None) -> None:
        super().__init__(reason)
        self.finished = finished


def restore(
    problem: InverseProblem | PhotoProblem | Image.Image | np.ndarray | Tensor,
    prior: Prior | str | None = None,
    *,
    operator: str | LinearOperator | None = None,
    sigma_0: float | str | None = None,
    value_range: tuple[float, float] | None = None,
    sampler: str = "fast",
    samples: int = 8,
    seed: int = 0,
    on_step: OnStep | None = None,
    checkpoint: Checkpoint | None = None,
    **sampler_options: Any,
) -> Restoration:
    """Draw samples of p(x | y).

    Args:
        problem: the measurement with its operator and noise level, also as `pose` and `simulate` make it of a photo; or
            a photo that is the measurement, see `as_photo`; or an array in the measurement's shape, with its operator.
        prior: a denoiser on the device of the measurement, or its name; the fitting bundled one where not given.
        operator: with a photo, a problem by name or its operator; "denoise" by default.
        sigma_0: with a photo, its noise; "auto", the default, estimates it and warns where that is a guess.
        value_range: with a photo, the values of black and white where they are not the obvious ones.
        sampler: a name in `SAMPLERS`; its further arguments are `sampler_options`.
        samples: K samples for each image.
        seed: the same seed gives the same samples.
        on_step: called after each step with a `StepInfo`; raise from it to cancel.
        checkpoint: where the state of the run is kept in a file; what an earlier run left there is continued.

    Ctrl-C raises `Interrupted`, and a prior that returns NaN `Broken`; both hold the samples of all finished chunks.
    """
    sampler_entry(sampler)  # before anything is read: an unknown name ends here
    check_count("samples", samples)
    posed = given_problem(problem, operator, sigma_0, value_range, takes_grey(prior))
    photo = not isinstance(problem, (InverseProblem, PhotoProblem))
    task, denoiser = posed.problem, given_prior(prior, posed.problem, photo)
    sampler = sampler_for(sampler, task)
    check_options(sampler, SAMPLERS[sampler], sampler_options)
    described = storage.plain({"sampler": sampler, "sampler_options": sampler_options, "seed": seed})
    resume, keep = _resumed(checkpoint, task, denoiser, samples, described)
    finished = FinishedChains(samples, len(task), sampler_options.get("chunk"), on_step, resume, keep)
    result = partial(_result, posed, denoiser, described, time.perf_counter(), checkpoint)
    try:
        return result(
            SAMPLERS[sampler](
                task, denoiser, samples=samples, seed=seed, on_step=finished, resume=resume, **sampler_options
            )
        )
    except (KeyboardInterrupt, PriorFailed) as stop:
        kept = finished.samples()
        complete = None if kept is None else result(kept, interrupted=f"{len(kept)} of {samples}")
        raise (Broken(str(stop), complete) if isinstance(stop, PriorFailed) else Interrupted(complete)) from stop


def _resumed(
    checkpoint: Checkpoint | None, task: InverseProblem, prior: Prior, samples: int, described: dict[str, Any]
) -> tuple[Stored | None, Callable[[Callable[[], Stored]], None] | None]:
    """Where an earlier run stopped, and what keeps the state of this one; `described` gets its fingerprint."""
    if checkpoint is None:
        return None, None
    facts = run_facts(task, prior, samples, described)
    described["fingerprint"] = fingerprint = run_fingerprint(task, prior, facts)
    facts["tile"] = tile_side(prior)  # the name of the prior has it for the fingerprint
    return checkpoint.load(fingerprint, facts), partial(checkpoint.save, fingerprint, facts=facts)


def _result(
    posed: PhotoProblem,
    prior: Prior,
    described: dict[str, Any],
    started: float,
    checkpoint: Checkpoint | None,
    drawn: Tensor,
    **more: Any,
) -> Restoration:
    """The samples with all that is to be remembered of how they were drawn."""
    settings = {
        **described,
        "prior": prior.name or type(prior).__name__,
        "seconds": round(time.perf_counter() - started + (checkpoint.spent if checkpoint else 0), 3),
        "threads": torch.get_num_threads(),
        **({"notes": list(posed.notes)} if posed.notes else {}),
        **({"noise": str(posed.noise), "noise_doubt": posed.noise.doubt or None} if posed.noise else {}),
        **more,
    }
    return Restoration(posed.problem, drawn, storage.plain(settings), posed.alpha)


def sampler_for(name: str, problem: InverseProblem) -> str:
    """The sampler that is used: where the operator has no SVD, another one may take its place."""
    other = sampler_entry(name).without_svd
    return name if other is None or problem.operator.has_svd else other
