"""The recipes of the bundled priors, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from snips.names import unknown_name
from snips.priors.ncsnv2 import NCSNv2Deeper
from snips.priors.ncsnv2_files import ARCHITECTURES
from snips.priors.unet import FORMAT, UNetConfig, load_unet, parse_config
from snips.training.checkpoint import read_checkpoint
from snips.training.networks import NCSNv2Config
from snips.training.settings import CHECKPOINT, TrainSettings


def faces(data: str, out: str, cache: str) -> TrainSettings:
    """CelebA at 64 x 64, the official training split; `data` holds celeba/img_align_celeba."""
    folder = Path(data) / "celeba" / "img_align_celeba"
    network = UNetConfig(size=(64, 64), encoder=(3, 6, 10), decoder=(4, 8, 10), attention=True)
    return TrainSettings((str(folder),), out, cache, prepare="celeba64", network=network)


def natural(data: str, out: str, cache: str) -> TrainSettings:
    """Photographs of any content and size, grey or colour; `data` holds bsds500, scenes and bedrooms."""
    folders = tuple(str(Path(data) / name) for name in ("bsds500/train", "scenes/train", "bedrooms"))
    network = UNetConfig(channels=(1, 3))
    return TrainSettings(folders, out, cache, network=network, mix=(1, 3, 3))


def custom(data: str, out: str, cache: str) -> TrainSettings:
    """Crops from the images of one folder."""
    return TrainSettings((data,), out, cache)


PRESETS: dict[str, Callable[[str, str, str], TrainSettings]] = {
    "faces": faces,
    "natural": natural,
    "custom": custom,
}


def with_channels(settings: TrainSettings, channels: tuple[int, ...]) -> TrainSettings:
    """The same for grey images (1), for colours (3), or for both."""
    kinds = tuple(sorted(set(channels)))
    if kinds not in ((1,), (3,), (1, 3)):
        raise ValueError(f"--channels takes 1, 3 or 1,3, not {','.join(map(str, channels))}")
    return replace(settings, network=replace(settings.network, channels=kinds), mix=())


def with_network_of(settings: TrainSettings, weights: str) -> TrainSettings:
    """The same for the network of given weights, to go on with them on other images.

    A run that is under way needs them no longer: its checkpoint tells.
    """
    checkpoint = Path(settings.out) / CHECKPOINT
    if checkpoint.exists() and not Path(weights).exists():
        stored = read_checkpoint(checkpoint)
        if stored.get("format") != FORMAT:
            raise ValueError(f"{checkpoint} is of another network ({stored.get('format')}): choose another --out")
        return replace(settings, network=parse_config(stored["config"]))
    return replace(settings, network=load_unet(weights).config)


NETWORKS = ("unet", *(network.name for network in ARCHITECTURES))


def with_network(settings: TrainSettings, name: str) -> TrainSettings:
    """The same data for another network; an NCSNv2 gets its authors' batch and learning rate (Song and Ermon 2020)."""
    if name not in NETWORKS:
        raise ValueError(unknown_name("network", name, list(NETWORKS)))
    if name == "unet":
        return settings
    crop = 128 if name == NCSNv2Deeper.name else 64  # what its authors trained it for
    # A call takes long on a CPU: with few held-out images a checkpoint takes seconds, not minutes.
    network = NCSNv2Config(name)
    return replace(settings, network=network, mix=(), batch=128, chunk=4, lr=1e-4, crop=crop, held_out=8)
