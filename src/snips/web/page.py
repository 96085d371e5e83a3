"""What happens on the page when a picture is chosen, a setting is changed, or the page is closed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import gradio as gr

from snips.images import load_image
from snips.photos.photo import Photo
from snips.web import views
from snips.web.examples import EXAMPLES
from snips.web.jobs import Jobs
from snips.web.layout import SIMULATE, WELCOME, mode_name
from snips.web.limits import Limits, load_upload
from snips.web.restoring import EXPECTED_ERRORS, Restoring, Updates, key_of, line_of
from snips.web.sessions import Sessions
from snips.web.task import problems
from snips.web.visitors import Visitors

LEFTOVERS = (3600, 86400)  # each hour, delete files of more than a day: uploads that were never used


class Page(Restoring):
    """One page for all visitors. It keeps nothing of them but what is in `visitors`, `jobs` and `sessions`."""

    def __init__(self, limits: Limits, jobs: Jobs, visitors: Visitors, examples: Path) -> None:
        self.jobs, self.visitors, self.posing = jobs, visitors, asyncio.Semaphore(limits.jobs)
        with gr.Blocks(title="snips", analytics_enabled=False, fill_width=True, delete_cache=LEFTOVERS) as self.blocks:
            super().__init__(limits, examples)
            self._connect()
        self.sessions = Sessions(self.blocks)

    def _connect(self) -> None:
        """Nothing here is offered as an API: the page has one purpose, and the library is the API."""
        form = [
            self.mode,
            self.simulated,
            self.degraded,
            self.sigma,
            self.estimate,
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
            self.notes,
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
        chosen = [self.picture, self.mode, self.simulated, self.degraded, self.sigma, self.estimate, self.status]
        self.example.input(self.on_example, [self.example], chosen, **quiet)
        changed = [self.simulated, self.degraded, self.sigma, self.estimate]
        self.mode.input(self.on_mode, [self.mode, self.simulated, self.degraded], changed, **quiet)
        self.estimate.input(self.on_estimate, [self.estimate], [self.sigma], **quiet)
        self.blocks.unload(self.on_unload)

    def on_upload(self, uploaded: str, request: gr.Request) -> Updates:
        """Take the file as this visitor's picture, or say what is wrong with it and keep the one they had."""
        path = Path(uploaded)
        try:
            photo = load_upload(path, self.limits)
            self.visitors[key_of(request)].take_picture(path)
        except EXPECTED_ERRORS as error:
            path.unlink(missing_ok=True)
            return {self.upload: None, self.status: views.status(line_of(error), "error")}
        return {
            self.upload: None,
            self.picture: views.picture(photo.pixels[0], _caption(path.name, photo)),
            self.example: None,
            self.status: views.status("Say what happened to the picture, then press Restore."),
        }

    def on_example(self, name: str, request: gr.Request) -> Updates:
        example = EXAMPLES[name]
        self.visitors[key_of(request)].picture = path = self.examples / example.file
        return {
            self.picture: views.picture(load_image(path)[0], name),
            self.mode: mode_name(example.simulate),
            **self._shown_list(example.simulate, example.problem),
            self.sigma: gr.Slider(value=example.sigma, interactive=True),
            self.estimate: gr.Checkbox(value=False, visible=not example.simulate),
            self.status: views.status(WELCOME),
        }

    def on_mode(self, mode: str, simulated: str, degraded: str) -> Updates:
        """Who brings a degraded picture seldom knows its noise; who has a clean one degraded chooses it."""
        simulate = mode == SIMULATE
        return {
            **self._shown_list(simulate, degraded if simulate else simulated),
            self.sigma: gr.Slider(interactive=simulate),
            self.estimate: gr.Checkbox(value=not simulate, visible=not simulate),
        }

    def _shown_list(self, simulate: bool, problem: str) -> Updates:
        """The problems of a mode, with this one chosen where it is among them; the other mode's list is hidden."""
        shown, hidden = (self.simulated, self.degraded) if simulate else (self.degraded, self.simulated)
        chosen = {"value": problem} if problem in problems(simulate) else {}
        return {shown: gr.update(visible=True, **chosen), hidden: gr.update(visible=False)}

    def on_estimate(self, estimate: bool) -> Any:
        return gr.Slider(interactive=not estimate)

    def on_unload(self, request: gr.Request) -> None:
        """The page was closed: stop its work, delete its files."""
        self.jobs.cancel(key_of(request))
        self.visitors.forget(key_of(request))
        self.sessions.forget(key_of(request))


def _caption(name: str, photo: Photo) -> str:
    channels, height, width = photo.pixels.shape[1:]
    transparent = "" if photo.alpha is None else ", its transparency is kept"
    kind = {1: "grey", 3: "colour"}.get(channels, f"{channels} channels")
    return f"{name}: {width} x {height}, {kind}{transparent}"
