"""The web page in a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from snips import Restoration
from web_pages import CHROMIUM, SWITCHES, Server, Visit, bomb, photo

pytest.importorskip("gradio", reason="the web page needs the extra `web`")
playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need the package playwright")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: install it with apt-get"),
    pytest.mark.xdist_group("browser"),  # one browser and one server at a time
]

LONG = {"samples": 16, "calls": 200}  # with the network: minutes
SHORT = {"samples": 2, "calls": 10}
MAX_PIXELS, MAX_MB = 128 * 128, 1
PICTURES = Path(__file__).parents[1] / "docs" / "images"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Ends as a user ends it, and must leave nothing behind."""
    folder = tmp_path_factory.mktemp("served")
    served = Server(folder, "--max-pixels", str(MAX_PIXELS), "--max-mb", str(MAX_MB))
    yield served
    assert served.stop() == 0, served.log.read_text()
    assert not list(folder.glob("snips-web-*"))
    assert "Traceback" not in served.log.read_text()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(server, browser):
    """Opens the page as a new visitor. Whatever a test does, nothing may be asked of another machine."""
    visits = []

    def open_page() -> Visit:
        visits.append(Visit(browser, server))
        return visits[-1]

    yield open_page
    for each in visits:
        each.context.close()
    assert [url for each in visits for url in each.outside] == []


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
    visitor.page.locator("#notes").wait_for(state="hidden")
    visitor.button("Cancel").click()
    visitor.status("Below are the earlier results.")
    assert visitor.page.locator("#notes .snips-doubt").inner_text() == told  # with what was said about them
    visitor.set(**SHORT)
    visitor.button("Restore").click()
    visitor.page.locator("#notes").wait_for(state="hidden")
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


def test_cancel_stops_the_work_and_frees_the_worker(visit):
    visitor = visit()
    visitor.set(**LONG)
    visitor.button("Restore").click()
    visitor.page.locator("#preview img").nth(1).wait_for()
    assert visitor.button("Restore").is_disabled()
    visitor.button("Cancel").click()
    stopped = visitor.status("Stopped after step")
    assert 1 <= int(stopped.split()[3]) < 100  # of 800
    assert not visitor.page.locator("#gallery").is_visible()
    visitor.page.get_by_label("Landscape, clean").check()  # the worker is free: something else runs at once
    visitor.caption("Landscape, clean")
    visitor.set(**SHORT)
    visitor.button("Restore").click()
    assert len(visitor.captions()) == 6


def test_cancel_keeps_what_is_finished(visit, tmp_path):
    """4 of 16 samples at a time: in the midst of the second four, the first are there, with their download."""
    visitor = visit()
    visitor.set(samples=16, calls=40)  # so that seconds are left for the click, also on a busy machine
    visitor.button("Restore").click()
    visitor.page.locator("#status").get_by_text(re.compile(r"Step (4[1-9]|[5-7]\d) of 160")).wait_for()
    visitor.button("Cancel").click()
    visitor.status("of 16 samples were finished and are kept")
    captions = visitor.captions()
    kept = sum(caption.startswith("Sample") for caption in captions)
    assert kept in (4, 8)  # 8 where the click came late
    with zipfile.ZipFile(visitor.download(tmp_path / "result.zip")) as packed:
        packed.extractall(tmp_path)
    result = Restoration.load(tmp_path / "snips-deblur_uniform")
    assert len(result.samples) == kept
    assert result.settings["interrupted"] == f"{kept} of 16"
    visitor.set(**LONG)  # and a run that is stopped before it has a sample leaves them
    visitor.button("Restore").click()
    visitor.page.locator("#preview img").nth(1).wait_for()
    assert not visitor.page.locator("#gallery").is_visible()
    visitor.button("Cancel").click()
    visitor.status("before a sample was finished. Below are the earlier results.")
    assert visitor.captions() == captions
    visitor.download(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "result.zip").read_bytes()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("truncated.png", "truncated.png cannot be read as an image"),
        ("words.png", "words.png cannot be read as an image"),
        ("words.txt", "words.txt cannot be read as an image"),
        ("large.npy", "large.npy has 129 x 128 pixels; at most 16,384 are restored here"),
        ("large.png", "large.png has 129 x 128 pixels; at most 16,384 are restored here"),
        ("bomb.png", "bomb.png has far more than 16,384 pixels"),
    ],
)
def test_bad_files_are_refused_in_one_line(name, words, visit, tmp_path):
    path = tmp_path / name
    if name == "truncated.png":
        whole = photo(path, 64, 64).read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    elif name.startswith("words"):
        path.write_text("not an image")
    elif name == "large.npy":
        np.save(path, np.zeros((128, 129), np.float32))
    elif name == "large.png":
        photo(path, 128, 129)
    else:
        bomb(path)
    visitor = visit()
    visitor.upload(path)
    line = visitor.status(words)
    assert "/" not in line  # no folder of the server
    assert visitor.page.locator("#status [role=alert]").count() == 1
    visitor.caption("Face, clean")  # what was chosen before stays
    visitor.upload(photo(tmp_path / "good.png"))
    visitor.caption("good.png")
    assert visitor.page.locator("#status [role=alert]").count() == 0


def test_a_file_of_too_many_bytes_is_not_taken(visit, tmp_path):
    path = tmp_path / "heavy.png"
    path.write_bytes(os.urandom(MAX_MB * 2**20 + 1))
    visitor = visit()
    visitor.upload(path)
    visitor.page.get_by_text("maximum allowed size").first.wait_for()
    visitor.caption("Face, clean")


def test_two_visitors_at_once(visit, tmp_path):
    """The second waits, may leave the queue and join it again, and gets a result of their own picture."""
    first, second = visit(), visit()
    first.set(**LONG)
    first.button("Restore").click()
    first.page.locator("#preview img").first.wait_for()
    second.upload(photo(tmp_path / "second.png"))
    second.caption("second.png")
    second.set(**SHORT)
    second.button("Restore").click()
    second.status("Waiting: 1 restoration before this one.")
    second.button("Cancel").click()
    second.status("Stopped before the first step.")
    assert first.page.locator("#preview img").first.is_visible()
    second.button("Restore").click()
    second.status("Waiting: 1 restoration before this one.")
    first.caption("Face, clean")
    first.button("Cancel").click()
    first.status("Stopped after step")
    assert len(second.captions()) == 6
    assert not first.page.locator("#gallery").is_visible()


def test_a_closed_page_leaves_no_files_and_no_work(visit, server, tmp_path):
    visitor = visit()
    visitor.upload(photo(tmp_path / "mine.png"))
    visitor.caption("mine.png")
    visitor.page.get_by_label("Face, clean").check()
    visitor.caption("Face, clean")
    visitor.set(**LONG)
    visitor.button("Restore").click()
    visitor.page.locator("#preview img").first.wait_for()
    assert server.visitor_folders()
    visitor.context.close()
    end = time.monotonic() + 60
    while server.visitor_folders() and time.monotonic() < end:
        time.sleep(0.2)
    assert server.visitor_folders() == []
    assert not list(server.folder.rglob("mine.png"))
    other = visit()
    other.page.get_by_label("Landscape, clean").check()
    other.caption("Landscape, clean")
    other.set(**SHORT)
    other.button("Restore").click()
    assert len(other.captions()) == 6


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
