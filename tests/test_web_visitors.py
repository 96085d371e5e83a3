"""Visitors of the web page in a real browser: what they cancel, wait for and leave, and what is refused."""

from __future__ import annotations

import os
import re
import time
import zipfile

import numpy as np
import pytest

from browser_marks import IN_BROWSER
from snips import Restoration
from web_pages import LONG, MAX_MB, SHORT, bomb, photo

pytestmark = IN_BROWSER


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
