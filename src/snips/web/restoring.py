"""The button Restore: from the form to the queue, what is shown on the way, and what is kept of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import gradio as gr

from snips.posing.pictures import AUTO, PhotoProblem
from snips.restoration import Interrupted
from snips.web import views
from snips.web.downloads import pack, write_gallery
from snips.web.jobs import Cancelled, Job, Jobs
from snips.web.layout import SIMULATE, Layout
from snips.web.task import Task, build_problem, run, task_prior
from snips.web.visitors import Visitor, Visitors

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.25
EXPECTED_ERRORS = (ValueError, OSError, FloatingPointError, MemoryError)  # a line for the visitor, no traceback

Updates = dict[Any, Any]  # component -> its new value


class Restoring(Layout):
    """What the buttons Restore and Cancel do."""

    jobs: Jobs
    visitors: Visitors
    posing: asyncio.Semaphore  # an operator's SVD is work, too: as many at once as restorations

    async def on_restore(
        self,
        mode: str,
        simulated: str,
        degraded: str,
        sigma: float | None,
        estimate: bool,
        samples: int | None,
        calls: int | None,
        prior: str,
        seed: int | None,
        request: gr.Request,
    ) -> AsyncIterator[Updates]:
        """Queue the restoration, show how it goes, then its results. Without the page it stops, too."""
        visitor, simulate = self.visitors[key_of(request)], mode == SIMULATE
        try:
            numbers = _numbers(sigma, samples, calls, seed)
            if estimate and not simulate:
                numbers["sigma"] = AUTO
            task = Task(visitor.picture, simulate, simulated if simulate else degraded, prior=prior, **numbers)
            async with self.posing:  # before the queue, so that mistakes show at once
                posed = await asyncio.to_thread(build_problem, task, self.limits)
            told = await asyncio.to_thread(_told, task, posed)
            job = self.jobs.submit(key_of(request), partial(self._work, task, posed, visitor))
        except EXPECTED_ERRORS as error:
            yield {self.status: views.status(line_of(error), "error")}
            return
        try:
            yield self._before(job, told)
            while not job.done:
                await asyncio.sleep(POLL_SECONDS)
                yield self._during(job)
            yield self._after(job, visitor, told)
        finally:
            job.cancel()

    def on_cancel(self, request: gr.Request) -> None:
        """Shown by the restoration itself, which knows when it has stopped."""
        self.jobs.cancel(key_of(request))

    def _work(self, task: Task, posed: PhotoProblem, visitor: Visitor, job: Job) -> Updates:
        """In a thread of the queue: all that takes time. What is finished when the job is stopped is a result, too."""
        try:
            result = run(task, posed, job.report)
            if visitor.gone:
                raise Cancelled
            folder = visitor.new_folder()
            archive = pack(result, folder, f"snips-{task.problem}")
            gallery = write_gallery(result, folder / "shown")
        except Interrupted as stop:
            raise Cancelled from stop
        finally:
            visitor.clean()
        return {
            self.status: views.status(views.summary(result)),
            self.gallery: gr.Gallery(gallery, visible=True),
            self.download: gr.DownloadButton(value=str(archive), visible=True),
            self.verdicts: gr.HTML(views.verdicts(result), visible=True),
        }

    def _before(self, job: Job, told: str) -> Updates:
        buttons = {self.restore: gr.Button(interactive=False), self.cancel: gr.Button(interactive=True)}
        parts = {self.notes: gr.HTML(told, visible=bool(told)), self.preview: gr.HTML("", visible=True)}
        return {**self._results(visible=False), **buttons, **parts, **self._during(job)}

    def _during(self, job: Job) -> Updates:
        if job.stopping:
            return {self.status: views.status("Stopping after the current step.")}
        if job.progress is not None:
            return {self.status: views.progress(job.progress), self.preview: views.preview(job.progress)}
        ahead = self.jobs.ahead(job)
        waiting = f"Waiting: {ahead} restoration{'s' * (ahead > 1)} before this one." if ahead else "Starting."
        return {self.status: views.status(waiting)}

    def _after(self, job: Job, visitor: Visitor, told: str) -> Updates:
        ready = {self.restore: gr.Button(interactive=True), self.cancel: gr.Button(interactive=False)}
        ready |= {self.preview: gr.HTML("", visible=False)}
        if job.cancelled:
            return {**ready, **self._without_result(_stopped(job), "info", visitor)}
        error = job.future.exception()
        if error is None:
            visitor.told = told
            return {**ready, **job.future.result()}
        if not isinstance(error, EXPECTED_ERRORS):
            logger.error("a restoration failed", exc_info=error)
            error = RuntimeError("Something went wrong inside snips; the terminal of `snips web` shows what.")
        return {**ready, **self._without_result(line_of(error), "error", visitor)}

    def _without_result(self, message: str, kind: str, visitor: Visitor) -> Updates:
        """The results of an earlier run, if there are any, come back: they are not lost because another was stopped."""
        if not visitor.has_results:
            return {self.notes: gr.HTML("", visible=False), self.status: views.status(message, kind)}
        status = views.status(f"{message} Below are the earlier results.", kind)
        notes = gr.HTML(visitor.told, visible=bool(visitor.told))
        return {self.notes: notes, self.status: status, **self._results(visible=True)}

    def _results(self, visible: bool) -> Updates:
        return {part: gr.update(visible=visible) for part in (self.gallery, self.download, self.verdicts)}


def _told(task: Task, posed: PhotoProblem) -> str:
    return views.notes(posed, task_prior(task, posed.problem.operator.image_shape))


def key_of(request: gr.Request) -> str:
    return request.session_hash or ""


def _numbers(sigma: float | None, samples: int | None, calls: int | None, seed: int | None) -> dict[str, Any]:
    """Of the form; an emptied field is None."""
    if sigma is None or samples is None or calls is None or seed is None:
        raise ValueError("a number is missing: fill in the noise, the samples, the calls and the seed")
    return {"sigma": float(sigma), "samples": int(samples), "calls": int(calls), "seed": int(seed)}


def line_of(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())


def _stopped(job: Job) -> str:
    if job.progress is None:
        return "Stopped before the first step."
    return f"Stopped after step {job.progress.step} of {job.progress.total}, before a sample was finished."
