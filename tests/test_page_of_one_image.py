"""The page of one image of several tells of this image alone."""

from __future__ import annotations

import html
from functools import partial

import pytest
import torch

from snips import InverseProblem, Restoration, make_operator, restoration
from snips.report.files import write_pictures
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


def test_saving_looks_at_each_image_once(tmp_path, monkeypatch):
    """A page that judged all images would make B pages cost B^2."""
    problem = InverseProblem(make_operator("denoise", (1, 16, 16)), torch.zeros(3, 1, 16, 16), 0.1)
    samples = torch.linspace(0, 1, 2 * 3 * 256).reshape(2, 3, 1, 16, 16)
    judged = {"faithfulness": 0, "std": 0}

    def counted(name, compute, problem, samples):
        judged[name] += samples.shape[1]
        return compute(problem, samples)

    monkeypatch.setattr(restoration, "faithfulness", partial(counted, "faithfulness", restoration.faithfulness))
    std = partial(counted, "std", lambda problem, samples: samples.std(0))
    monkeypatch.setattr(Restoration, "std", property(lambda result: std(result.problem, result.samples)))
    write_pictures(Restoration(problem, samples), tmp_path)
    assert judged == {"faithfulness": 2 * 3, "std": 2 * 3}  # for the table and the summary; for the PNG and the viewer
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid.png", "image_000", "image_001", "image_002"]


def test_one_image_of_a_result():
    problem = InverseProblem(
        make_operator("denoise", (1, 4, 4)), torch.arange(3.0).reshape(3, 1, 1, 1).expand(3, 1, 4, 4), 0.1
    )
    result = Restoration(problem, problem.y[None].repeat(2, 1, 1, 1, 1), {"seed": 1}, problem.y)
    for alone in (result[2], result[-1]):
        assert (alone.samples.shape, alone.settings) == ((2, 1, 1, 4, 4), {"seed": 1})
        assert all((values == 2).all() for values in (alone.samples, alone.problem.y, alone.alpha))
    with pytest.raises(IndexError):
        result[3]
