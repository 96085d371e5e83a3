"""What tiles change: the `natural` prior on a noisy photograph, whole and in tiles.

    python benchmarks/tiles.py [--side 128] [--crop 256]

The photograph is the one that scikit-image brings along. Beside the margin in use there is a narrow one, so that the
figures can be seen to depend on it.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from skimage.data import astronaut

from measure import print_table, store
from snips import load_prior
from snips.priors.tiled import MARGIN, TiledPrior
from snips.running.tiling import LEVELS

NARROW = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--crop", type=int, default=256)
    args = parser.parse_args()
    pixels = astronaut()[: args.crop, 128 : 128 + args.crop].astype(np.float32) / 255
    image = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    noise = torch.randn(image.shape, generator=torch.Generator().manual_seed(0))
    prior, rows = load_prior("natural"), []
    for margin in (MARGIN, NARROW, 0):
        for sigma in LEVELS:
            deviation = TiledPrior(prior, args.side, margin).deviation(image + sigma * noise, sigma)
            rows.append({"margin": margin, "sigma": sigma, "deviation": deviation})
    print_table(
        f"tiles of {args.side} on {args.crop} x {args.crop} pixels, root mean square change of pixels in [0, 1]",
        ["margin", "sigma", "deviation"],
        [[row["margin"], row["sigma"], row["deviation"]] for row in rows],
    )
    store("tiles", {"side": args.side, "crop": args.crop, "rows": rows})


if __name__ == "__main__":
    main()
