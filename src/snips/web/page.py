"""The page itself: what is on it, and what happens when something is pressed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from snips.images import load_image
from snips.problems import PROBLEMS
from snips.web import views
from snips.web.downloads import pack, write_gallery
from snips.web.examples import EXAMPLES, FIRST_EXAMPLE
from snips.web.jobs import Job, Jobs
from snips.web.limits import Limits, load_upload
from snips.web.task import AUTOMATIC, FEWEST_CALLS, Task, prior_names, problems, run
from snips.web.visitors import Visitor, Visitors

logger = logging.getLogger(__name__)

SIMULATE, DEGRADED = "Clean: degrade it first, then restore it", "Already degraded: restore it"
SAMPLES, CALLS = 8, 50  # about 10 s for a face of 64 x 64 on one core
POLL_SECONDS = 0.25
EXPECTED_ERRORS = (ValueError, OSError, FloatingPointError, MemoryError)  # a line for the visitor, no traceback

Updates = dict[Any, Any]  # component -> its new value


class Page:
    """One page for all visitors. It keeps nothing of them but what is in `visitors` and `jobs`."""

    def __init__(self, limits: Limits, jobs: Jobs, visitors: Visitors, examples: Path) -> None:
        self.limits, self.jobs, self.visitors, self.examples = limits, jobs, visitors, examples
        with gr.Blocks(title="snips", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400)) as self.blocks:
            gr.HTML(HEAD, padding=False)
            with gr.Row(equal_height=False):
                with gr.Column(scale=4, min_width=320):
                    self._add_picture()
                    self._add_settings()
                with gr.Column(scale=7, min_width=420):
                    self._add_results()
            self._connect()

    def _add_picture(self) -> None:
        first = load_image(self.examples / EXAMPLES[FIRST_EXAMPLE].file)
        self.picture = gr.HTML(views.picture(first[0], FIRST_EXAMPLE), elem_id="picture")
        self.upload = gr.File(label="Upload a picture", file_types=["image"], height=120, elem_id="upload")
        gr.HTML(f'<p class="snips-note">{self.limits.describe_upload()}</p>', padding=False)
        self.example = gr.Radio(list(EXAMPLES), value=FIRST_EXAMPLE, label="Or choose an example", elem_id="example")

    def _add_settings(self) -> None:
        example, limits = EXAMPLES[FIRST_EXAMPLE], self.limits
        self.mode = gr.Radio([SIMULATE, DEGRADED], value=_mode(example.simulate), label="The picture is", elem_id="mode")
        self.problem = gr.Dropdown(
            _choices(example.simulate), value=example.problem, label="What happened to it", elem_id="problem"
        )
        about_sigma = "Standard deviation, where black is 0 and white is 1"
        self.sigma = gr.Slider(
            0, 0.5, example.sigma, step=0.01, label="Noise", info=about_sigma, elem_id="sigma", buttons=[]
        )
        with gr.Row():
            self.samples = gr.Slider(1, limits.samples, SAMPLES, step=1, label="Samples", elem_id="samples", buttons=[])
            self.calls = gr.Slider(
                FEWEST_CALLS, limits.calls, CALLS, step=1, label="Denoiser calls", elem_id="calls", buttons=[]
            )
        with gr.Accordion("More", open=False):
            about_prior = "automatic: faces for colour pictures of 64 x 64, else the best for any picture"
            self.prior = gr.Dropdown(prior_names(), value=AUTOMATIC, label="Prior", info=about_prior, elem_id="prior")
            self.seed = gr.Number(0, label="Seed", info="The same seed gives the same samples", precision=0, minimum=0)

    def _add_results(self) -> None:
        with gr.Row():
            self.restore = gr.Button("Restore", variant="primary", elem_id="restore")
            self.cancel = gr.Button("Cancel", variant="stop", interactive=False, elem_id="cancel")
        self.status = gr.HTML(views.status(WELCOME), elem_id="status", padding=False)
        self.preview = gr.HTML(visible=False, elem_id="preview", padding=False)
        self.gallery = gr.Gallery(
            label="Results", columns=4, height="auto", object_fit="contain", visible=False, interactive=False,
            format="png", buttons=["fullscreen"], elem_id="gallery",
        )  # fmt: skip
        self.download = gr.DownloadButton("Download all as zip", visible=False, elem_id="download")
        self.verdicts = gr.HTML(visible=False, elem_id="verdicts", padding=False)

    def _connect(self) -> None:
        """Nothing here is offered as an API: the page has one purpose, and the library is the API."""
        form = [self.mode, self.problem, self.sigma, self.samples, self.calls, self.prior, self.seed]
        shown = [self.status, self.preview, self.gallery, self.download, self.verdicts, self.restore, self.cancel]
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        self.restore.click(self.on_restore, form, shown, concurrency_limit=None, trigger_mode="once", **quiet)
        self.cancel.click(self.on_cancel, None, [self.status], queue=False, **quiet)
        self.upload.upload(
            self.on_upload, [self.upload], [self.upload, self.picture, self.example, self.status], **quiet
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
            self.mode: _mode(example.simulate),
            self.problem: gr.Dropdown(_choices(example.simulate), value=example.problem),
            self.sigma: example.sigma,
            self.status: views.status(WELCOME),
        }

    def on_mode(self, mode: str, problem: str) -> Any:
        offered = problems(mode == SIMULATE)
        return gr.Dropdown(_choices(mode == SIMULATE), value=problem if problem in offered else offered[0])

    async def on_restore(
        self, mode: str, problem: str, sigma: float, samples: int, calls: int, prior: str, seed: int, request: gr.Request
    ) -> AsyncIterator[Updates]:
        """Queue the restoration, show how it goes, then its results. Without the page it stops, too."""
        visitor = self.visitors[_key(request)]
        try:
            task = Task(visitor.picture, mode == SIMULATE, problem, sigma, int(samples), int(calls), prior, int(seed))
            job = self.jobs.submit(_key(request), partial(self._work, task, visitor))
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

    def on_cancel(self, request: gr.Request) -> str:
        self.jobs.cancel(_key(request))
        return views.status("Stopping after the current step.")

    def on_unload(self, request: gr.Request) -> None:
        """The page was closed: stop its work, delete its files."""
        self.jobs.cancel(_key(request))
        self.visitors.forget(_key(request))

    def _work(self, task: Task, visitor: Visitor, job: Job) -> Updates:
        """In a thread of the queue: all that takes time."""
        try:
            result = run(task, self.limits, job.report)
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


HEAD = """<div class="snips-head"><h1>snips</h1><p>Several sharp pictures that could have produced the degraded one,
their mean, a map of what is uncertain, and a test of whether each of them explains the measurement.</p></div>"""
WELCOME = "Press Restore, or upload a picture of your own first."


def _key(request: gr.Request) -> str:
    return request.session_hash or ""


def _mode(simulate: bool) -> str:
    return SIMULATE if simulate else DEGRADED


def _choices(simulate: bool) -> list[tuple[str, str]]:
    return [(f"{name}: {PROBLEMS[name].summary}", name) for name in problems(simulate)]


def _line(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())


def _stopped(job: Job) -> str:
    if job.progress is None:
        return "Stopped before the first step."
    return f"Stopped after step {job.progress.step} of {job.progress.total}."
