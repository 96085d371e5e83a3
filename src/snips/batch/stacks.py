"""Arrays of many measurements in one file: Zarr and HDF5, the first axis counts them. Read one at a time."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from snips.extras import installing
from snips.photos.arrays import MAX_BYTES

HDF5, ZARR = (".h5", ".hdf5"), (".zarr",)
ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")  # one of them is in every Zarr folder


def optional(name: str, purpose: str) -> Any:
    """A library of the extra `batch`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ValueError(f"{purpose} needs {name}: {installing('batch')}") from error


def is_stack(path: Path) -> bool:
    return path.suffix.lower() in (*HDF5, *ZARR) or any((path / name).is_file() for name in ZARR_FILES)


def dataset_of(path: Path, wanted: str | None) -> tuple[str, int]:
    """The name of the array to take, which may be left open where there is only one, and how many items it has."""
    with _arrays(path) as found:
        if wanted is None and len(found) != 1:
            raise ValueError(f"{path} holds {', '.join(found) or 'no arrays'}: name one with --dataset")
        name = next(iter(found)) if wanted is None else wanted.strip("/")
        if name not in found:
            raise ValueError(f"{path} has no array {name!r}; it holds {', '.join(found) or 'none'}")
        if len(found[name].shape) < 2:
            raise ValueError(f"{path}: {name or 'the array'} of shape {found[name].shape} is no stack of measurements")
        return name, int(found[name].shape[0])


def read(path: Path, name: str, index: int) -> np.ndarray:
    """One measurement, without the axis that counts them."""
    with _arrays(path) as found:
        array = found[name]
        size = int(np.prod(array.shape[1:])) * array.dtype.itemsize
        if size > MAX_BYTES or array.dtype.kind not in "buif":
            raise ValueError(f"{path}: an item of {name} is {array.dtype} of {size} bytes, which is no image")
        return np.asarray(array[index])


@contextmanager
def _arrays(path: Path) -> Iterator[dict[str, Any]]:
    """All arrays in the file by name; a file that is damaged, or not there, is bad input."""
    opened = _hdf5 if path.suffix.lower() in HDF5 else _zarr
    try:
        with opened(path) as found:
            yield found
    except (OSError, KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from error


@contextmanager
def _hdf5(path: Path) -> Iterator[dict[str, Any]]:
    h5py = optional("h5py", "an HDF5 file")
    with h5py.File(path, "r") as file:
        found: dict[str, Any] = {}
        file.visititems(_collector(found, h5py.Dataset))
        yield found


@contextmanager
def _zarr(path: Path) -> Iterator[dict[str, Any]]:
    zarr = optional("zarr", "a Zarr array")
    opened = zarr.open(str(path), mode="r")
    if isinstance(opened, zarr.Array):
        yield {"": opened}
    else:
        yield {name: value for name, value in opened.members(max_depth=None) if isinstance(value, zarr.Array)}


def _collector(found: dict[str, Any], kind: type) -> Callable[[str, Any], None]:
    def collect(name: str, value: Any) -> None:
        if isinstance(value, kind):
            found[name] = value

    return collect
