"""A restoration on disk: pictures for people, safetensors and JSON for programs; never a pickle."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from snips.files import flush, flush_tree
from snips.inverse_problem import InverseProblem
from snips.operators import LinearOperator
from snips.problems import Build, make_operator
from snips.report.files import OWN_PATTERNS, write_pictures
from snips.version import __version__

if TYPE_CHECKING:
    from snips.restoration import Restoration

FORMAT = 1


def save(restoration: Restoration, folder: Path, force: bool) -> Path:
    """Write everything into a new folder beside the wanted one, then move it there: all or nothing.

    Samples took long and pictures can be drawn again: what goes wrong with those is told when the samples are safe.
    """
    failure: Exception | None = None
    with new_folder(folder, force) as work:
        tensors, recipe = recipe_to_json(restoration.problem.operator)
        tensors |= {"samples": restoration.samples, "mean": restoration.mean, "y": restoration.problem.y}
        if len(restoration.samples) > 1:
            tensors["std"] = restoration.std
        if restoration.problem.truth is not None:
            tensors["truth"] = restoration.problem.truth
        if restoration.alpha is not None:
            tensors["alpha"] = restoration.alpha
        stored = {k: v.detach().cpu().clone(memory_format=torch.contiguous_format) for k, v in tensors.items()}
        (work / "samples.safetensors").write_bytes(to_bytes(stored))
        (work / "result.json").write_text(json.dumps(plain(_description(restoration, recipe)), indent=2) + "\n")
        try:
            write_pictures(restoration, work)
        except OSError:  # a disk without room for them may have lost the samples, too
            raise
        except Exception as error:
            failure = error
    if failure is not None:
        raise failure
    return folder


def load(
    folder: Path, operator: LinearOperator | None = None
) -> tuple[InverseProblem, Tensor, dict[str, Any], Tensor | None]:
    """Problem, samples, settings and alpha, as `save` found them."""
    try:
        description = json.loads((folder / "result.json").read_text())
        tensors = load_file(folder / "samples.safetensors")
        recipe, sigma_0, first = (description[key] for key in ("operator", "sigma_0", "first_image"))
        y, samples, settings = tensors["y"], tensors["samples"], description["settings"]
    except (OSError, KeyError, TypeError, ValueError, RecursionError, SafetensorError) as error:
        raise ValueError(f"{folder} does not hold a saved restoration: {error}") from error
    operator = operator or recipe_from_json(recipe, tensors)
    return InverseProblem(operator, y, sigma_0, tensors.get("truth"), first), samples, settings, tensors.get("alpha")


def recipe_to_json(operator: LinearOperator) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
    """How to build the operator again: arrays go to the tensors as `option.NAME`, the rest to JSON."""
    if operator.recipe is None:
        return {}, None
    options = operator.recipe.options
    arrays = {k: torch.as_tensor(v) for k, v in options.items() if isinstance(v, (Tensor, np.ndarray))}
    others = plain({k: v for k, v in options.items() if k not in arrays})
    recipe = {"problem": operator.recipe.name, "image_shape": operator.recipe.image_shape, "options": others}
    return {f"option.{k}": v for k, v in arrays.items()}, recipe


def recipe_from_json(
    recipe: dict[str, Any] | None, tensors: dict[str, Tensor], build: Build = make_operator
) -> LinearOperator:
    if recipe is None:
        raise ValueError("this operator was not built by make_operator: pass the same one as operator=")
    arrays = {k.removeprefix("option."): v for k, v in tensors.items() if k.startswith("option.")}
    try:
        return build(recipe["problem"], tuple(recipe["image_shape"]), **{**recipe["options"], **arrays})
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"the description of the operator is damaged: {str(recipe)[:200]}") from error


def plain(value: Any) -> Any:
    """What JSON can hold: numbers of other libraries become Python's, NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def check_target(folder: Path, force: bool) -> None:
    """Can results be written there? Asked before long work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, not a folder: choose another name")
    if folder.exists() and not force:
        raise ValueError(
            f"{folder} exists already: choose another folder, or overwrite its results with --force (force=True)"
        )
    if foreign := _foreign_files(folder):
        raise ValueError(
            f"{folder} holds {foreign[0].name}, which would be replaced, but no result that it belongs to: "
            "choose another folder"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.rmdir(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))  # some systems tell only then
    except OSError as error:
        raise ValueError(f"{folder} cannot be created ({error.strerror or error}): choose another folder") from error
    if folder.exists() and not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} cannot be written to: choose another folder")


@contextmanager
def new_folder(folder: Path, force: bool) -> Iterator[Path]:
    """A temporary folder that becomes `folder` when the block ends well; what was there stays until then.

    In an existing folder only results of ours are replaced; other files are left alone.
    """
    check_target(folder, force)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield work
        os.chmod(work, 0o755)
        flush_tree(work)
        if folder.exists():
            _replace(folder, work)
        else:
            work.rename(folder)
        flush(folder.parent)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(folder)) from error  # a full disk does not say which
    finally:
        shutil.rmtree(work, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what processes that were killed while they saved to `folder` left beside it; nothing else's."""
    named = re.compile(re.escape(f".{folder.name}-") + "[a-z0-9_]{8}")  # as mkdtemp names them
    for work in [path for path in folder.parent.glob(".*") if named.fullmatch(path.name) and path.is_dir()]:
        if {path for path in work.rglob("*") if not path.is_dir()} <= set(_own_files(work)):
            shutil.rmtree(work, ignore_errors=True)


OWN_FILES = ("result.json", "samples.safetensors", *OWN_PATTERNS)


def _own_files(folder: Path) -> list[Path]:
    """All files that are named as those of a result."""
    return [file for name in OWN_FILES for place in ("", "image_[0-9]*/") for file in folder.glob(place + name)]


def _foreign_files(folder: Path) -> list[Path]:
    """Files that are named as ours in a folder without a result: somebody else's."""
    try:
        is_result = "format" in json.loads((folder / "result.json").read_text())
    except (OSError, ValueError, TypeError, RecursionError):
        is_result = False
    return [] if is_result else _own_files(folder)


def _replace(folder: Path, work: Path) -> None:
    """Exchange our own files, result.json last: while it is missing the folder does not count as a result."""
    for old in _own_files(folder):
        old.unlink()
    files = sorted((f for f in work.rglob("*") if f.is_file()), key=lambda f: f.name == "result.json")
    for file in files:
        target = folder / file.relative_to(work)
        target.parent.mkdir(exist_ok=True)
        file.replace(target)


def _description(restoration: Restoration, recipe: dict[str, Any] | None) -> dict[str, Any]:
    problem = restoration.problem
    scores, similar, verdict = restoration.psnr(), restoration.ssim(), restoration.faithfulness()
    return {
        "format": FORMAT,
        "sigma_0": problem.sigma_0,
        "first_image": problem.first_image,
        "operator": recipe,
        "operator_repr": repr(problem.operator),
        "settings": restoration.settings,
        "psnr": None if scores is None else {"samples": scores[0], "mean": scores[1]},
        "ssim": None if similar is None else {"samples": similar[0], "mean": similar[1]},
        "faithfulness": vars(verdict),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """What else than the settings may change results."""
    return {"snips": __version__, "torch": torch.__version__, "python": platform.python_version()}
