"""Standard deviations at 64x64, under a stationary Gaussian prior with the spectrum of photographs.

Samples and the exact posterior are compared band by band: the root of the total variance of all Fourier coefficients
between two frequencies (cycles per image). Below EXACT_BELOW, where few coefficients hold most of the variance and
draws would be noisy, the exact variance is computed by linear solves; above, it is that of exact draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from measure import print_table, store
from snips import InverseProblem, LinearOperator, make_operator
from snips.operators import Zero
from snips.priors import StationaryGaussian
from snips.priors.stationary import SolvedPosterior
from snips.samplers import fast
from snips.samplers.multistep import STEPS_VERSION

SIZE, SIGMA_0, SAMPLES, EXACT_SAMPLES, CHUNK = 64, 0.1, 2400, 400, 200
BANDS = ((0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, math.inf))  # from (without) .. to (with); the first has 0 too
EXACT_BELOW = 4


def box_mask(size: int) -> Tensor:
    mask = torch.ones(size, size, dtype=torch.bool)
    mask[size // 4 : 3 * size // 4, size // 4 : 3 * size // 4] = False
    return mask


OPERATORS: dict[str, Callable[[], LinearOperator]] = {
    "zero": lambda: Zero((1, SIZE, SIZE)),
    "inpaint box": lambda: make_operator("inpaint", (1, SIZE, SIZE), mask=box_mask(SIZE)),
    "colorize": lambda: make_operator("colorize", (3, SIZE, SIZE)),
    "mri": lambda: make_operator("mri", (1, SIZE, SIZE)),
    "cs4": lambda: make_operator("cs4", (1, SIZE, SIZE)),
}


def frequencies() -> Tensor:
    """|f| of each Fourier coefficient, (SIZE, SIZE)."""
    f = torch.fft.fftfreq(SIZE, dtype=torch.float64) * SIZE
    return torch.hypot(f[:, None], f)


def in_band(band: tuple[float, float]) -> Tensor:
    low, high = band
    radius = frequencies()
    return (radius <= high) & ((radius > low) | (low == 0))


def band_powers(deviations: Tensor) -> Tensor:
    """The power of images (n, C, H, W) in each band, (n, bands)."""
    power = torch.fft.fft2(deviations.double(), norm="ortho").abs().square().sum(1)
    return torch.stack([power[:, in_band(band)].sum(1) for band in BANDS], 1)


def solved_variance(posterior: SolvedPosterior, shape: tuple[int, int, int], band: tuple[float, float]) -> float:
    """The exact variance in a band: the sum of u^T Cov[x | y] u over an orthonormal real (Hartley) basis u of it."""
    rows, columns = in_band(band).nonzero(as_tuple=True)
    pixel = 2 * math.pi / SIZE * torch.arange(SIZE, dtype=torch.float64)
    phase = rows[:, None, None] * pixel[:, None] + columns[:, None, None] * pixel
    waves = (phase.cos() + phase.sin()) / SIZE
    u = torch.einsum("bhw,cd->bcdhw", waves, torch.eye(shape[0], dtype=torch.float64)).flatten(0, 1)
    return float((u * posterior.apply_covariance(u)).sum())


def exact_variances(posterior: SolvedPosterior, shape: tuple[int, int, int], seed: int) -> tuple[list[float], Tensor]:
    """The posterior's variance in each band, and the squared relative error of those that draws had to tell."""
    drawn = band_powers(posterior.sample(EXACT_SAMPLES, seed=seed + 5) - posterior.mean)
    solved = torch.tensor([band[1] <= EXACT_BELOW for band in BANDS])
    error = torch.where(solved, 0, drawn.var(0) / drawn.mean(0) ** 2 / EXACT_SAMPLES)
    means = zip(BANDS, solved, drawn.mean(0).tolist(), strict=True)
    return [solved_variance(posterior, shape, band) if s else mean for band, s, mean in means], error


def compare(name: str, seed: int, nfe: int) -> dict[str, object]:
    """Standard deviation of the samples over the exact one in each band, with the standard errors of sampling."""
    operator = OPERATORS[name]()
    shape, prior = operator.image_shape, StationaryGaussian.natural(operator.image_shape)
    problem = InverseProblem.simulate(operator, prior.sample(1, seed=seed), SIGMA_0, seed)
    posterior = SolvedPosterior(prior, problem)
    samples = fast(problem, prior, nfe=nfe, samples=SAMPLES, seed=seed, chunk=CHUNK)[:, 0]
    powers = band_powers(samples - samples.mean(0)) * SAMPLES / (SAMPLES - 1)
    exact, drawn = exact_variances(posterior, shape, seed)
    ratios = (powers.mean(0) / torch.tensor(exact)).sqrt()
    errors = (powers.var(0) / powers.mean(0) ** 2 / SAMPLES + drawn).sqrt() / 2
    shifts = band_powers(samples.mean(0, keepdim=True) - posterior.mean)[0]
    return {
        "problem": name,
        "calls": nfe,
        "ratios": ratios.tolist(),
        "errors": errors.tolist(),
        "mean_errors": (shifts / torch.tensor(exact)).sqrt().tolist(),
        "mean_error": math.sqrt(float(shifts.sum()) / sum(exact)),
    }


def stationary(seed: int, nfe: int) -> None:
    rows = []
    for name in OPERATORS:
        rows.append(compare(name, seed, nfe))
        store("exactness_stationary", rows, steps=STEPS_VERSION)
        print(name, *(f"{ratio:.3f}" for ratio in rows[-1]["ratios"]), flush=True)
    labels = [f"{low} .. {high}" for low, high in BANDS]
    spreads = [
        [
            row["problem"],
            *(f"{ratio:.3f} ± {error:.3f}" for ratio, error in zip(row["ratios"], row["errors"], strict=True)),
            f"{max(row['ratios'], key=lambda ratio: abs(ratio - 1)):.3f}",
        ]
        for row in rows
    ]
    title = f"{SIZE}x{SIZE}, {nfe} calls, by frequency:"
    print_table(f"{title} std / exact std", ["problem", *labels, "worst"], spreads)
    shifts = [
        [row["problem"], *(f"{shift:.3f}" for shift in row["mean_errors"]), f"{row['mean_error']:.3f}"] for row in rows
    ]
    noise = f"sampling noise {SAMPLES**-0.5:.3f}"
    print_table(f"{title} error of the mean / exact std ({noise})", ["problem", *labels, "all"], shifts)
