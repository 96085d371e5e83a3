"""The kinds of networks that can be trained, and what differs between them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from snips.priors.base import Prior
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.ncsnv2_files import ARCHITECTURES, load_ncsnv2, save_ncsnv2
from snips.priors.ncsnv2_files import FORMAT as NCSNV2_FORMAT
from snips.priors.unet import FORMAT as UNET_FORMAT
from snips.priors.unet import UNet, UNetConfig, load_unet, save_unet
from snips.training.loss import NoiseLevels, denoising_loss, label_levels, score_matching_loss

FIT_IMAGES, FIT_PIXELS = 4096, 4096 * 64 * 64  # for the U-Net's linear branch: at most, and of larger crops fewer


@dataclass(frozen=True)
class NCSNv2Config:
    """The paper's network, with the sigmas of its architecture."""

    architecture: str = NCSNv2.name  # or that of NCSNv2Deeper
    ngf: int = 128
    channels: tuple[int, ...] = (3,)  # exactly one count


Config = UNetConfig | NCSNv2Config
Draw = Callable[[int], Tensor]  # a number of training images -> (n, C, H, W)


@dataclass(frozen=True)
class Kind:
    """How networks of one kind are made, trained and written."""

    format: str
    build: Callable[[Any], Prior]  # from the config, before training
    fit: Callable[[Any, int, Draw], None]  # what is set from images instead of learned, for one number of channels
    draw_sigmas: Callable[[Any, NoiseLevels, int, torch.Generator], Tensor]
    loss: Callable[[Any, Tensor, Tensor, Tensor], Tensor]  # of network, clean images, noise, sigmas
    save: Callable[[Any, Path, dict[str, Any]], None]
    load: Callable[[str], Prior]
    config: Callable[[Any], Config]  # of a network


def kind_of(config: Config) -> Kind:
    return KINDS[type(config)]


def signature(config: Config) -> tuple[str, str]:
    """What a checkpoint must agree in."""
    return kind_of(config).format, json.dumps(asdict(config))


def _fit_unet(model: UNet, channels: int, draw: Draw) -> None:
    pixels = draw(1)[0, 0].numel()
    model.fit_linear(draw(min(FIT_IMAGES, max(64, FIT_PIXELS // pixels))))


def _build_ncsnv2(config: NCSNv2Config) -> NCSNv2:
    networks = {network.name: network for network in ARCHITECTURES}
    if config.architecture not in networks or len(config.channels) != 1:
        raise ValueError(f"an NCSNv2 is one of {', '.join(networks)} and takes one number of channels, not {config}")
    return networks[config.architecture](config.ngf, config.channels[0])


KINDS: dict[type, Kind] = {
    UNetConfig: Kind(
        format=UNET_FORMAT,
        build=UNet,
        fit=_fit_unet,
        draw_sigmas=lambda model, levels, count, random: levels.draw(count, random),
        loss=denoising_loss,
        save=save_unet,
        load=load_unet,
        config=lambda model: model.config,
    ),
    NCSNv2Config: Kind(
        format=NCSNV2_FORMAT,
        build=_build_ncsnv2,
        fit=lambda model, channels, draw: None,
        draw_sigmas=lambda model, levels, count, random: label_levels(model.sigmas, count, random),
        loss=score_matching_loss,
        save=save_ncsnv2,
        load=load_ncsnv2,
        config=lambda model: NCSNv2Config(type(model).name, model.ngf, (model.channels,)),
    ),
}
