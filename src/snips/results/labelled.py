"""Results with named axes, for those who work with xarray."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from snips.extras import installing

if TYPE_CHECKING:
    from snips.restoration import Restoration

AXES = ("image", "channel", "row", "column")


def to_dataset(restoration: Restoration) -> Any:
    """An xarray.Dataset of samples, mean, std and truth; settings are JSON in its attributes."""
    try:
        import xarray
    except ImportError as error:
        raise ValueError(f"to_xarray() needs xarray: {installing('xarray')}") from error
    problem = restoration.problem
    images = {"mean": restoration.mean}
    if len(restoration.samples) > 1:
        images["std"] = restoration.std
    if problem.truth is not None:
        images["truth"] = problem.truth
    variables = {name: (AXES, value.detach().cpu().numpy()) for name, value in images.items()}
    first = problem.first_image
    return xarray.Dataset(
        {"samples": (("sample", *AXES), restoration.to_numpy()), **variables},
        coords={"image": range(first, first + len(problem))},
        attrs={"sigma_0": problem.sigma_0, "settings": json.dumps(restoration.settings)},
    )
