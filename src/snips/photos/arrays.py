"""Arrays of numbers from .npy and .npz files of strangers: nothing is unpickled, nothing huge is unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

MAX_BYTES = 4 * 2**30  # unpacked; refuse more before it is allocated


def load_npy(path: Path) -> np.ndarray:
    """The array in a .npy file. It is mapped first, so that a header that promises too much costs nothing."""
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(mapped, np.ndarray):
            raise ValueError("it is no .npy file")
        _check_bytes(path, mapped.nbytes)
        return np.array(mapped)
    except Exception as error:  # damaged files fail in many ways
        raise _refusal(path, error, "an array of numbers") from error


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays in an .npz file by name."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_bytes(path, sum(entry.file_size for entry in archive.infolist()))
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
        strange = [name for name, value in found.items() if not isinstance(value, np.ndarray)]
        if strange:  # numpy hands out any other file in the archive as bytes
            raise ValueError(f"{strange[0]} is no array")
        return found
    except Exception as error:
        raise _refusal(path, error, "an archive of arrays") from error


def npz_bytes(path: Path) -> int:
    """Of all that an .npz file would unpack to; 0 where it is no archive."""
    if not zipfile.is_zipfile(path):
        return 0
    with zipfile.ZipFile(path) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def npz_names(path: Path) -> list[str]:
    """The names of the arrays in an .npz file, without unpacking them; empty where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except Exception:  # damaged archives fail in many ways
        return []


def _check_bytes(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"{path} would unpack to {size / 2**30:.1f} GiB; at most {MAX_BYTES / 2**30:g} are read")


def _refusal(path: Path, error: Exception, what: str) -> ValueError:
    if isinstance(error, ValueError) and str(error).startswith(str(path)):
        return error
    if isinstance(error, FileNotFoundError):
        return ValueError(f"there is no file {path}")
    if "pickle" in str(error):  # what NumPy says of any file that does not begin as one of its own
        return ValueError(f"{path} is no file of NumPy's, or holds Python objects: write it again, with numpy.save")
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return ValueError(f"{path} cannot be read as {what} ({reason}): write it again, with numpy.save or numpy.savez")
