"""A measurement with its operator and noise level."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import SupportsIndex

import torch
from torch import Tensor

from snips.buffers import in_own_memory
from snips.operators import LinearOperator
from snips.streams import Chain, Streams


@dataclass(frozen=True, eq=False)
class InverseProblem:
    """y = H x + z, z ~ N(0, sigma_0^2 I): the measurements of one or more images by one operator.

    Args:
        operator: H. Where its dtype or device is another than y's, a copy that matches is used.
        y: (B, *operator.measurement_shape).
        sigma_0: the standard deviation of the noise, in units of pixel values in [0, 1].
        truth: the clean images (B, C, H, W), where they are known.
        first_image: the index of the first image in a larger collection; random streams are keyed by it.
    """

    operator: LinearOperator
    y: Tensor
    sigma_0: float
    truth: Tensor | None = None
    first_image: int = 0

    def __post_init__(self) -> None:
        check_tensor("y", self.y, self.operator.measurement_shape)
        object.__setattr__(self, "y", in_own_memory(self.y))
        object.__setattr__(self, "sigma_0", checked_sigma_0(self.sigma_0))
        if self.truth is not None:
            check_tensor("truth", self.truth, self.operator.image_shape)
            if len(self.truth) != len(self.y):
                raise ValueError(f"there are {len(self.y)} measurements but {len(self.truth)} true images")
        like = self.operator.like
        if like.dtype != self.y.dtype or like.device != self.y.device:
            matching = copy.deepcopy(self.operator).to(device=self.y.device, dtype=self.y.dtype)
            object.__setattr__(self, "operator", matching)

    @classmethod
    def simulate(cls, operator: LinearOperator, x: Tensor, sigma_0: float, seed: int = 0) -> InverseProblem:
        """Measure the clean images x (B, C, H, W) with noise; image b has a noise stream of its own."""
        check_tensor("x", x, operator.image_shape)
        clean = cls(operator, x.new_zeros(len(x), *operator.measurement_shape), sigma_0, truth=x)
        exact = clean.operator(x)
        # sample -1 keeps the measurement noise apart from the streams of the samplers
        noise = Streams(seed, [Chain(image, -1) for image in range(len(x))]).normal(exact)
        return cls(clean.operator, exact + clean.sigma_0 * noise, clean.sigma_0, truth=x)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, images: SupportsIndex | slice) -> InverseProblem:
        """One image or some neighbours; they keep their random streams."""
        if not isinstance(images, slice):
            first = range(len(self))[images]  # beyond the last an IndexError, which also ends a loop over the images
            images = slice(first, first + 1)
        start, stop, step = images.indices(len(self))
        if step != 1 or stop <= start:
            raise ValueError(f"a part of a problem must hold one or more neighbours of its {len(self)} images")
        truth = None if self.truth is None else self.truth[start:stop]
        return InverseProblem(self.operator, self.y[start:stop], self.sigma_0, truth, self.first_image + start)


def check_tensor(name: str, value: Tensor, shape: tuple[int, ...]) -> None:
    """A floating-point tensor of shape (B, *shape) with finite entries, or a ValueError."""
    if not isinstance(value, Tensor) or value.dtype not in (torch.float32, torch.float64):
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{name} must be a tensor of float32 or float64, not {kind}")
    if value.ndim != len(shape) + 1 or tuple(value.shape[1:]) != tuple(shape) or len(value) == 0:
        expected = ", ".join(str(n) for n in ("batch", *shape))
        raise ValueError(f"{name} has shape {tuple(value.shape)}; the operator needs ({expected})")
    if not torch.isfinite(value).all():
        raise ValueError(f"{name} has NaN or Inf in {int((~torch.isfinite(value)).sum())} places: remove them first")


def checked_sigma_0(sigma_0: float) -> float:
    try:
        value = float(sigma_0)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"sigma_0 must be a finite number of at least 0, but is {sigma_0!r}")
    return value
