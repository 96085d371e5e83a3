"""Priors by name or file: the bundled ones, and all kinds of files that hold one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from snips.names import unknown_name
from snips.plugins import Plugin, plugins
from snips.priors import ncsnv2_files, unet
from snips.priors.base import Prior
from snips.priors.denoiser import as_prior
from snips.priors.stored import opened

GAUSSIAN = "gaussian"  # has no file: `priors.choice` makes one for the shape of the image
WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class BundledPrior:
    """One row of BUNDLED: what a user must know to choose."""

    name: str
    summary: str
    size: tuple[int, int] | None  # height and width of the images it is made for; None takes any
    channels: tuple[int, ...]

    @property
    def file(self) -> Path:
        return WEIGHTS / f"{self.name}.safetensors"

    @property
    def card(self) -> Path:
        """Data and its terms, recipe, how good it is."""
        return WEIGHTS / f"{self.name}.md"


BUNDLED: dict[str, BundledPrior] = {
    prior.name: prior
    for prior in (
        BundledPrior("faces", "aligned faces, as in CelebA", (64, 64), (3,)),
        BundledPrior("natural", "photographs of any content, grey or in colour", None, (1, 3)),
    )
}


def load_prior(name_or_path: str | os.PathLike[str]) -> Prior:
    """A prior that is ready to denoise: a name in BUNDLED or of a plug-in, or a file (`./faces` means the file).

    Files are .safetensors of `snips train` or `snips convert`, or .pth and .pt as the authors of NCSNv2 publish
    them. `prior.name` is the bundled name, or the file's.
    """
    given = os.fspath(name_or_path)
    if given not in BUNDLED and not Path(given).is_file() and (offered := plugins("snips.priors", BUNDLED).get(given)):
        return _load_plugin(offered)
    path = BUNDLED[given].file if given in BUNDLED else Path(given)
    if not path.is_file():
        raise ValueError(_absence(given, path))
    if path.suffix.lower() not in FILE_KINDS:
        raise ValueError(f"{path} is no prior: a file of one ends in {', '.join(FILE_KINDS)}")
    prior = _load(FILE_KINDS[path.suffix.lower()], path)
    prior.name = given if given in BUNDLED else path.name
    return prior.eval().requires_grad_(False)


def _load_plugin(offered: Plugin) -> Prior:
    try:
        prior = as_prior(offered.value())
    except Exception as error:  # a stranger's code
        raise ValueError(f"the prior {offered.name} of {offered.origin} cannot be loaded ({error})") from error
    prior.name = offered.name
    return prior.eval().requires_grad_(False)


def _absence(given: str, path: Path) -> str:
    if given in BUNDLED:
        return f"the prior {given} is not part of this installation: {path} is missing; give a file of weights instead"
    if given == GAUSSIAN:
        return "the prior gaussian is made for images of one shape: take snips.StationaryGaussian.natural(image_shape)"
    if given and path.is_dir():
        return f"{path} is a folder: give the file of weights in it"
    if path.suffix.lower() in FILE_KINDS or len(path.parts) > 1:
        return f"there is no file {path}"
    return unknown_name("prior", given, [*BUNDLED, GAUSSIAN]) + f", or a file that ends in {', '.join(FILE_KINDS)}"


def _load(load: Callable[[Path], Prior], path: Path) -> Prior:
    try:
        prior = load(path)
    except (ValueError, OSError):
        raise
    except Exception as error:  # the file may come from a stranger: whatever is wrong with it is bad input
        raise ValueError(f"{path} is damaged ({type(error).__name__}: {error})") from error
    if not all(value.isfinite().all() for value in prior.state_dict().values()):
        raise ValueError(f"{path} is damaged: some of its weights are no finite numbers")
    return prior


def _load_safetensors(path: Path) -> Prior:
    with opened(path) as file:
        written = (file.metadata() or {}).get("format")
    if written not in FORMATS:
        raise ValueError(
            f"{path} holds no prior of this package (format {written!r}): make one with `snips train`, "
            "or from a published checkpoint with `snips convert`"
        )
    return FORMATS[written](path)


# What the metadata of a .safetensors file calls itself.
FORMATS: dict[str, Callable[[Path], Prior]] = {
    unet.FORMAT: unet.load_unet,
    ncsnv2_files.FORMAT: ncsnv2_files.load_ncsnv2,
}

FILE_KINDS: dict[str, Callable[[Path], Prior]] = {
    ".safetensors": _load_safetensors,
    ".pth": ncsnv2_files.load_checkpoint,
    ".pt": ncsnv2_files.load_checkpoint,
}
