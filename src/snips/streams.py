"""Random numbers that depend on the image and the sample alone, never on how the work is split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Chain(NamedTuple):
    """One sample of one image."""

    image: int
    sample: int


class Streams:
    """One random stream for each chain, keyed by (seed, image, sample).

    Numbers are drawn on the CPU, so a seed means the same on every device. `state` and `restore` let a run go on
    exactly where it stopped.
    """

    def __init__(self, seed: int, chains: Sequence[Chain]) -> None:
        self.generators = [torch.Generator().manual_seed(stream_key(seed, *chain)) for chain in chains]

    def normal(self, like: Tensor) -> Tensor:
        """Standard normal numbers in the shape (chains, ...), dtype and device of `like`."""
        return self._filled(Tensor.normal_, like)

    def uniform(self, like: Tensor) -> Tensor:
        """Numbers from U[0, 1), likewise."""
        return self._filled(Tensor.uniform_, like)

    def _filled(self, fill: Callable[..., Tensor], like: Tensor) -> Tensor:
        out = torch.empty(like.shape, dtype=like.dtype)
        for row, generator in zip(out.unbind(), self.generators, strict=True):
            fill(row, generator=generator)
        return out.to(like.device)

    def state(self) -> Tensor:
        """All that is needed to continue the streams: (chains, bytes), uint8."""
        return torch.stack([generator.get_state() for generator in self.generators])

    def restore(self, state: Tensor) -> None:
        for row, generator in zip(state, self.generators, strict=True):
            generator.set_state(row.clone())  # set_state does not accept a view


def stream_key(seed: int, image: int, sample: int) -> int:
    """A 32-bit key, as torch's CPU generator uses 32 bits; samples of one image never share a key."""
    hashed = np.random.SeedSequence([checked_seed(seed), image]).generate_state(1)[0]
    return (int(hashed) + sample) % 2**32


def checked_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**63:
        raise ValueError(f"the seed must be a whole number from 0 to 2^63 - 1, but is {seed!r}")
    return int(seed)
