"""The page of a result in a real browser, opened from the disk as people do."""

from __future__ import annotations

import re
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from browser_marks import IN_BROWSER
from report_cases import SHAPE, result_of
from snips import InverseProblem, Restoration, make_operator
from snips.report.colours import std_plane
from snips.report.page import page
from web_pages import CHROMIUM, SWITCHES

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need the package playwright")
pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def result():
    return result_of("sr2")


@pytest.fixture
def opened(result, tmp_path):
    with browsing(result, tmp_path) as tab:
        yield tab


@contextmanager
def browsing(result, tmp_path):
    """The page of a result in a browser that must not complain."""
    (tmp_path / "report.html").write_text(page(result), encoding="utf-8")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        tab, troubles = browser.new_page(viewport={"width": 1000, "height": 1400}), []
        tab.on("console", lambda message: troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("request", lambda request: troubles.append(request.url) if request.url.startswith("http") else None)
        tab.goto((tmp_path / "report.html").as_uri())
        yield tab
        browser.close()
    assert not troubles


def test_the_slider_moves_the_seam(opened):
    assert opened.locator("#left").evaluate("it => it.style.clipPath") == "inset(0px 50% 0px 0px)"
    opened.locator("#slider").fill("20")
    assert opened.locator("#left").evaluate("it => it.style.clipPath") == "inset(0px 80% 0px 0px)"
    assert opened.locator("#seam").evaluate("it => it.style.left") == "20%"


def test_a_thumbnail_chooses_the_picture_and_its_panel(opened):
    opened.get_by_role("button", name="sample 2").click()
    assert opened.locator("#chosen").inner_text() == "sample 2"
    assert opened.locator("#right").get_attribute("src") == opened.locator("#thumbs img").nth(1).get_attribute("src")
    shown = opened.locator("[data-panel]").evaluate_all(
        "all => all.filter(it => !it.hidden).map(it => it.dataset.panel)"
    )
    assert shown == ["1"]


def test_the_page_fits_a_phone(opened):
    """No sideways scrolling of the page, and no number that is broken into two lines."""
    opened.set_viewport_size({"width": 420, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 420
    heights = opened.locator(".numbers td").evaluate_all("all => all.map(it => it.offsetHeight)")
    assert len(heights) == 3 * 7
    assert max(heights) < 40


@pytest.mark.parametrize(("row", "column"), [(3, 5), (12, 20)])
def test_pointing_at_a_pixel_reads_its_mean_and_spread(row, column, opened, result):
    box, (_, height, width) = opened.locator("#stage").bounding_box(), SHAPE
    opened.mouse.move(box["x"] + (column + 0.5) / width * box["width"], box["y"] + (row + 0.5) / height * box["height"])
    text = opened.locator("#readout").inner_text()
    assert text.startswith(f"column {column}, row {row}: mean ")
    *mean, spread = map(float, re.findall(r"\d\.\d+", text))
    np.testing.assert_allclose(mean, result.mean[0, :, row, column].clamp(0, 1), atol=0.006)
    assert spread == pytest.approx(float(std_plane(result.std[0])[row, column]), abs=0.002)


def test_a_narrow_picture_does_not_make_the_page_endless(tmp_path):
    shape = (1, 64, 1)
    problem = InverseProblem(make_operator("denoise", shape), torch.rand(1, *shape), 0.1)
    with browsing(Restoration(problem, torch.rand(2, 1, *shape)), tmp_path) as tab:
        assert tab.evaluate("document.documentElement.scrollHeight") < 5000
        box = tab.locator("#stage").bounding_box()
        assert box["height"] == pytest.approx(64 * box["width"], rel=0.01)


def test_a_spread_below_the_steps_of_the_page_is_called_that(tmp_path):
    shape = (1, 8, 8)
    problem = InverseProblem(make_operator("denoise", shape), torch.full((1, *shape), 0.5), 0.1)
    samples = torch.full((2, 1, *shape), 0.5)
    samples[1, 0, 0, 4:] = 0.9
    with browsing(Restoration(problem, samples), tmp_path) as tab:
        box = tab.locator("#stage").bounding_box()
        for row, expected in ((1, "± less than 0.001"), (6, "± 0.282")):
            tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + (row + 0.5) / 8 * box["height"])
            assert tab.locator("#readout").inner_text().endswith(expected)
