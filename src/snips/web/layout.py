"""What is on the page, with the settings that are there before anything is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from snips.images import load_image
from snips.problems import PROBLEMS
from snips.web import views
from snips.web.examples import EXAMPLES, FIRST_EXAMPLE
from snips.web.limits import Limits
from snips.web.task import AUTOMATIC, FEWEST_OFFERED, prior_names, problems

SIMULATE, DEGRADED = "Clean: degrade it first, then restore it", "Already degraded: restore it"
SAMPLES, CALLS = 8, 40  # for a face of 64 x 64 about 10 s of one core
HEAD = """<div class="snips-head"><h1>snips</h1><p>Several sharp pictures that could have produced the degraded one,
their mean, a map of what is uncertain, and a test of whether each of them explains the measurement.</p></div>"""
WELCOME = "Press Restore, or upload a picture of your own first."


class Layout:
    """The components of the page; made inside the `with` of a Blocks object."""

    def __init__(self, limits: Limits, examples: Path) -> None:
        self.limits, self.examples = limits, examples
        gr.HTML(HEAD, padding=False)
        with gr.Row(equal_height=False):
            with gr.Column(scale=4, min_width=320):
                self._add_picture()
                self._add_settings()
            with gr.Column(scale=7, min_width=320):
                self._add_results()

    def _add_picture(self) -> None:
        first = load_image(self.examples / EXAMPLES[FIRST_EXAMPLE].file)
        self.picture = gr.HTML(views.picture(first[0], FIRST_EXAMPLE), elem_id="picture")
        self.upload = gr.File(label="Upload a picture", height=120, elem_id="upload")  # wrong kinds are refused by us
        gr.HTML(f'<p class="snips-note">{self.limits.describe_upload()}</p>', padding=False)
        self.example = gr.Radio(list(EXAMPLES), value=FIRST_EXAMPLE, label="Or choose an example", elem_id="example")

    def _add_settings(self) -> None:
        example, limits = EXAMPLES[FIRST_EXAMPLE], self.limits
        self.mode = gr.Radio(
            [SIMULATE, DEGRADED], value=mode_name(example.simulate), label="The picture is", elem_id="mode"
        )
        # a list for each mode: if one were exchanged while somebody picks from it, they would get a neighbour of it
        self.simulated = problem_list(True, example.problem, visible=example.simulate)
        self.degraded = problem_list(False, example.problem, visible=not example.simulate)
        about_sigma = "Standard deviation; black is 0, white is 1"
        self.sigma = gr.Slider(
            0, 0.5, example.sigma, step=0.01, label="Noise", info=about_sigma, elem_id="sigma", buttons=[]
        )
        self.estimate = gr.Checkbox(
            False, label="Estimate the noise from the picture", visible=not example.simulate, elem_id="estimate"
        )
        with gr.Row():
            wide: dict[str, Any] = {"step": 1, "min_width": 180, "buttons": []}  # one above the other on a phone
            self.samples = gr.Slider(1, limits.samples, SAMPLES, label="Samples", elem_id="samples", **wide)
            self.calls = gr.Slider(FEWEST_OFFERED, limits.calls, CALLS, label="Denoiser calls", elem_id="calls", **wide)
        with gr.Accordion("More", open=False):
            about_prior = "automatic: faces for colour pictures of 64 x 64, else the best for any picture"
            self.prior = gr.Dropdown(prior_names(), value=AUTOMATIC, label="Prior", info=about_prior, elem_id="prior")
            self.seed = gr.Number(0, label="Seed", info="The same seed gives the same samples", precision=0, minimum=0)

    def _add_results(self) -> None:
        with gr.Row():
            self.restore = gr.Button("Restore", variant="primary", elem_id="restore")
            self.cancel = gr.Button("Cancel", variant="stop", interactive=False, elem_id="cancel")
        self.status = gr.HTML(views.status(WELCOME), elem_id="status", padding=False)
        self.notes = gr.HTML(visible=False, elem_id="notes", padding=False)
        self.preview = gr.HTML(visible=False, elem_id="preview", padding=False)
        self.gallery = gr.Gallery(
            label="Results", columns=4, height="auto", object_fit="contain", visible=False, interactive=False,
            format="png", buttons=["fullscreen"], elem_id="gallery",
        )  # fmt: skip
        self.download = gr.DownloadButton("Download all as zip", visible=False, elem_id="download")
        self.verdicts = gr.HTML(visible=False, elem_id="verdicts", padding=False)


def mode_name(simulate: bool) -> str:
    return SIMULATE if simulate else DEGRADED


def problem_list(simulate: bool, problem: str, visible: bool) -> gr.Dropdown:
    """The problems that are offered in a mode, with one of them chosen."""
    offered = problems(simulate)
    choices = [(f"{name}: {PROBLEMS[name].summary}", name) for name in offered]
    value, place = problem if problem in offered else offered[0], "simulated" if simulate else "degraded"
    return gr.Dropdown(choices, value=value, label="What happened to it", visible=visible, elem_id=f"problem-{place}")
