"""The page of one image of several tells of this image alone."""

from __future__ import annotations

import html

import torch

from snips import InverseProblem, Restoration, make_operator
from snips.report.page import page


def test_the_summary_is_that_of_the_image():
    truth = torch.rand(2, 1, 16, 16)
    problem = InverseProblem.simulate(make_operator("denoise", (1, 16, 16)), truth, 0.1)
    samples = truth + torch.tensor([0.01, 0.3]).reshape(2, 1, 1, 1) * torch.randn(3, *truth.shape)
    result = Restoration(problem, samples, {"sampler": "none"})
    for b in range(2):
        alone = Restoration(problem[b], samples[:, b : b + 1], {"sampler": "none"})
        text = page(result, b)
        assert f"<pre>{html.escape(repr(alone))}</pre>" in text
        assert html.escape(repr(result)) not in text
