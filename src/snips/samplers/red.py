"""RED, the paper's baseline: one image that balances the measurement against the denoiser, by steepest descent.

Romano, Elad, Milanfar: The Little Engine that Could: Regularization by Denoising (RED). SIAM J. Imaging Sci. 2017,
section 4.2. With f the denoiser at a small fixed noise level it follows the gradient of

    E(x) = |H x - y|^2 / (2 sigma_0^2) + (weight / 2) x^T (x - f(x)),

which is H^T (H x - y) / sigma_0^2 + weight (x - f(x)), with the step 2 / (1 / sigma_0^2 + weight).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, islice

from torch import Tensor

from snips.images import luminance
from snips.inverse_problem import InverseProblem
from snips.names import check_count
from snips.priors.base import Prior, denoised_copy
from snips.problems import make_operator
from snips.samplers.base import denoise

DENOISER_SIGMA = 3.25 / 255  # the noise level that the authors of RED ask their denoiser to remove


def red(
    problem: InverseProblem,
    prior: Prior,
    *,
    weight: float,
    iterations: int = 100,
    denoiser_sigma: float = DENOISER_SIGMA,
) -> Tensor:
    """The minimum of RED's energy, from y on -> (B, C, H, W) in [0, 1].

    Args:
        problem: with sigma_0 > 0, and measurements that are images of the full size: where the descent starts.
        prior: its denoiser is f.
        weight: lambda for pixels in [0, 1]. A lambda for pixels in 0 .. 255 is 255^2 times as large in these units.
        iterations: N, one call of the denoiser each.
        denoiser_sigma: the noise level that f removes.
    """
    return _last(red_steps(problem, prior, weight=weight, denoiser_sigma=denoiser_sigma), iterations)


def red_steps(
    problem: InverseProblem, prior: Prior, *, weight: float, denoiser_sigma: float = DENOISER_SIGMA
) -> Iterator[Tensor]:
    """RED as a generator: the image after each iteration, for ever."""
    _check(problem, weight, denoiser_sigma)
    H, y, precision = problem.operator, problem.y, problem.sigma_0**-2
    step = 2 / (precision + weight)
    x = y.clamp(0, 1)
    for i in count(1):
        denoised = denoise(prior, x, denoiser_sigma, f"iteration {i}")
        gradient = precision * H.adjoint(H(x) - y) + weight * (x - denoised)
        x = (x - step * gradient).clamp(0, 1)
        yield x


def red_luminance(problem: InverseProblem, prior: Prior, *, iterations: int = 100, **options: float) -> Tensor:
    """RED on the luminance of a colour problem, as in the paper -> (B, 3, H, W); the arguments are those of `red`."""
    return _last(red_luminance_steps(problem, prior, **options), iterations)


def red_luminance_steps(problem: InverseProblem, prior: Prior, **options: float) -> Iterator[Tensor]:
    """The same as a generator; the arguments are those of `red_steps`.

    The colours are those of y: YCbCr differs from RGB by a linear map in which a change of Y moves R, G and B alike.
    """
    recipe = problem.operator.recipe
    if recipe is None or problem.operator.image_shape[0] != 3:
        raise ValueError("RED on the luminance needs a problem of make_operator for images of three channels")
    operator = make_operator(recipe.name, (1, *recipe.image_shape[1:]), **recipe.options)
    if problem.operator.measurement_shape != (3, *operator.measurement_shape[1:]):
        raise ValueError(f"RED on the luminance needs an operator that treats all channels alike, unlike {recipe.name}")
    grey = InverseProblem(operator, luminance(problem.y), problem.sigma_0, first_image=problem.first_image)
    for restored in red_steps(grey, GreyPrior(prior), **options):  # pyright: ignore[reportArgumentType]
        yield (problem.y + restored - grey.y).clamp(0, 1)


def _last(steps: Iterator[Tensor], iterations: int) -> Tensor:
    check_count("iterations", iterations)
    return next(islice(steps, iterations - 1, None))


class GreyPrior(Prior):
    """A colour denoiser for grey images: it is shown three equal channels.

    Noise of level sigma in three equal channels has sqrt(3) times that level along the one direction it has, the grey
    axis of the colours, and that is what a denoiser for noise in all directions must be told.
    """

    def __init__(self, colour: Prior) -> None:
        super().__init__()
        self.colour = colour

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        return denoised_copy(self.colour, x.expand(-1, 3, -1, -1), math.sqrt(3) * sigma).mean(1, keepdim=True)


def _check(problem: InverseProblem, weight: float, denoiser_sigma: float) -> None:
    if problem.sigma_0 == 0:
        raise ValueError("RED weighs the measurement by its noise: sigma_0 must be above 0")
    if problem.operator.measurement_shape != problem.operator.image_shape:
        raise ValueError("RED starts from y, which must be an image of the full size: it denoises and deblurs only")
    if not (weight >= 0 and denoiser_sigma > 0):
        raise ValueError(f"RED needs a weight >= 0 and a denoiser_sigma > 0, not {weight} and {denoiser_sigma}")
