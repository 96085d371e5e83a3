"""`python -m snips.training --preset faces --data DATA --out RUN --cache CACHE`; again, it resumes."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import torch

from snips.training.loop import train
from snips.training.presets import NETWORKS, PRESETS, with_network

_OVERRIDES = {
    "lr": float,
    "batch": int,
    "steps": int,
    "cooldown": int,
    "seed": int,
    "minutes": float,
    "crop": int,
    "prepare": str,
    "optimiser": str,
    "warmup": int,
    "init": str,
    "precision": str,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m snips.training", description=__doc__)
    parser.add_argument("--preset", choices=list(PRESETS), default="custom")
    parser.add_argument("--network", choices=NETWORKS, default="unet")
    for name in ("data", "out", "cache"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--threads", type=int, default=1)
    for name in ("compile", "tensorboard"):
        parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=None)
    for name, kind in _OVERRIDES.items():
        parser.add_argument(f"--{name}", type=kind)
    return parser


def main() -> int:
    arguments = vars(_parser().parse_args())
    torch.set_num_threads(arguments.pop("threads"))
    preset = PRESETS[arguments.pop("preset")]
    settings = preset(*(arguments.pop(name) for name in ("data", "out", "cache")))
    settings = with_network(settings, arguments.pop("network"))
    try:
        train(replace(settings, **{name: value for name, value in arguments.items() if value is not None}))
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
