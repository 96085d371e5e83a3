"""The measurement of the page's load speaks to the page as it is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("gradio", reason="needs the extra `web`")

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def _one_thread():
    """As the server has: threads decide about rounding."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_one_thread")
def test_each_of_two_visitors_gets_their_own_samples(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    spec = importlib.util.spec_from_file_location("web_load", BENCHMARKS / "web_load.py")
    assert spec is not None
    assert spec.loader is not None
    web_load = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "web_load", web_load)  # its dataclasses look themselves up
    spec.loader.exec_module(web_load)
    found = web_load.measure(visitors=2, rounds=1, waiting=8, folder=tmp_path)
    assert (found["own"], found["wrong"], found["lost"], found["folders_left"], found["exit_code"]) == (2, 0, 0, 0, 0)
