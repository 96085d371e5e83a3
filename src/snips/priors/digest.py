"""Which weights a prior has: results of other weights are other results."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from snips.priors.base import Prior


def weights_digest(prior: Prior) -> str:
    """Of the kind of prior and all its parameters and buffers, whatever name or file they came from.

    Products in lower precision are of the same weights.
    """
    prior = prior.with_stored_weights()
    tensors = dict([*prior.named_parameters(), *prior.named_buffers()])
    return tensors_digest(tensors, type(prior).__name__)[:16]


def tensors_digest(tensors: Mapping[str, Tensor], what: str = "") -> str:
    """Of names and values; a file that tells it can be checked for damage."""
    digest = hashlib.sha256(what.encode())
    for name, value in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
