"""Command: doctor."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

import torch
import typer
from rich.table import Table

from snips.cli.app import JsonOption, app, out, say
from snips.extras import installing
from snips.memory import available_memory
from snips.metrics import perceptual_weights
from snips.priors.registry import BUNDLED, load_prior
from snips.version import __version__

REQUIRED = (
    "torch", "numpy", "scipy", "pillow", "scikit-image", "tifffile", "PyWavelets", "safetensors", "typer", "rich",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    state: str  # a version, or what is wrong
    ok: bool
    use: str = ""  # what it is for
    advice: str = ""  # how to get it, where it is missing


@dataclass(frozen=True)
class OptionalPart:
    """Something that snips can do without."""

    package: str
    use: str
    advice: str
    state: Callable[[], str | None] | None = None  # its state, where that is no version of a package


OPTIONAL = (
    OptionalPart("gradio", "snips web", installing("web")),
    OptionalPart("pyarrow", "snips batch", installing("batch")),
    OptionalPart("zarr", "Zarr arrays in snips batch", installing("batch")),
    OptionalPart("h5py", "HDF5 files in snips batch", installing("batch")),
    OptionalPart("ray", "snips batch --engine ray", installing("ray")),
    OptionalPart("tensorboard", "snips train --tensorboard", installing("train")),
    OptionalPart("xarray", "Restoration.to_xarray", installing("xarray")),
    OptionalPart("matplotlib", "the tutorials and some benchmarks", "pip install matplotlib"),
    OptionalPart("pylops", "operators of pylops", installing("pylops")),
    OptionalPart("diffusers", "denoisers of diffusers", installing("diffusers")),
    OptionalPart(
        "deepinv",
        "operators and denoisers of deepinv",
        f'{installing("deepinv")}; on a CPU see "In deepinv" in docs/bring_your_own.md',
    ),
    OptionalPart(
        "lpips",
        "LPIPS in `snips experiment`",
        f"{installing('lpips')}, then snips fetch lpips",
        lambda: "fetched" if perceptual_weights.available() else None,
    ),
)


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Say what this installation has: versions, devices, priors, optional parts, and how to get what is missing.

    Exit code 1 if something is missing or damaged that every restoration needs.

    Example: `snips doctor`
    """
    environment = _environment()
    needed = [*map(_required, REQUIRED), *_priors()]
    optional = [_optional(part) for part in OPTIONAL]
    healthy = all(finding.ok for finding in needed)
    if as_json:
        report = {"environment": environment, "needed": needed, "optional": optional, "healthy": healthy}
        print(json.dumps(report, default=asdict))
    else:
        _show(environment, needed, optional)
        say("All that is needed is here." if healthy else "Something that is needed is missing: see above.")
    if not healthy:
        raise typer.Exit(1)


def _environment() -> dict[str, str]:
    threads = torch.get_num_threads()
    return {
        "snips": __version__,
        "Python": f"{platform.python_version()}, {sys.executable}",
        "system": platform.platform(),
        "torch": f"{torch.__version__}, {threads} thread{'s' * (threads > 1)}",
        "devices": ", ".join(_devices()),
        "free memory": f"{available_memory() / 2**30:.1f} GiB",
    }


def _devices() -> list[str]:
    """What torch can compute on."""
    found = ["cpu"]
    found += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return [*found, "mps"] if torch.backends.mps.is_available() else found


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _required(package: str) -> Finding:
    found = _installed(package)
    return Finding(package, found or "missing", found is not None, "required", f"pip install {package}")


def _priors() -> list[Finding]:
    """The bundled weights that are part of this installation, loaded; at least one must be."""
    present = [name for name, prior in BUNDLED.items() if prior.file.is_file()]
    if not present:
        return [Finding("bundled priors", "missing", False, "restoring", "install snips again")]
    return [_prior(name) for name in present]


def _prior(name: str) -> Finding:
    use = BUNDLED[name].summary
    try:
        load_prior(name)
    except ValueError as error:
        return Finding(f"prior {name}", str(error), False, use, "install snips again")
    return Finding(f"prior {name}", "loads", True, use)


def _optional(part: OptionalPart) -> Finding:
    state = part.state() if part.state else _installed(part.package)
    return Finding(part.package, state or "missing", state is not None, part.use, part.advice)


def _show(environment: dict[str, str], needed: list[Finding], optional: list[Finding]) -> None:
    for name, value in environment.items():
        say(f"{name + ':':<13}{value}")
    for title, findings in (("needed", needed), ("optional", optional)):
        table = Table(title, "found", "for")
        for finding in findings:
            table.add_row(finding.name, finding.state, finding.use)
        out.print(table, markup=False)
    for finding in (*needed, *optional):
        if not finding.ok:
            say(f"{finding.name} is {finding.state}: {finding.advice}")  # a line of its own, to copy
