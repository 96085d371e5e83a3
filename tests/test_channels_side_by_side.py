"""Images of 2 channels, or more than 3: their pages show one channel beside the other, and read the right one."""

from __future__ import annotations

import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

from snips import InverseProblem, Restoration, make_operator
from snips.photos.photo import as_photo
from snips.report.page import page
from web_pages import CHROMIUM, SWITCHES

HEIGHT, WIDTH = 6, 10


def result_of(channels: int) -> Restoration:
    shape = (channels, HEIGHT, WIDTH)
    problem = InverseProblem(make_operator("denoise", shape), torch.rand(1, *shape), 0.1)
    return Restoration(problem, torch.rand(3, 1, *shape), {"sampler": "none"})


def data_of(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    assert found is not None
    return json.loads(found[1])


def opened(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


@pytest.mark.parametrize(("channels", "planes"), [(1, 1), (2, 2), (3, 1), (5, 5)])
def test_all_pictures_of_a_page_have_one_layout(channels, planes):
    result = result_of(channels)
    data = data_of(page(result))
    assert data["size"] == [HEIGHT, planes * WIDTH]
    assert data["planes"] == planes
    pictures = [picture["uri"] for picture in data["pictures"]] + [data["degraded"], data["levels"]]
    assert {opened(uri).size for uri in pictures} == {(planes * WIDTH, HEIGHT)}
    levels = np.asarray(opened(data["levels"])) / 255 * data["top"]
    std = result.std[0].square().mean(0).sqrt() if channels == 3 else torch.cat(list(result.std[0]), 1)
    np.testing.assert_allclose(levels, std.clamp(max=data["top"]), atol=data["top"] / 500)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: install it with apt-get")
@pytest.mark.xdist_group("browser")
def test_the_pointer_reads_channel_and_column(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need the package playwright")
    result = result_of(2)
    (tmp_path / "report.html").write_text(page(result), encoding="utf-8")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        tab = browser.new_page(viewport={"width": 1000, "height": 1400})
        tab.goto((tmp_path / "report.html").as_uri())
        box = tab.locator("#stage").bounding_box()
        tab.mouse.move(box["x"] + (WIDTH + 3.5) / (2 * WIDTH) * box["width"], box["y"] + 2.5 / HEIGHT * box["height"])
        text = tab.locator("#readout").inner_text()
        browser.close()
    assert text.startswith("channel 2, column 3, row 2: mean ")
    mean, spread = map(float, re.findall(r"\d\.\d+", text))
    assert mean == pytest.approx(float(result.mean[0, 1, 2, 3]), abs=0.006)
    assert spread == pytest.approx(float(result.std[0, 1, 2, 3]), abs=0.003)


@pytest.mark.parametrize(("channels", "planes", "kind"), [(1, 1, "grey"), (2, 2, "2 channels"), (3, 1, "colour")])
def test_the_web_page_shows_them_as_they_are(channels, planes, kind):
    pytest.importorskip("gradio", reason="the web page needs the extra `web`")
    from snips.web.downloads import enlarged
    from snips.web.page import _caption

    image = torch.rand(channels, 24, 40)
    assert _caption("a.npy", as_photo(image)) == f"a.npy: 40 x 24, {kind}"
    shown = enlarged(image, (24, 40))
    assert shown.width / shown.height == planes * 40 / 24
