"""The measurement of the page's load speaks to the page as it is."""

from __future__ import annotations

import pytest
import torch

from scripts import ROOT, load_script

pytest.importorskip("gradio", reason="needs the extra `web`")


@pytest.fixture
def _one_thread():
    """As the server has: threads decide about rounding."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_one_thread")
def test_each_of_two_visitors_gets_their_own_samples(tmp_path):
    web_load = load_script(ROOT / "benchmarks" / "web_load.py")
    found = web_load.measure(visitors=2, rounds=1, waiting=8, folder=tmp_path)
    assert (found["own"], found["wrong"], found["lost"], found["folders_left"], found["exit_code"]) == (2, 0, 0, 0, 0)
