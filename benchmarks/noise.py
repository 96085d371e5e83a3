"""How far `--sigma auto` can be trusted: known noise on crops of the photographs that scikit-image brings along.

python benchmarks/noise.py
"""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from skimage.data import astronaut, camera, chelsea, coffee

from measure import print_table, store
from snips.operators import Denoising
from snips.posing.noise import estimate_noise

PHOTOGRAPHS = {"astronaut": astronaut, "camera": camera, "chelsea": chelsea, "coffee": coffee}
PLACES = {64: 3, 256: 2}  # side of the crops -> how many along each axis
SIGMAS = (0.02, 0.05, 0.1)
CLOSE = 0.2  # relative error


def main() -> None:
    rows = [row for name in PHOTOGRAPHS for side in PLACES for row in crops(name, side)]
    trusted = [row for row in rows if not row["doubt"]]
    errors = [abs(row["ratio"] - 1) for row in trusted]
    found = {
        "estimates": len(rows),
        "trusted": len(trusted),
        "close": sum(error <= CLOSE for error in errors),
        "largest_ratio": max(row["ratio"] for row in trusted),
        "smallest_ratio": min(row["ratio"] for row in trusted),
    }
    print_table("sigma auto", list(found), [list(found.values())])
    store("noise", {**found, "close_means": CLOSE, "rows": rows})


def crops(name: str, side: int) -> list[dict[str, object]]:
    """Estimates of each sigma on each crop of one photograph, as `ratio` to the truth."""
    pixels = torch.from_numpy(np.atleast_3d(PHOTOGRAPHS[name]()).astype(np.float32) / 255).permute(2, 0, 1)
    rows, random = [], torch.Generator().manual_seed(0)
    tops, lefts = (np.linspace(0, length - side, PLACES[side]).astype(int) for length in pixels.shape[1:])
    for top, left, sigma in product(tops, lefts, SIGMAS):
        crop = pixels[None, :, top : top + side, left : left + side]
        y = crop + sigma * torch.randn(crop.shape, generator=random)
        found = estimate_noise(Denoising(tuple(crop.shape[1:])), y)
        place = {"photograph": name, "side": side, "top": int(top), "left": int(left), "sigma": sigma}
        rows.append({**place, "ratio": found.sigma_0 / sigma, "doubt": found.doubt})
    return rows


if __name__ == "__main__":
    main()
