"""Reference networks (ngf 8, made with the authors' architecture) and files in the format the authors publish."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from snips.priors.ncsnv2 import NCSNv2, NCSNv2Deeper

KINDS = {"ncsnv2": NCSNv2, "ncsnv2deeper": NCSNv2Deeper}


def reference(name: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The weights, and `input`, `labels`, `output`."""
    tensors = load_file(Path(__file__).parent / "data" / f"{name}_ngf8_reference.safetensors")
    weights = {k.removeprefix("weights."): v for k, v in tensors.items() if k.startswith("weights.")}
    return weights, {k: tensors[k] for k in ("input", "labels", "output")}


def reference_network(name: str) -> NCSNv2:
    network = KINDS[name](ngf=8)
    network.load_state_dict(reference(name)[0])
    return network.eval().requires_grad_(False)


def published_list(name: str) -> list:
    """A copy that a test may damage."""
    return copy.deepcopy(_published(name))


@lru_cache
def _published(name: str) -> list:
    """As the authors' training writes it: after a step of Adam, with the reference weights as the EMA.

    The state dict differs from the EMA, so that a test sees which of the two was taken.
    """
    weights, _ = reference(name)
    network = KINDS[name](ngf=8)
    network.load_state_dict(weights)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2, amsgrad=False)
    network.unscaled(torch.rand(1, 3, 16, 16)).square().mean().backward()
    optimiser.step()
    shadow = {k: weights[k] for k, _ in network.named_parameters()}
    return [nn.DataParallel(network).state_dict(), optimiser.state_dict(), 210, 210_000, shadow]


def published_file(name: str, path: Path, *, old: bool = False) -> Path:
    torch.save(published_list(name), path, _use_new_zipfile_serialization=not old)
    return path
