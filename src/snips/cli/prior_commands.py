"""Commands: priors, convert."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from snips.cli.app import ForceOption, JsonOption, app, out
from snips.plugins import plugins
from snips.priors.choice import GAUSSIAN, PLAIN
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.ncsnv2_files import load_checkpoint, save_ncsnv2
from snips.priors.registry import BUNDLED, BundledPrior


@app.command()
def priors(as_json: JsonOption = False) -> None:
    """List the priors that come with this package and with others that are installed."""
    offered = plugins("snips.priors", [*BUNDLED, GAUSSIAN])
    if as_json:
        others = {name: {"summary": plugin.summary, "origin": plugin.origin} for name, plugin in offered.items()}
        ours = {name: _facts(prior) for name, prior in BUNDLED.items()}
        print(json.dumps({**ours, GAUSSIAN: {"summary": PLAIN, "size": None, "channels": None}, **others}))
        return
    table = Table("name", "for", "size", "channels", "file")
    for name, prior in BUNDLED.items():
        size = "any" if prior.size is None else "{} x {}".format(*prior.size)
        table.add_row(name, prior.summary, size, " or ".join(map(str, prior.channels)), _file_size(prior))
    table.add_row(GAUSSIAN, PLAIN, "any", "any", "needs none")
    for name, plugin in offered.items():
        table.add_row(name, plugin.summary, "", "", f"from {plugin.origin}")
    out.print(table)
    out.print("A file of weights is a prior, too: from `snips train`, or NCSNv2 as published.", highlight=False)


@app.command()
def convert(
    checkpoint: Annotated[Path, typer.Argument(help="A published NCSNv2 or NCSNv2Deeper checkpoint (.pth).")],
    output: Annotated[
        Path | None, typer.Option("--out", help="The new file; beside the checkpoint, unless given.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a published checkpoint as safetensors: only the weights, the EMA where there is one, and safe to share.

    Example: `snips convert checkpoint_210000.pth --out celeba.safetensors`
    """
    output = output or checkpoint.with_suffix(".safetensors")
    _check_paths(checkpoint, output, force)
    network = load_checkpoint(checkpoint)
    _write(network, output)
    facts = {"file": str(output), "architecture": type(network).name, "ngf": network.ngf}
    facts |= {"channels": network.channels, "levels": len(network.sigmas)}
    if as_json:
        print(json.dumps(facts))
        return
    kind = f"{type(network).__name__}, ngf {network.ngf}, {network.channels} channels, {len(network.sigmas)} levels"
    out.print(f"{output}: {kind}", highlight=False, markup=False, soft_wrap=True)


def _check_paths(checkpoint: Path, output: Path, force: bool) -> None:
    """Before the work, not after it."""
    if checkpoint.suffix == ".safetensors":
        raise ValueError(f"{checkpoint} is a safetensors file already: use it as it is")
    if not checkpoint.is_file():
        raise ValueError(f"there is no file {checkpoint}")
    if output.suffix != ".safetensors":
        raise ValueError(f"--out must end in .safetensors, unlike {output}")
    if output.is_dir() or not output.parent.is_dir():
        raise ValueError(f"{output} cannot be written: its folder is missing, or it is a folder itself")
    if output.exists() and not force:
        raise ValueError(f"{output} exists already: choose another file with --out, or overwrite it with --force")


def _write(network: NCSNv2, output: Path) -> None:
    try:
        save_ncsnv2(network, output)
    except OSError as error:  # a full disk names no file, others name the temporary one
        raise ValueError(f"{output} cannot be written: {error.strerror or error}") from error


def _facts(prior: BundledPrior) -> dict[str, Any]:
    available = prior.file.is_file()
    return {
        "summary": prior.summary,
        "size": prior.size,
        "channels": prior.channels,
        "file": str(prior.file) if available else None,
        "bytes": prior.file.stat().st_size if available else None,
        "card": str(prior.card) if prior.card.is_file() else None,
    }


def _file_size(prior: BundledPrior) -> str:
    return f"{prior.file.stat().st_size / 1e6:.1f} MB" if prior.file.is_file() else "not installed"
