"""Arrays of many measurements in one file: Zarr and HDF5, the first axis counts them. Read one at a time."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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
    with _opened(path) as file:
        found = (_hdf5_arrays if _is_hdf5(path) else _zarr_arrays)(file)
        if wanted is None and len(found) != 1:
            raise ValueError(f"{path} holds {', '.join(found) or 'no arrays'}: name one with --dataset")
        name = next(iter(found)) if wanted is None else wanted.strip("/")
        if name not in found:
            raise ValueError(f"{path} has no array {name!r}; it holds {', '.join(found) or 'none'}")
        if len(found[name].shape) < 2:
            raise ValueError(f"{path}: {name or 'the array'} of shape {found[name].shape} is no stack of measurements")
        return name, int(found[name].shape[0])


def read(path: Path, name: str, index: int) -> np.ndarray:
    """One measurement, without the axis that counts them; other arrays in the file are not looked for."""
    with _opened(path) as file:
        array = file[name] if name else file
        size = int(np.prod(array.shape[1:])) * array.dtype.itemsize
        if size > MAX_BYTES or array.dtype.kind not in "buifc":
            raise ValueError(f"{path}: an item of {name} is {array.dtype} of {size} bytes, which is no image")
        return np.asarray(array[index])


def _is_hdf5(path: Path) -> bool:
    return path.suffix.lower() in HDF5


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file, or the one array of a Zarr folder; one that is damaged, or not there, is bad input."""
    library = optional("h5py", "an HDF5 file") if _is_hdf5(path) else optional("zarr", "a Zarr array")
    try:
        with library.File(path, "r") if _is_hdf5(path) else nullcontext(library.open(str(path), mode="r")) as file:
            yield file
    except Exception as error:  # damaged files fail in many ways
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from error


def _hdf5_arrays(file: Any) -> dict[str, Any]:
    found, kind = {}, optional("h5py", "an HDF5 file").Dataset
    file.visititems(lambda name, value: found.update({name: value}) if isinstance(value, kind) else None)
    return found


def _zarr_arrays(opened: Any) -> dict[str, Any]:
    kind = optional("zarr", "a Zarr array").Array
    if isinstance(opened, kind):
        return {"": opened}
    return {name: value for name, value in opened.members(max_depth=None) if isinstance(value, kind)}
