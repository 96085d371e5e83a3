"""The web page without a browser: limits, visitors, the command."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tifffile
from PIL import Image
from typer.testing import CliRunner

from snips.cli import app
from snips.web.limits import Limits, load_upload
from snips.web.server import is_local
from snips.web.visitors import Visitors
from web_pages import bomb, photo

LIMITS = Limits(upload_bytes=100_000, pixels=64 * 64)


def test_uploads_within_the_limits(tmp_path):
    assert load_upload(photo(tmp_path / "photo.png", 64, 64), LIMITS).pixels.shape == (1, 3, 64, 64)


def test_uploads_beyond_the_limits(tmp_path):
    (tmp_path / "heavy.png").write_bytes(bytes(100_001))
    (tmp_path / "words.png").write_text("words")
    truncated = photo(tmp_path / "truncated.png")
    truncated.write_bytes(truncated.read_bytes()[:-200])
    refused = {
        tmp_path / "heavy.png": r"^heavy.png has 0.0954 MB; at most 0.0954 MB",
        photo(tmp_path / "large.png", 64, 65): r"^large.png has 65 x 64 pixels; at most 4,096 are restored here",
        bomb(tmp_path / "bomb.png"): r"^bomb.png has far more than 4,096 pixels",
        tmp_path / "words.png": r"^words.png cannot be read as an image",
        truncated: r"^truncated.png cannot be read as an image",
    }
    for path, words in refused.items():
        with pytest.raises(ValueError, match=words) as caught:
            load_upload(path, LIMITS)
        assert str(tmp_path) not in str(caught.value)


def test_a_large_picture_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr("snips.web.limits.load_photo", lambda path: pytest.fail("it was decoded"))
    with pytest.raises(ValueError, match="65 x 64"):
        load_upload(photo(tmp_path / "large.png", 64, 65), LIMITS)


def test_a_large_tiff_that_only_tifffile_knows_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    tifffile.imwrite(tmp_path / "large.tif", np.zeros((64, 65, 3), np.float32), photometric="rgb", compression="zlib")
    monkeypatch.setattr("snips.web.limits.load_photo", lambda path: pytest.fail("it was decoded"))
    with pytest.raises(ValueError, match="large.tif has 65 x 64 pixels"):
        load_upload(tmp_path / "large.tif", LIMITS)


def test_a_narrow_picture_may_not_be_of_any_length(tmp_path):
    """Its SVD grows with the cube of the longest side."""
    limits = Limits(pixels=10_000)
    assert load_upload(photo(tmp_path / "long.png", 2, 2048), limits).pixels.shape[-1] == 2048
    with pytest.raises(ValueError, match=r"^longer.png has 2049 x 2 pixels; at most 2,048 on a side are restored here"):
        load_upload(photo(tmp_path / "longer.png", 2, 2049), limits)
    assert Limits(pixels=4096 * 1024).side == 4096


def test_only_known_formats_are_opened_at_all(tmp_path):
    Image.new("L", (65, 64)).save(tmp_path / "large.pcx")
    with pytest.raises(ValueError, match="cannot be read as an image"):
        load_upload(tmp_path / "large.pcx", LIMITS)


@pytest.mark.parametrize("wrong", [{"pixels": 0}, {"jobs": 0}, {"upload_bytes": -1}, {"waiting": -1}])
def test_limits_are_positive(wrong):
    with pytest.raises(ValueError, match="must be at least"):
        Limits(**wrong)


def test_visitors_share_nothing_and_leave_nothing(tmp_path):
    visitors = Visitors(tmp_path, tmp_path / "example.png")
    a, b = visitors["a"], visitors["b"]
    assert visitors["a"] is a
    assert a.folder != b.folder
    a.take_picture(photo(tmp_path / "mine.png"))
    assert a.picture.parent.parent == a.folder
    assert not (tmp_path / "mine.png").exists()
    assert b.picture == tmp_path / "example.png"
    visitors.forget("a")
    visitors.forget("a")
    assert not a.folder.exists()
    assert b.folder.exists()
    assert visitors["a"].picture == tmp_path / "example.png"


def test_a_second_upload_and_a_second_result_replace_the_first(tmp_path):
    visitor = Visitors(tmp_path, tmp_path)["a"]
    visitor.take_picture(photo(tmp_path / "one.png"))
    visitor.take_picture(photo(tmp_path / "two.png"))
    assert [file.name for file in visitor.folder.rglob("*.png")] == ["two.png"]
    first = visitor.new_folder()
    second = visitor.new_folder()
    assert not first.exists()
    assert second.exists()
    assert not visitor.has_results
    (second / "snips-sr4.zip").touch()
    assert visitor.has_results


def test_work_that_outlives_its_visitor_leaves_nothing(tmp_path):
    visitors = Visitors(tmp_path, tmp_path)
    visitor = visitors["a"]
    visitors.forget("a")
    (visitor.folder / "late").mkdir(parents=True)
    visitor.clean()
    assert not visitor.folder.exists()


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
    ],
)
def test_which_hosts_stay_on_this_machine(host, local):
    assert is_local(host) is local


@pytest.fixture
def served(monkeypatch):
    calls = []
    monkeypatch.setattr("snips.cli.web.serve", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr("snips.cli.web.find_spec", lambda name: name)
    return calls


def test_the_command_binds_to_this_machine(served):
    result = CliRunner().invoke(app, ["web", "--max-pixels", "1000", "--max-mb", "0.5", "--jobs", "2"])
    assert result.exit_code == 0, result.output
    limits, host, *_ = served[0]
    assert host == "127.0.0.1"
    assert (limits.pixels, limits.upload_bytes, limits.jobs) == (1000, 2**19, 2)
    assert "warning" not in result.stderr


def test_the_command_warns_of_other_hosts(served):
    result = CliRunner().invoke(app, ["web", "--host", "0.0.0.0"])
    assert served[0][1] == "0.0.0.0"
    assert "0.0.0.0 can be reached from other machines" in result.stderr


def test_the_command_names_the_extra(monkeypatch):
    monkeypatch.setattr("snips.cli.web.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["web"])
    assert result.exit_code == 2
    assert "'.[web]'" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_gradio_forgets_closed_pages(monkeypatch):
    """It would keep the settings and pictures of 1,000 of them; a late answer to a closed page brings nothing back."""
    state_holder = pytest.importorskip("gradio.state_holder", reason="the web page needs the extra `web`")
    from snips.web.sessions import Sessions

    monkeypatch.setattr(state_holder, "SessionState", lambda blocks: object())
    kept = state_holder.StateHolder()
    kept.blocks = None
    sessions = Sessions(SimpleNamespace(state_holder=kept))
    assert kept["a"] is not kept["b"]
    sessions.forget("a")
    assert list(kept.session_data) == list(kept.time_last_used) == ["b"]
    assert kept["a"] is not None  # a late answer
    sessions.forget("c")
    assert list(kept.session_data) == ["b"]
