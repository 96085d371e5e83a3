"""What the page does with the form: which problem is run, and that it says so."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from snips import InverseProblem, make_operator, restore
from snips.web.task import problems

pytest.importorskip("gradio", reason="the web page needs the extra `web`")

from snips.web import views
from snips.web.layout import DEGRADED, SIMULATE, problem_list
from snips.web.limits import Limits
from snips.web.page import Page


@pytest.fixture
def page():
    """Its parts by name, without the page of Gradio, which would leave an event loop open."""
    page = Page.__new__(Page)
    for part in ("simulated", "degraded", "sigma", "estimate"):
        setattr(page, part, part)
    return page


@pytest.mark.parametrize("simulate", [True, False])
def test_a_mode_has_a_list_of_its_own(simulate):
    shown = problem_list(simulate, "cs4", visible=simulate)
    assert [value for _, value in shown.choices] == problems(simulate)
    assert shown.value == ("cs4" if simulate else "denoise")
    assert shown.visible == simulate


@pytest.mark.parametrize(("mode", "shown", "hidden"), [(SIMULATE, 0, 1), (DEGRADED, 1, 0)])
def test_no_list_changes_under_the_pointer(mode, shown, hidden, page):
    """One that was exchanged while somebody picked from it gave them the neighbour of their choice."""
    updates = page.on_mode(mode, "sr4", "sr4")
    lists = [updates["simulated"], updates["degraded"]]
    assert lists[shown] == {"visible": True, "value": "sr4", "__type__": "update"}
    assert lists[hidden] == {"visible": False, "__type__": "update"}


def test_a_choice_that_the_other_list_does_not_have_leaves_it_as_it_was(page):
    assert "value" not in page.on_mode(DEGRADED, "cs4", "sr2")["degraded"]


def test_the_summary_says_what_was_run():
    problem = InverseProblem(make_operator("sr2", (1, 16, 16)), torch.full((1, 1, 8, 8), 0.5), 0.05)
    line = views.summary(restore(problem, "gaussian", samples=2, nfe=4))
    assert "for sr2 (2x larger, from block averages) with noise 0.05" in line


def test_operators_are_built_one_at_a_time(page, monkeypatch):
    """Each costs an SVD, before the queue: visitors who come together must not take all the machine for it."""
    page.status, page.limits, page.posing = "status", Limits(), asyncio.Semaphore(1)
    page.visitors = defaultdict(lambda: SimpleNamespace(picture=Path("photo.png")))
    together, pause = threading.Barrier(2), 0.2

    def build(task, limits):
        try:
            together.wait(pause)
        except threading.BrokenBarrierError:
            raise ValueError("built alone") from None
        raise ValueError("built beside another")

    monkeypatch.setattr("snips.web.restoring.build_problem", build)

    async def visit(key):
        form = (SIMULATE, "sr4", "denoise", 0.1, False, 2, 10, "automatic", 0)
        return [update async for update in page.on_restore(*form, SimpleNamespace(session_hash=key))]

    async def all_visits():
        return await asyncio.gather(*map(visit, "abc"))

    said = [str(updates[-1]["status"]) for updates in asyncio.run(all_visits())]
    assert len(said) == 3
    assert all("built alone" in line for line in said)
