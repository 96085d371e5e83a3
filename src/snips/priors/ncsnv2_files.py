"""Files of NCSNv2 networks: the authors' checkpoints as they are, and safetensors.

A published checkpoint is a `torch.save`d list: state dict with names prefixed `module.`, optimiser state, epoch,
step, EMA shadow (parameter name -> tensor). Which of the networks it holds shows in names and shapes alone.
"""

from __future__ import annotations

import pickle
import re
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from snips.files import damaged_entry
from snips.priors.ncsnv2 import NCSNv2, NCSNv2Deeper
from snips.priors.stored import StrPath, read_weights, write_weights

FORMAT = "snips-ncsnv2-1"
ARCHITECTURES = (NCSNv2, NCSNv2Deeper)
EMA_ENTRY = 4  # where a published list has its EMA shadow; runs without EMA end before it

Weights = dict[str, Tensor]


def load_checkpoint(path: StrPath) -> NCSNv2:
    """The network in a published checkpoint, with the EMA of its parameters where there is one."""
    entries = _read_pickle(path)
    if not isinstance(entries, (list, tuple)) or not entries or not isinstance(entries[0], dict):
        raise ValueError(
            f"{path} is no published NCSNv2 checkpoint, which is a list that begins with a state dict "
            "(of a run of `snips train`, load its weights.safetensors)"
        )
    state = _weights(path, entries[0])
    model = _recognised(path, state)
    if len(entries) > EMA_ENTRY:
        state |= _shadow(path, entries[EMA_ENTRY], model)
    return _filled(path, model, state)


def load_ncsnv2(path: StrPath) -> NCSNv2:
    """The network in a file written by `save_ncsnv2`."""
    told, state = read_weights(path)
    if told.get("format") != FORMAT:
        raise ValueError(f"{path} holds no NCSNv2 of this package: convert a checkpoint with `snips convert`")
    return _filled(path, _recognised(path, state), state)


def save_ncsnv2(model: NCSNv2, path: StrPath, note: dict[str, Any] | None = None) -> None:
    """Write the weights, as they are, as safetensors, whole or not at all; `note` is kept beside them."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    write_weights(path, {"format": FORMAT, "architecture": type(model).name}, tensors, note)


def _read_pickle(path: StrPath) -> Any:
    with open(path, "rb") as file:
        try:
            if damaged := damaged_entry(Path(path)):
                raise zipfile.BadZipFile(damaged)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # old files use deprecated parts of PyTorch: nothing to act upon
                return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # bytes of another kind make the unpickler raise almost anything
            raise ValueError(_refusal(path, error)) from None


def _refusal(path: StrPath, error: Exception) -> str:
    """PyTorch's own message is long, and recommends to load the file unsafely."""
    found = re.search(r"unsupported global:? (?:global )?([\w.]+)", str(error), re.IGNORECASE)
    if isinstance(error, pickle.UnpicklingError) and found:
        return f"{path} is refused: it holds more than weights ({found[1]}), and loading that could run its code"
    return f"{path} cannot be read as a PyTorch checkpoint: it is damaged, incomplete, or of another kind"


def _weights(path: StrPath, entry: dict[Any, Any]) -> Weights:
    """Names without the prefix that training on several devices adds."""
    if not all(isinstance(name, str) and isinstance(value, Tensor) for name, value in entry.items()):
        raise ValueError(f"{path} is no published NCSNv2 checkpoint: an entry maps more than names to tensors")
    if not all(value.layout is torch.strided and not value.is_quantized for value in entry.values()):
        raise ValueError(f"{path} is no published NCSNv2 checkpoint: its tensors are sparse or quantized")
    return {name.removeprefix("module."): value for name, value in entry.items()}


def _shadow(path: StrPath, entry: Any, model: NCSNv2) -> Weights:
    """The EMA of all parameters: one that lacks some would silently mix two networks."""
    shadow = _weights(path, entry) if isinstance(entry, dict) else {}
    parameters = dict(model.named_parameters())
    if shadow.keys() != parameters.keys():
        misfit = _some(shadow.keys() ^ parameters.keys())
        raise ValueError(f"{path}: its EMA shadow and the network's parameters differ in {misfit}")
    return shadow


def _recognised(path: StrPath, state: Weights) -> NCSNv2:
    """The architecture whose names are nearest, in the size of the first layer; still without values."""
    first, sigmas = state.get("begin_conv.weight"), state.get("sigmas")
    if first is None or first.ndim != 4 or sigmas is None or sigmas.ndim != 1:
        raise ValueError(f"{path} holds weights of another network than NCSNv2, which has begin_conv and sigmas")
    ngf, channels = first.shape[:2]
    with torch.device("meta"):
        networks = [kind(ngf, channels, torch.empty(len(sigmas))) for kind in ARCHITECTURES]
    return min(networks, key=lambda network: len(network.state_dict().keys() ^ state.keys()))


def _filled(path: StrPath, model: NCSNv2, state: Weights) -> NCSNv2:
    """The network with these weights, which must be all of its own and no others."""
    expected = {name: value.shape for name, value in model.state_dict().items()}
    problems = {
        "lacks": expected.keys() - state.keys(),
        "has the foreign": state.keys() - expected.keys(),
        "has another shape for": {n for n in expected.keys() & state.keys() if state[n].shape != expected[n]},
        "has values that are no finite numbers in": {n for n, value in state.items() if not _is_finite(value)},
    }
    for problem, names in problems.items():
        if names:
            raise ValueError(f"{path} is no {type(model).__name__} with ngf {model.ngf}: it {problem} {_some(names)}")
    # Copies: they share no memory, and let go of the optimiser's state.
    own = {n: v.to(torch.float32, copy=True, memory_format=torch.contiguous_format) for n, v in state.items()}
    model.load_state_dict(own, assign=True)
    return model.eval().requires_grad_(False)


def _is_finite(value: Tensor) -> bool:
    return value.is_floating_point() and bool(value.isfinite().all())


def _some(names: Iterable[str]) -> str:
    """A few names, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return ", ".join(ordered[:3]) + more
