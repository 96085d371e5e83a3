"""as_prior(): denoisers, score and diffusion networks of others as priors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from snips.names import unknown_name
from snips.priors.base import Prior
from snips.priors.stationary import StationaryGaussian

Network = Callable[..., Any]

# From a network's answer at the noisy image x to the denoised one, all in the network's own units.
KINDS: dict[str, Callable[[Network, Tensor, float, float], Any]] = {
    "denoiser": lambda f, x, sigma, told: f(x, told),
    "blind": lambda f, x, sigma, told: f(x),
    "score": lambda f, x, sigma, told: x + sigma**2 * f(x, told),
    "noise": lambda f, x, sigma, told: x - sigma * f(x, told),  # of standard deviation 1
}


def as_prior(
    obj: Any,
    *,
    kind: str | None = None,
    scheduler: Any = None,
    value_range: tuple[float, float] | None = None,
    sigma_scale: float | None = None,
    sigma_range: tuple[float, float] | None = None,
    sigmas: Sequence[float] | Tensor | None = None,
) -> Prior:
    """A denoiser of any kind as a Prior.

    Args:
        obj: a function or nn.Module `(x, sigma) -> denoised` (deepinv's are), a blind one `(x) -> denoised`, a score or
            noise network, or a diffusers UNet2DModel.
        kind: "denoiser", "blind", "score" or "noise"; by default "blind" where only x is taken, else "denoiser".
        scheduler: of a diffusers network; it knows the noise levels and what the network predicts.
        value_range: what black and white are for the network, such as (-1, 1) or (0, 255); (0, 1) unless given.
        sigma_scale: what the network is told is sigma, in units of value_range, times this: 255 for networks that
            take images in [0, 1] but sigma from 0 to 255.
        sigma_range: the noise levels it was made for, for pixels in [0, 1]. Below, the score of the lowest one is used;
            above, the linear estimate for photographs.
        sigmas: of a score network that is told the index of a noise level: the levels, for pixels of value_range.

    A network stays its owner's: trainable, and in the mode that it was in.
    """
    units = {"kind": kind, "value_range": value_range, "sigma_scale": sigma_scale, "sigma_range": sigma_range}
    if isinstance(obj, Prior):
        _refuse({**units, "scheduler": scheduler, "sigmas": sigmas}, "a prior of this package knows its own units")
        return obj
    if not callable(obj):
        raise ValueError(
            f"a {type(obj).__name__} cannot denoise: give a function or an nn.Module (x, sigma) -> denoised"
        )
    if scheduler is not None or type(obj).__name__ == "UNet2DModel":
        from snips.integrations.diffusers import DiffusersPrior

        _refuse({**units, "sigmas": sigmas}, "a diffusers network takes [-1, 1] and its scheduler's noise levels")
        return DiffusersPrior(obj, scheduler)
    if kind is not None and kind not in KINDS:
        raise ValueError(unknown_name("kind of denoiser", kind, list(KINDS)))
    value_range = value_range or (0.0, 1.0)
    if sigmas is not None:
        if kind not in (None, "score"):
            raise ValueError(f"sigmas= are the levels of a score network, not of kind={kind!r}: leave one of them out")
        _refuse({"sigma_scale": sigma_scale, "sigma_range": sigma_range}, "sigmas= say what the network is told")
        return LabelledScore(obj, sigmas, value_range)
    kind = kind or ("blind" if takes_only_x(obj) else "denoiser")
    return ForeignDenoiser(obj, kind, value_range, 1.0 if sigma_scale is None else sigma_scale, sigma_range)


def _refuse(options: dict[str, Any], reason: str) -> None:
    """Options that would have no effect are mistakes."""
    if given := [name for name, value in options.items() if value is not None]:
        raise ValueError(f"{reason}: leave out {', '.join(given)}")


class ForeignDenoiser(Prior):
    """A network of somebody else's, in its own units; see `as_prior` for the arguments."""

    def __init__(
        self,
        network: Network,
        kind: str = "denoiser",
        value_range: tuple[float, float] = (0.0, 1.0),
        sigma_scale: float = 1.0,
        sigma_range: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        black, white = value_range
        lowest, highest = sigma_range or (0.0, float("inf"))
        if not (white > black and sigma_scale > 0 and highest > lowest >= 0):
            raise ValueError(
                f"need rising ranges and a positive scale, not {value_range}, {sigma_scale}, {sigma_range}"
            )
        self.network, self.kind = network, kind
        self.black, self.contrast, self.sigma_scale = float(black), float(white - black), float(sigma_scale)
        self.lowest, self.highest = float(lowest), float(highest)
        self.name = getattr(network, "__name__", "") or type(network).__name__

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        levels = torch.as_tensor(sigma).flatten().tolist()
        if len(set(levels)) == 1:
            return self._at_one_level(x, levels[0])
        if len(levels) != len(x):
            raise ValueError(f"there are {len(levels)} noise levels for {len(x)} images: give one, or one for each")
        return torch.cat([self._at_one_level(x[i : i + 1], level) for i, level in enumerate(levels)])

    def _at_one_level(self, x: Tensor, sigma: float) -> Tensor:
        if sigma > self.highest:
            return StationaryGaussian.natural((x.shape[1], x.shape[2], x.shape[3])).to(x).denoise(x, sigma)
        if sigma < self.lowest:  # the score hardly changes any more, so that of the lowest level
            return x + (sigma / self.lowest) ** 2 * (self._at_one_level(x, self.lowest) - x)
        inside = self._like_network(self.black + self.contrast * x)
        out = checked_output(self._answer(inside, sigma), inside, self.name)
        return ((out - self.black) / self.contrast).to(x.dtype)

    def _answer(self, inside: Tensor, sigma: float) -> Any:
        with evaluating(self.network):
            try:
                return self._denoise_inside(inside, self.contrast * sigma)
            except Exception as error:  # whatever somebody else's network does
                failed = f"{self.name} failed for images {tuple(inside.shape)} at sigma = {sigma:.4g}"
                raise ValueError(f"{failed}: {type(error).__name__}: {error}") from error

    def _denoise_inside(self, x: Tensor, sigma: float) -> Any:
        """In the network's units of brightness."""
        return KINDS[self.kind](self.network, x, sigma, sigma * self.sigma_scale)

    def _like_network(self, x: Tensor) -> Tensor:
        """In the precision of its weights; the device is the caller's affair."""
        weights = next(self.parameters(), None)
        if weights is None:
            return x
        if weights.device != x.device:
            raise ValueError(
                f"device check: {self.name} is on {weights.device}, the image on {x.device}: move one of them"
            )
        return x.to(weights.dtype) if weights.is_floating_point() else x


class LabelledScore(ForeignDenoiser):
    """A noise-conditional score network (Song and Ermon 2019) that is told the index of a noise level.

    Between two of its levels the nearest network is used with sigma_i score = -E[noise], which hardly depends on it.
    """

    levels: Tensor

    def __init__(self, network: Network, sigmas: Sequence[float] | Tensor, value_range: tuple[float, float]) -> None:
        levels = torch.as_tensor(sigmas, dtype=torch.float64).flatten().cpu()
        if not len(levels) or not (torch.isfinite(levels).all() and (levels > 0).all()):
            raise ValueError("the noise levels of a score network must be positive and finite")
        contrast = value_range[1] - value_range[0]
        made_for = float(levels.min()) / contrast, float(levels.max()) / contrast
        super().__init__(network, "score", value_range, sigma_range=made_for if made_for[0] < made_for[1] else None)
        self.register_buffer("levels", levels, persistent=False)

    def _denoise_inside(self, x: Tensor, sigma: float) -> Any:
        index = int((self.levels.log() - torch.tensor(sigma).log()).abs().argmin())
        labels = torch.full((len(x),), index, dtype=torch.long, device=x.device)
        return x + sigma * float(self.levels[index]) * self.network(x, labels)


@contextmanager
def evaluating(network: Network) -> Iterator[None]:
    """A module as in use, without dropout and the like; afterwards in the mode that its owner left it in."""
    training = [part for part in network.modules() if part.training] if isinstance(network, nn.Module) else []
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def checked_output(out: Any, x: Tensor, name: str) -> Tensor:
    """What a denoiser returned, or one line that names what it changed."""
    if not isinstance(out, Tensor):
        raise ValueError(f"output check: {name} returned a {type(out).__name__}, not a tensor")
    for what, before, after in (
        ("shape", tuple(x.shape), tuple(out.shape)),
        ("dtype", x.dtype, out.dtype),
        ("device", x.device, out.device),
    ):
        if before != after:
            raise ValueError(
                f"{what} check: {name} must keep the {what} of the image, but turned {before} into {after}"
            )
    return out


def takes_only_x(network: Network) -> bool:
    """Whether a function or module has a single positional argument."""
    function = network.forward if isinstance(network, nn.Module) else network
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return False
    kinds = [p.kind for p in parameters]
    positional = [k for k in kinds if k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    return len(positional) == 1 and inspect.Parameter.VAR_POSITIONAL not in kinds
