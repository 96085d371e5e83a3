"""Small batches for the tests: tiny images, a Gaussian prior, two samples in two chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from typer.testing import CliRunner, Result

from snips.batch import Item, RunFolder, RunSettings, read_items, run_batch
from snips.cli import app

SETTINGS = RunSettings(
    seed=3, samples=3, sampler="fast", sampler_options={"nfe": 12},
    prior="gaussian", prior_weights={}, chunk=2, chunk_pixels=1024, threads=1,
)  # fmt: skip


def pictures(folder: Path, count: int = 3) -> Path:
    folder.mkdir(parents=True)
    for index in range(count):
        values = np.random.default_rng(index).integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(values).save(folder / f"picture_{index}.png")
    return folder


def items_of(source: Path, out: Path, **said: object) -> list[Item]:
    return read_items(source, {"problem": "sr2", "sigma": 0.1, **said}, out)


def run(source: Path, out: Path, **options) -> list[dict]:
    """A run that writes its state after each step."""
    return run_batch(items_of(source, out), RunFolder(out, checkpoint_seconds=0), SETTINGS, **options).rows


def tensors(out: Path) -> dict[str, torch.Tensor]:
    """All tensors of all results."""
    files = sorted(out.glob("items/[!.]*/samples.safetensors"))
    return {f"{f.parent.name}/{name}": value for f in files for name, value in load_file(f).items()}


def assert_same_bits(one: Path, other: Path) -> None:
    a, b = tensors(one), tensors(other)
    assert a.keys() == b.keys()
    assert a
    differing = [name for name in a if not torch.equal(a[name], b[name])]
    assert {name: float((a[name].double() - b[name].double()).abs().max()) for name in differing} == {}


def command(source: Path, *more: object) -> Result:
    """`snips batch` as it is typed, into a folder beside the source."""
    arguments = ["batch", source, "--out", source.parent / "out", "-p", "sr2", "-s", "0.1", "-k", "2"]
    arguments += [] if "langevin" in more else ["--nfe", "12"]
    return CliRunner().invoke(app, [str(part) for part in (*arguments, "--prior", "gaussian", *more)])
