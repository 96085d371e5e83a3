"""One restoration as the page's form describes it. Everything here is main-line library: no Gradio."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor

from snips.operators.base import LinearOperator
from snips.operators.pictures import is_picture
from snips.photos.photo import load_photo
from snips.posing.from_files import Said, posed_photo
from snips.posing.pictures import AUTO, PhotoProblem
from snips.priors import Prior
from snips.priors.choice import GAUSSIAN, choose_prior, prior_for, takes_grey
from snips.priors.registry import BUNDLED
from snips.problems import PROBLEMS, make_operator
from snips.restoration import Interrupted, Restoration, restore
from snips.running.costs import chosen_chunk, fitting_pixels
from snips.samplers import StepInfo
from snips.web.limits import Limits, check_pixels

AUTOMATIC = "automatic"
FEWEST_OFFERED = 10  # calls; the sampler itself takes fewer, but their pictures please nobody


@dataclass(frozen=True)
class Task:
    """What to restore, and how."""

    picture: Path
    simulate: bool  # the picture is clean: degrade it first
    problem: str
    sigma: float | str  # or AUTO: estimated from a degraded picture
    samples: int
    calls: int
    prior: str = AUTOMATIC
    seed: int = 0

    def check(self, limits: Limits) -> None:
        """A form can be sent by a program, too: its sliders do not protect us."""
        if self.problem not in problems(self.simulate):
            raise ValueError(f"{self.problem} cannot be chosen here: take one of {', '.join(problems(self.simulate))}")
        if self.prior not in prior_names():
            raise ValueError(f"there is no prior {self.prior} here: take one of {', '.join(prior_names())}")
        if self.sigma != AUTO and not 0 <= float(self.sigma) <= 1:
            raise ValueError(f"the noise must lie between 0 and 1, as pixels do, but is {float(self.sigma):g}")
        if not 1 <= self.samples <= limits.samples:
            raise ValueError(f"choose from 1 to {limits.samples} samples, not {self.samples}")
        if not FEWEST_OFFERED <= self.calls <= limits.calls:
            raise ValueError(f"choose from {FEWEST_OFFERED} to {limits.calls} calls, not {self.calls}")

    def command(self) -> str:
        """The same on the command line."""
        numbers = {"sigma": self.sigma, "samples": self.samples, "nfe": self.calls, "seed": self.seed}
        options = [text for name, value in numbers.items() for text in (f"--{name}", str(value))]
        prior = [] if self.prior == AUTOMATIC else ["--prior", self.prior]
        simulated = ["--simulate"] if self.simulate else []
        name = self.picture.name
        file = f"./{name}" if name.startswith("-") else name  # which would be read as options
        return shlex.join(["snips", "restore", file, "--problem", self.problem, *options, *prior, *simulated])


@dataclass(frozen=True)
class Progress:
    """Where a running restoration stands."""

    step: int
    total: int
    sigma: float
    seconds: float
    estimate: Tensor  # (C, H, W), the denoised images of all samples that are in work, averaged
    state: Tensor  # (C, H, W), the noisy image of one of them

    @property
    def seconds_left(self) -> float:
        return self.seconds / self.step * (self.total - self.step)


def build_problem(task: Task, limits: Limits) -> PhotoProblem:
    """The measurement that a task is about, if it may be asked for."""
    task.check(limits)
    build = partial(_built, limits)
    try:
        grey = takes_grey(None if task.prior == AUTOMATIC else task.prior)
        said = Said(task.problem, task.sigma, task.simulate, task.seed, grey=grey)
        return posed_photo(load_photo(task.picture), said, build)
    except ValueError as error:
        raise ValueError(str(error).replace(str(task.picture), task.picture.name)) from error


def _built(limits: Limits, name: str, image_shape: tuple[int, ...], **options: Any) -> LinearOperator:
    """`make_operator` for an image that is small enough: its SVD is already work, and nobody can stop it."""
    _, height, width = image_shape
    check_pixels("the restored image", width, height, limits)
    return make_operator(name, image_shape, **options)


def run(task: Task, posed: PhotoProblem, report: Callable[[Progress], None]) -> Restoration:
    """Restore; `report` hears of each step and may raise to stop.

    Where it raises a KeyboardInterrupt, the samples that are finished come back; `Interrupted` where there is none.
    """
    image_shape = posed.problem.operator.image_shape
    prior = task_prior(task, image_shape)
    chunk = chosen_chunk(image_shape, fitting_pixels())  # as the command: bounds memory and what Cancel loses
    started = time.perf_counter()

    def on_step(info: StepInfo) -> None:
        seconds = time.perf_counter() - started
        report(Progress(info.step, info.total, info.sigma, seconds, info.denoised.mean(0), info.state.x[0]))

    options: dict[str, Any] = {"samples": task.samples, "seed": task.seed, "nfe": task.calls, "chunk": chunk}
    try:
        result = restore(posed, prior, on_step=on_step, **options)
    except Interrupted as stop:
        if stop.finished is None:
            raise
        result = stop.finished
    return replace(result, settings={**result.settings, "command": task.command()})


def task_prior(task: Task, image_shape: tuple[int, int, int]) -> Prior:
    """The prior by name, or the one that fits."""
    name = choose_prior(image_shape).name if task.prior == AUTOMATIC else task.prior
    return loaded(name, image_shape if name == GAUSSIAN else (image_shape[0], 1, 1))  # one network for all sizes


def problems(simulate: bool) -> list[str]:
    """What the page offers: all that need no further files; for a degraded picture, those whose y is a picture."""
    posed = [name for name, entry in PROBLEMS.items() if not entry.needs_option]
    return [name for name in posed if simulate or _measures_pictures(name)]


@cache
def _measures_pictures(name: str) -> bool:
    return is_picture(make_operator(name, (3, 16, 16)))


def prior_names() -> list[str]:
    return [AUTOMATIC, *(name for name, prior in BUNDLED.items() if prior.file.is_file()), GAUSSIAN]


@lru_cache(maxsize=8)
def loaded(name: str, image_shape: tuple[int, int, int]) -> Prior:
    """Kept and shared: a prior does not change when it is used."""
    return prior_for(name, image_shape)
