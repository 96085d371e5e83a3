"""Which prior to take for an image of some shape, and what to expect of one that was made for another."""

from __future__ import annotations

import os
from typing import NamedTuple

from snips.priors.base import Prior
from snips.priors.registry import BUNDLED, GAUSSIAN, load_prior
from snips.priors.stationary import StationaryGaussian
from snips.priors.unet import UNet

PLAIN = "a plain model of photographs: smooth results, few details"


class Choice(NamedTuple):
    """A prior by name, and the reason in words."""

    name: str
    reason: str


def choose_prior(image_shape: tuple[int, int, int]) -> Choice:
    """The bundled prior for images (C, H, W): one of exactly this size, else one for any, else a Gaussian."""
    channels, *size = image_shape
    fitting = [prior for prior in BUNDLED.values() if channels in prior.channels and prior.size in (tuple(size), None)]
    for prior in sorted(fitting, key=lambda prior: prior.size is None):
        if prior.file.is_file():
            kind = "this size" if prior.size is not None else "any size"
            return Choice(prior.name, f"{prior.summary}, {kind}")
    missing = "".join(f"; {prior.name} would fit, but is not installed" for prior in fitting)
    return Choice(GAUSSIAN, f"{PLAIN}{missing}")


def takes_grey(prior: Prior | str | os.PathLike[str] | None) -> bool:
    """Whether a prior that was asked for denoises images of one channel; True where none was asked for."""
    if isinstance(prior, str) and prior in BUNDLED:
        return 1 in BUNDLED[prior].channels
    if prior is None or prior == GAUSSIAN:
        return True
    found = load_prior(prior) if isinstance(prior, (str, os.PathLike)) else prior
    return isinstance(found, UNet) and 1 in found.config.channels  # of others nobody knows


def prior_for(name: str | os.PathLike[str], image_shape: tuple[int, int, int]) -> Prior:
    """`gaussian`, a bundled prior, or a file, checked against the images it shall be used for."""
    if name == GAUSSIAN:
        prior = StationaryGaussian.natural(image_shape)
        prior.name = GAUSSIAN
        return prior
    if not isinstance(name, (str, os.PathLike)):
        raise ValueError(
            f"prior takes a name, a file or a Prior, not a {type(name).__name__}: "
            "snips.as_prior makes one of a denoiser or a network"
        )
    prior = load_prior(name)
    if isinstance(prior, UNet) and image_shape[0] not in prior.config.channels:
        known = " or ".join(map(str, prior.config.channels))
        raise ValueError(
            f"the prior {name} takes images of {known} channels, not {image_shape[0]}: leave out the prior to have "
            "a fitting one chosen"
        )
    return prior


def misfit(prior: Prior, image_shape: tuple[int, int, int]) -> str:
    """What will happen where a prior was made for images of another size; empty where it fits."""
    size = prior.config.size if isinstance(prior, UNet) else None
    if size is None or size == tuple(image_shape[1:]):
        return ""
    made, given = ("{1} x {0}".format(*pair) for pair in (size, image_shape[1:]))
    return (
        f"the prior {prior.name} was made for aligned images of {made} pixels, this one has {given}: it will run, but "
        "it knows such detail only locally, so expect invented texture and a std map that is too sure of itself; "
        "scale the image to that size, or choose another prior"
    )
