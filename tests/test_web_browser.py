"""The web page in a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from browser_marks import IN_BROWSER
from snips import Restoration
from web_pages import LONG, SHORT, Server, Visit, photo

pytestmark = IN_BROWSER
PICTURES = Path(__file__).parents[1] / "docs" / "images"


def test_requests_to_other_machines_would_be_noticed(visit):
    visitor = visit()
    visitor.page.evaluate("fetch('http://192.0.2.1/font.woff2').catch(() => null)")
    assert visitor.outside == ["http://192.0.2.1/font.woff2"]
    visitor.outside.clear()


def test_upload_restore_and_download(visit, tmp_path):
    visitor = visit()
    visitor.upload(photo(tmp_path / "mine.png"))
    visitor.caption("mine.png: 32 x 32, colour")
    visitor.set(samples=3, calls=10, sigma=0.05)
    visitor.button("Restore").click()
    captions = visitor.captions()
    assert captions[:2] == ["Original", "Degraded"]
    assert [caption.split(":")[0] for caption in captions[2:5]] == ["Sample 1", "Sample 2", "Sample 3"]
    assert all(caption.split(": ")[1] in ("faithful", "not faithful") for caption in captions[2:5])
    assert captions[5:] == ["Mean of the samples", "Standard deviation"]
    assert "PSNR" in visitor.status("3 samples in")
    assert visitor.page.locator("#verdicts tbody tr").count() == 3

    archive = visitor.download(tmp_path / "result.zip")
    with zipfile.ZipFile(archive) as packed:
        assert packed.testzip() is None
        packed.extractall(tmp_path / "unpacked")
    folder = tmp_path / "unpacked" / "snips-deblur_uniform"
    pictures = {"sample_00.png", "sample_01.png", "sample_02.png", "mean.png", "std.png", "degraded.png", "grid.png"}
    assert {file.name for file in folder.iterdir()} >= pictures | {"result.json", "samples.safetensors"}
    result = Restoration.load(folder)
    assert result.samples.shape == (3, 1, 3, 32, 32)
    assert result.problem.sigma_0 == 0.05


def test_an_already_degraded_picture(visit, tmp_path):
    visitor = visit()
    visitor.upload(photo(tmp_path / "small.png", 16, 24))
    visitor.caption("small.png: 24 x 16")
    visitor.page.get_by_label("Already degraded").check()
    visitor.page.get_by_label("Estimate the noise").wait_for()  # the list of problems has changed, too
    visitor.choose("What happened to it", "sr2:")
    visitor.set(**SHORT)
    visitor.button("Restore").click()
    assert "Original" not in visitor.captions()
    visitor.download(tmp_path / "result.zip")
    with zipfile.ZipFile(tmp_path / "result.zip") as packed:
        packed.extractall(tmp_path)
    assert Restoration.load(tmp_path / "snips-sr2").samples.shape == (2, 1, 3, 32, 48)


def test_the_page_fits_a_phone_and_does_not_jump(visit, tmp_path):
    """No sideways scrolling with results on it, and on a desktop the same width before and after them."""
    visitor = visit()
    container = visitor.page.locator(".gradio-container")
    before = container.bounding_box()["width"]
    visitor.upload(photo(tmp_path / "mine.png"))
    visitor.caption("mine.png")
    visitor.set(**SHORT)
    visitor.button("Restore").click()
    visitor.captions()
    visitor.page.locator("#verdicts tbody tr").first.wait_for()
    assert container.bounding_box()["width"] == before
    visitor.page.set_viewport_size({"width": 420, "height": 800})
    visitor.page.wait_for_function("document.documentElement.clientWidth <= 420")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 420
    tops = {box.bounding_box()["y"] for box in visitor.page.locator("#gallery .gallery-item").all()}
    assert len(tops) >= 3  # rows of two pictures


def test_the_noise_can_be_estimated_or_given(visit, tmp_path):
    """Offered for degraded pictures alone; what was estimated is said, with a warning where it is a guess."""
    visitor = visit()
    estimate, noise = (
        visitor.page.get_by_label("Estimate the noise"),
        visitor.page.get_by_label("number input for Noise"),
    )
    assert not estimate.is_visible()
    visitor.upload(photo(tmp_path / "small.png", 24, 24))
    visitor.caption("small.png")
    visitor.page.get_by_label("Already degraded").check()
    estimate.wait_for()
    assert estimate.is_checked()
    assert noise.is_disabled()
    visitor.set(**SHORT)
    visitor.button("Restore").click()
    visitor.captions()
    told = visitor.page.locator("#notes .snips-doubt").inner_text()
    assert told.startswith("Beware: sigma_0 = ")
    assert "a guess" in told
    estimate.uncheck()
    visitor.set(sigma=0.2, **LONG)
    visitor.button("Restore").click()
    visitor.page.locator("#notes .snips-doubt").wait_for(state="hidden")
    visitor.button("Cancel").click()
    visitor.status("Below are the earlier results.")
    assert visitor.page.locator("#notes .snips-doubt").inner_text() == told  # with what was said about them
    visitor.set(**SHORT)
    visitor.button("Restore").click()
    visitor.page.locator("#notes .snips-doubt").wait_for(state="hidden")
    visitor.captions()
    with zipfile.ZipFile(visitor.download(tmp_path / "result.zip")) as packed:
        packed.extractall(tmp_path)
    assert Restoration.load(tmp_path / "snips-deblur_uniform").problem.sigma_0 == 0.2


def test_numbers_are_a_picture_too(visit, tmp_path):
    np.save(tmp_path / "numbers.npy", np.random.default_rng(0).random((16, 24), np.float32))
    visitor = visit()
    visitor.upload(tmp_path / "numbers.npy")
    visitor.caption("numbers.npy: 24 x 16, grey")
    visitor.set(**SHORT)
    visitor.button("Restore").click()
    assert "Original" in visitor.captions()


def test_transparency_comes_back(visit, tmp_path):
    with Image.open(photo(tmp_path / "clear.png")) as opaque:
        picture = opaque.convert("RGBA")
    picture.putalpha(Image.linear_gradient("L").resize(picture.size))
    picture.save(tmp_path / "clear.png")
    visitor = visit()
    visitor.upload(tmp_path / "clear.png")
    visitor.caption("clear.png: 32 x 32, colour, its transparency is kept")
    visitor.set(**SHORT)
    visitor.button("Restore").click()
    visitor.captions()
    with zipfile.ZipFile(visitor.download(tmp_path / "result.zip")) as packed:
        packed.extractall(tmp_path)
    with Image.open(tmp_path / "snips-deblur_uniform" / "sample_00.png") as sample:
        assert sample.getchannel("A").tobytes() == picture.getchannel("A").tobytes()


def test_an_example_brings_its_settings(visit):
    visitor = visit()
    visitor.page.get_by_label("Small face, degraded").check()
    visitor.caption("Small face, degraded")
    assert visitor.page.get_by_label("Already degraded").is_checked()
    assert visitor.page.get_by_label("What happened to it").input_value().startswith("sr4:")
    assert visitor.page.get_by_label("number input for Noise").input_value() == "0.05"


@pytest.mark.slow
def test_a_click_just_works(browser, tmp_path):
    """With all settings as they are, and the network: also the pictures of the documentation."""
    (tmp_path / "served").mkdir()
    server = Server(tmp_path / "served")
    visitor = Visit(browser, server)
    visitor.button("Restore").click()
    visitor.page.locator("#preview img").nth(1).wait_for()
    visitor.page.locator("#status").get_by_text(re.compile(r"Step [1-3]\d of 80")).wait_for()
    _picture(visitor, "web-running.png")
    visitor.page.locator("#gallery .gallery-item").first.wait_for(timeout=300_000)
    captions = visitor.captions()
    assert len(captions) == 12
    assert sum("not faithful" in caption for caption in captions) <= 2
    visitor.page.wait_for_function("[...document.querySelectorAll('#gallery img')].every(i => i.complete)")
    _picture(visitor, "web.png")
    visitor.context.close()
    assert server.stop() == 0
    assert visitor.outside == []


def _picture(visitor: Visit, name: str) -> None:
    """With few colours, so that the repository stays small."""
    if os.environ.get("SNIPS_SCREENSHOTS"):
        visitor.page.evaluate("window.scrollTo(0, 0)")
        visitor.page.screenshot(path=PICTURES / name, full_page=True)
        with Image.open(PICTURES / name) as screenshot:
            few_colours = screenshot.convert("RGB").quantize(160)
        few_colours.save(PICTURES / name, optimize=True)
