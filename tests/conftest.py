"""Shared by all tests."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import HealthCheck, settings

from snips.priors import GaussianMixture, registry
from snips.priors.precision import WITHOUT_AMX, bfloat16_works
from web_pages import CHROMIUM, MAX_MB, MAX_PIXELS, SWITCHES, Server, Visit

# Where the processor's AMX does not work, tests of bfloat16 do without; PyTorch asks only once, so it is set here.
if not bfloat16_works():
    os.environ.update([WITHOUT_AMX])
    bfloat16_works.cache_clear()

# Seeds are fixed: a test that fails once fails again.
settings.register_profile("snips", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("snips")


@pytest.fixture(autouse=True)
def _fixed_seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def mixture() -> GaussianMixture:
    """Two overlapping components over 1x4x4 images, in float64."""
    random = torch.Generator().manual_seed(7)
    means = 0.5 + 0.3 * torch.randn(2, 16, generator=random, dtype=torch.float64)
    roots = 0.3 * torch.randn(2, 16, 16, generator=random, dtype=torch.float64)
    covariances = roots @ roots.mT + 0.01 * torch.eye(16)
    return GaussianMixture(torch.tensor([0.4, 0.6]), means, covariances, (1, 4, 4)).double()


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """An installation whose bundled weights are in an empty folder."""
    monkeypatch.setattr(registry, "WEIGHTS", tmp_path / "weights")
    (tmp_path / "weights").mkdir()
    return tmp_path / "weights"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Of the web page. It ends as a user ends it, and must leave nothing behind."""
    pytest.importorskip("gradio", reason="the web page needs the extra `web`")
    folder = tmp_path_factory.mktemp("served")
    served = Server(folder, "--max-pixels", str(MAX_PIXELS), "--max-mb", str(MAX_MB))
    yield served
    assert served.stop() == 0, served.log.read_text()
    assert not list(folder.glob("snips-web-*"))
    assert "Traceback" not in served.log.read_text()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need the package playwright")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, server):
    """Opens the page as a new visitor. Whatever a test does, nothing may be asked of another machine."""
    visits = []

    def open_page() -> Visit:
        visits.append(Visit(browser, server))
        return visits[-1]

    yield open_page
    for each in visits:
        each.context.close()
    assert [url for each in visits for url in each.outside] == []
