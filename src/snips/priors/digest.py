"""Which weights a prior has: results of other weights are other results."""

from __future__ import annotations

import hashlib

import torch

from snips.priors.base import Prior


def weights_digest(prior: Prior) -> str:
    """Of the kind of prior and all its parameters and buffers, whatever name or file they came from."""
    digest = hashlib.sha256(type(prior).__name__.encode())
    for name, value in sorted([*prior.named_parameters(), *prior.named_buffers()]):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
