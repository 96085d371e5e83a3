"""Equal-time trials of the denoiser: what gives the most PSNR per second of one CPU core, on CelebA faces.

    python benchmarks/denoiser_trials.py --data FOLDER --cache CACHE --minutes 7 NAME [NAME ...]

Each trial trains for the same CPU time; the learning rate falls over its second half.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, replace

import torch
from torch import nn

from measure import RESULTS, store
from snips.priors.unet import UNet, UNetConfig
from snips.training.data import Crops, ImageSet, held_out_crops
from snips.training.image_files import load_images
from snips.training.loop import TrainSettings, start, train_step
from snips.training.loss import NoiseLevels, psnr_table
from snips.training.record import averaged

SIGMAS = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)
DEEP = UNetConfig(size=(64, 64))
LIGHT = replace(DEEP, encoder=(2, 2, 2), decoder=(2, 2, 2))
CONV = replace(DEEP, block="conv", encoder=(1, 1, 1), decoder=(1, 1, 1))


@dataclass(frozen=True)
class Trial:
    network: UNetConfig = LIGHT
    changes: tuple[tuple[str, object], ...] = ()  # of the settings


def trial(network: UNetConfig = LIGHT, **changes: object) -> Trial:
    return Trial(network, tuple(changes.items()))


TRIALS = {
    "depthwise": trial(),
    "conv": trial(CONV),
    "depthwise_deep": trial(DEEP),
    "depthwise_fast_lr": trial(lr=1.6e-3),
    "depthwise_batch_4": trial(batch=4),
    "depthwise_batch_32": trial(batch=32),
    "depthwise_even_levels": trial(levels=NoiseLevels((0.002, 40.0), (1.0,))),
    "depthwise_bfloat16": trial(precision="bfloat16"),
    "depthwise_muon_16": trial(optimiser="muon", batch=16),
    "depthwise_attention": trial(replace(LIGHT, attention=True)),
    "depthwise_wide": trial(replace(LIGHT, widths=(128, 256, 320))),
    "depthwise_full_resolution": trial(
        replace(LIGHT, patch=1, widths=(48, 96, 192, 256), encoder=(1, 2, 2, 2), decoder=(1, 2, 2, 2))
    ),
}


def run_trial(chosen: Trial, images: ImageSet, held: ImageSet, minutes: float) -> dict[str, object]:
    settings = TrainSettings(
        folders=(),
        out="/nonexistent",
        cache="",
        network=chosen.network,
        averages=(30.0,),
        warmup=100,
    )
    settings = replace(settings, **dict(chosen.changes))
    crops = Crops(images, 64)
    state = start(settings, crops)
    seconds = _seconds_per_step(settings, crops)
    steps = int(60 * minutes / seconds)
    settings = replace(settings, steps=steps, cooldown=steps // 2)
    while state.step < steps:
        train_step(state, settings, crops)
    model = averaged(state, state.averages[0])
    table = psnr_table(model, held_out_crops(held, 64, 64, 3), SIGMAS)
    return {
        "psnr": table,
        "images": steps * settings.batch,
        "images_per_second": settings.batch / seconds,
        "parameters": sum(p.numel() for p in model.parameters()),
        "macs": count_macs(model),
        "minutes": minutes,
    }


def _seconds_per_step(settings: TrainSettings, crops: Crops, count: int = 12) -> float:
    """CPU seconds of one step, measured on a state of its own."""
    state = start(settings, crops)
    for _ in range(3):
        train_step(state, settings, crops)
    begin = time.process_time()
    for _ in range(count):
        train_step(state, settings, crops)
    return (time.process_time() - begin) / count


def count_macs(model: UNet) -> int:
    """Multiplications of the convolutions for one 3 x 64 x 64 image."""
    counts: list[int] = []

    def count(layer: nn.Module, _: object, output: torch.Tensor) -> None:
        counts.append(output.shape[-1] * output.shape[-2] * layer.get_parameter("weight").numel())

    hooks = [m.register_forward_hook(count) for m in model.modules() if isinstance(m, nn.Conv2d)]
    with torch.no_grad():
        model.denoise(torch.rand(1, 3, 64, 64), 0.1)
    for hook in hooks:
        hook.remove()
    return sum(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(TRIALS), help=", ".join(TRIALS))
    parser.add_argument("--data", required=True, help="CelebA's folder img_align_celeba")
    parser.add_argument("--cache", required=True)
    parser.add_argument("--minutes", type=float, default=7.0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    images, held = load_images([arguments.data], "celeba64", arguments.cache)
    for name in arguments.names:
        _store(name, run_trial(TRIALS[name], images, held, arguments.minutes))


def _store(name: str, result: dict[str, object]) -> None:
    """Beside the trials that were run before."""
    file = RESULTS / "denoiser_trials.json"
    store("denoiser_trials", (json.loads(file.read_text())["results"] if file.exists() else {}) | {name: result})
    psnr = " ".join(f"{value:5.2f}" for value in result["psnr"].values())  # pyright: ignore
    print(f"{name:18s} {psnr}  {result['images']:6d} images, {result['macs'] / 1e6:.0f} MMAC", flush=True)  # pyright: ignore


if __name__ == "__main__":
    main()
