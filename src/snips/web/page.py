"""What happens on the page when something is pressed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from snips.images import load_image
from snips.problems import InverseProblem
from snips.web import views
from snips.web.downloads import pack, write_gallery
from snips.web.examples import EXAMPLES
from snips.web.jobs import Job, Jobs
from snips.web.layout import SIMULATE, WELCOME, Layout, mode_name, problem_choices
from snips.web.limits import Limits, load_upload
from snips.web.task import Task, build_problem, problems, run
from snips.web.visitors import Visitor, Visitors

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.25
LEFTOVERS = (3600, 86400)  # each hour, delete files of more than a day: uploads that were never used
EXPECTED_ERRORS = (ValueError, OSError, FloatingPointError, MemoryError)  # a line for the visitor, no traceback

Updates = dict[Any, Any]  # component -> its new value


class Page(Layout):
    """One page for all visitors. It keeps nothing of them but what is in `visitors` and `jobs`."""

    def __init__(self, limits: Limits, jobs: Jobs, visitors: Visitors, examples: Path) -> None:
        self.jobs, self.visitors = jobs, visitors
        with gr.Blocks(title="snips", analytics_enabled=False, fill_width=True, delete_cache=LEFTOVERS) as self.blocks:
            super().__init__(limits, examples)
            self._connect()

    def _connect(self) -> None:
        """Nothing here is offered as an API: the page has one purpose, and the library is the API."""
        form = [
            self.mode,
            self.problem,
            self.sigma,
            self.samples,
            self.calls,
            self.prior,
            self.seed,
        ]
        shown = [
            self.status,
            self.preview,
            self.gallery,
            self.download,
            self.verdicts,
            self.restore,
            self.cancel,
        ]
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        self.restore.click(self.on_restore, form, shown, concurrency_limit=None, trigger_mode="once", **quiet)
        self.cancel.click(self.on_cancel, queue=False, **quiet)
        self.upload.upload(
            self.on_upload,
            [self.upload],
            [self.upload, self.picture, self.example, self.status],
            **quiet,
        )
        chosen = [self.picture, self.mode, self.problem, self.sigma, self.status]
        self.example.input(self.on_example, [self.example], chosen, **quiet)
        self.mode.input(self.on_mode, [self.mode, self.problem], [self.problem], **quiet)
        self.blocks.unload(self.on_unload)

    def on_upload(self, uploaded: str, request: gr.Request) -> Updates:
        """Take the file as this visitor's picture, or say what is wrong with it and keep the one they had."""
        path = Path(uploaded)
        try:
            image = load_upload(path, self.limits)
            self.visitors[_key(request)].take_picture(path)
        except EXPECTED_ERRORS as error:
            path.unlink(missing_ok=True)
            return {self.upload: None, self.status: views.status(_line(error), "error")}
        channels, height, width = image.shape[1:]
        caption = f"{path.name}: {width} x {height}, {'colour' if channels == 3 else 'grey'}"
        return {
            self.upload: None,
            self.picture: views.picture(image[0], caption),
            self.example: None,
            self.status: views.status("Say what happened to the picture, then press Restore."),
        }

    def on_example(self, name: str, request: gr.Request) -> Updates:
        example = EXAMPLES[name]
        self.visitors[_key(request)].picture = path = self.examples / example.file
        return {
            self.picture: views.picture(load_image(path)[0], name),
            self.mode: mode_name(example.simulate),
            self.problem: gr.Dropdown(problem_choices(example.simulate), value=example.problem),
            self.sigma: example.sigma,
            self.status: views.status(WELCOME),
        }

    def on_mode(self, mode: str, problem: str) -> Any:
        offered = problems(mode == SIMULATE)
        return gr.Dropdown(problem_choices(mode == SIMULATE), value=problem if problem in offered else offered[0])

    async def on_restore(
        self,
        mode: str,
        problem: str,
        sigma: float | None,
        samples: int | None,
        calls: int | None,
        prior: str,
        seed: int | None,
        request: gr.Request,
    ) -> AsyncIterator[Updates]:
        """Queue the restoration, show how it goes, then its results. Without the page it stops, too."""
        visitor = self.visitors[_key(request)]
        try:
            numbers = _numbers(sigma, samples, calls, seed)
            task = Task(visitor.picture, mode == SIMULATE, problem, prior=prior, **numbers)
            measured = await asyncio.to_thread(build_problem, task, self.limits)  # mistakes show before the queue
            job = self.jobs.submit(_key(request), partial(self._work, task, measured, visitor))
        except EXPECTED_ERRORS as error:
            yield {self.status: views.status(_line(error), "error")}
            return
        try:
            yield self._before(job)
            while not job.done:
                await asyncio.sleep(POLL_SECONDS)
                yield self._during(job)
            yield self._after(job)
        finally:
            job.cancel()

    def on_cancel(self, request: gr.Request) -> None:
        """Shown by the restoration itself, which knows when it has stopped."""
        self.jobs.cancel(_key(request))

    def on_unload(self, request: gr.Request) -> None:
        """The page was closed: stop its work, delete its files."""
        self.jobs.cancel(_key(request))
        self.visitors.forget(_key(request))

    def _work(self, task: Task, measured: InverseProblem, visitor: Visitor, job: Job) -> Updates:
        """In a thread of the queue: all that takes time."""
        try:
            result = run(task, measured, job.report)
            folder = visitor.new_folder()
            archive = pack(result, folder, f"snips-{task.problem}")
            gallery = write_gallery(result, folder / "shown")
        finally:
            visitor.clean()
        return {
            self.status: views.status(views.summary(result)),
            self.gallery: gr.Gallery(gallery, visible=True),
            self.download: gr.DownloadButton(value=str(archive), visible=True),
            self.verdicts: gr.HTML(views.verdicts(result), visible=True),
        }

    def _before(self, job: Job) -> Updates:
        hidden = {part: gr.update(visible=False) for part in (self.gallery, self.download, self.verdicts)}
        buttons = {self.restore: gr.Button(interactive=False), self.cancel: gr.Button(interactive=True)}
        return {**hidden, **buttons, self.preview: gr.HTML("", visible=True), **self._during(job)}

    def _during(self, job: Job) -> Updates:
        if job.stopping:
            return {self.status: views.status("Stopping after the current step.")}
        if job.progress is not None:
            return {self.status: views.progress(job.progress), self.preview: views.preview(job.progress)}
        ahead = self.jobs.ahead(job)
        waiting = f"Waiting: {ahead} restoration{'s' * (ahead > 1)} before this one." if ahead else "Starting."
        return {self.status: views.status(waiting)}

    def _after(self, job: Job) -> Updates:
        ready = {self.restore: gr.Button(interactive=True), self.cancel: gr.Button(interactive=False)}
        ready |= {self.preview: gr.HTML("", visible=False)}
        if job.cancelled:
            return {**ready, self.status: views.status(_stopped(job))}
        error = job.future.exception()
        if error is None:
            return {**ready, **job.future.result()}
        if not isinstance(error, EXPECTED_ERRORS):
            logger.error("a restoration failed", exc_info=error)
            error = RuntimeError("Something went wrong inside snips; the terminal of `snips web` shows what.")
        return {**ready, self.status: views.status(_line(error), "error")}


def _key(request: gr.Request) -> str:
    return request.session_hash or ""


def _numbers(sigma: float | None, samples: int | None, calls: int | None, seed: int | None) -> dict[str, Any]:
    """Of the form; an emptied field is None."""
    if sigma is None or samples is None or calls is None or seed is None:
        raise ValueError("a number is missing: fill in the noise, the samples, the calls and the seed")
    return {"sigma": float(sigma), "samples": int(samples), "calls": int(calls), "seed": int(seed)}


def _line(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())


def _stopped(job: Job) -> str:
    if job.progress is None:
        return "Stopped before the first step."
    return f"Stopped after step {job.progress.step} of {job.progress.total}."
