"""Pictures and the page of a result."""

from __future__ import annotations

import base64
import html
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from PIL import Image

from report_cases import SHAPE, result_of
from snips import InverseProblem, Restoration, StationaryGaussian, make_operator
from snips.report import plots
from snips.report.colours import ANCHORS, colour_map, round_up, std_map
from snips.report.embedding import LARGEST, data_uri, shrunk
from snips.report.grid import comparison_grid
from snips.report.page import page
from snips.report.verdicts import failures, verdict_table, verdict_words


def picture(uri: str) -> Image.Image:
    kind, content = uri.removeprefix("data:image/").split(";base64,")
    opened = Image.open(io.BytesIO(base64.b64decode(content)))
    assert opened.format.lower() == kind
    return opened


class Page(HTMLParser):
    """All addresses, ids and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses, self.ids, self.scripts, self.data, self.open = [], set(), 0, "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.addresses += [given[name] for name in ("src", "href", "action", "data") if name in given]
        self.ids.add(given.get("id"))
        self.scripts += tag == "script"
        self.open = given.get("id", "")

    def handle_data(self, data):
        if self.open == "data":
            self.data += data
            self.open = ""


def test_the_page_needs_no_network():
    text = page(result_of("sr2"))
    found = Page(text)
    assert found.addresses  # the residuals
    assert all(address.startswith("data:image/") for address in found.addresses)
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest", text)
    assert "default-src 'none'" in text


def test_the_page_holds_every_picture():
    result = result_of("sr2")
    data = json.loads(Page(page(result)).data)
    names = [entry["name"] for entry in data["pictures"]]
    assert names == ["sample 1", "sample 2", "sample 3", "mean", "original", "uncertainty"]
    assert data["size"] == [16, 24]
    first = np.asarray(picture(data["pictures"][0]["uri"])).transpose(2, 0, 1)
    np.testing.assert_allclose(first, 255 * result.samples[0, 0].clamp(0, 1).numpy(), atol=0.51)
    assert picture(data["degraded"]).size == (12, 8)


def test_the_pointer_reads_the_standard_deviation():
    result = result_of("sr2")
    data = json.loads(Page(page(result)).data)
    levels = np.asarray(picture(data["levels"])) / 255 * data["most"]
    expected = result.std[0].square().mean(0).sqrt().numpy()
    np.testing.assert_allclose(levels, expected, atol=data["most"] / 500)


def test_ids_of_the_script_exist():
    text = page(result_of("sr2"))
    wanted = set(re.findall(r'at\("(\w+)"\)', text)) | {"left", "right"}
    assert wanted <= Page(text).ids


@pytest.mark.parametrize(
    ("name", "options", "residuals"),
    [("denoise", {}, 3), ("inpaint", {}, 3), ("cs4", {}, 0), ("mri", {"acceleration": 2}, 0), ("colorize", {}, 3)],
)
def test_faithfulness_panels(name, options, residuals):
    """A plot of each kind for every sample; a residual picture where y is one."""
    text = page(result_of(name, **options))
    assert text.count('alt="residual"') == residuals
    assert text.count("<svg") == 6
    assert text.count('data-panel="') == 3
    assert text.count("faithful</td>") == 3


@pytest.mark.parametrize(
    ("residual", "words"),
    [
        (lambda noise: 1.5 * noise, ["times as strong as the noise (0.9 to 1.1 would pass)", "The noise is stronger"]),
        (lambda noise: 0.5 * noise, ["times as strong as the noise (0.9 to 1.1 would pass)", "probably weaker"]),
        (
            lambda noise: 0.1 * 3**0.5 * (2 * (noise > 0) - 1 + noise) / 2,
            ["the residual is not Gaussian (p = ", "cut off at black or white"],
        ),
        (
            lambda noise: noise + 0.2 * (noise**2 - 0.01),  # a little askew
            ["the residual is not Gaussian (p = 0.01", "By chance, one measurement in twenty fails this test"],
        ),
        (lambda noise: (noise + noise.roll(1, -1)) / 2**0.5, ["neighbours along x are correlated", "rho = 0."]),
        (lambda noise: (noise + noise.roll(1, -2)) / 2**0.5, ["neighbours along y are correlated", "rho = 0."]),
        (lambda noise: noise, []),
    ],
)
def test_the_panel_says_which_test_failed(residual, words):
    """Noise of 48 x 48 that is changed in one way: one reason in words, and one marked figure in the table."""
    noise = 0.1 * torch.randn(1, 1, 1, 48, 48, generator=torch.Generator().manual_seed(2))
    problem = InverseProblem(make_operator("denoise", (1, 48, 48)), torch.full((1, 1, 48, 48), 0.5), 0.1)
    found = Restoration(problem, 0.5 - residual(noise)).faithfulness()
    said = verdict_words(found, 0, 0)
    assert all(part in said for part in words), said
    assert len(failures(found, 0, 0)) == bool(words), said
    assert ("does not pass all tests" in said) == bool(words)
    marked = re.findall(r'<td class="bad">([^<]+)', verdict_table(found, 0))
    assert len(marked) == (2 if words else 0)  # the figure and the verdict
    text = page(Restoration(problem, 0.5 - residual(noise)))
    assert all(html.escape(part) in text for part in words)


def test_one_sample_and_no_noise():
    result = result_of("denoise")
    exact = InverseProblem(result.problem.operator, result.problem.y, 0.0)
    text = page(Restoration(exact, result.samples[:1]))
    data = json.loads(Page(text).data)
    assert "levels" not in data
    assert [entry["name"] for entry in data["pictures"]] == ["sample 1", "mean"]
    assert "no distribution to compare with" in text


def test_what_users_type_is_escaped():
    evil = "</script><script>alert('x')</script><img src=http://evil>"
    result = result_of("sr2")
    text = page(Restoration(result.problem, result.samples, {"command": evil, evil: evil, "list": [evil]}))
    assert evil not in text
    assert "<script>alert" not in text
    assert Page(text).scripts == 2
    assert "&lt;/script&gt;" in text


def test_settings_are_written_for_people():
    result = result_of("sr2")
    settings = {"sampler_options": {"nfe": 30, "chunk": None}, "notes": ["cropped", "its channels are equal"]}
    text = page(Restoration(result.problem, result.samples, settings))
    assert "<td>nfe=30, chunk=None</td>" in text
    assert "<td>cropped; its channels are equal</td>" in text


def test_the_command_is_shown():
    result = result_of("sr2")
    command = "snips restore 'my photo.png' --problem sr2"
    text = page(Restoration(result.problem, result.samples, {"command": command}))
    assert "snips restore &#x27;my photo.png&#x27; --problem sr2" in text
    assert "Made from Python" in page(result)


def test_saved_pictures(tmp_path):
    result = result_of("sr2")
    alpha = torch.zeros(1, 1, *SHAPE[1:])
    folder = Restoration(result.problem, result.samples, {}, alpha).save(tmp_path / "out")
    with Image.open(folder / "samples.webp") as animation:
        assert animation.n_frames == 3
        assert animation.size == (24, 16)
    with Image.open(folder / "sample_00.png") as sample:
        assert sample.mode == "RGBA"
        assert sample.getchannel("A").getextrema() == (0, 0)
    with Image.open(folder / "degraded.png") as degraded:  # has another size, so the alpha does not fit
        assert degraded.mode == "RGB"
    assert torch.equal(Restoration.load(folder).alpha, alpha)


def test_std_map_colours_and_bar():
    values = torch.zeros(1, 8, 8)
    values[0, 0, 0] = 0.1
    assert colour_map(values[0].numpy(), 0.1).getpixel((0, 0)) == tuple(ANCHORS[-1])
    assert colour_map(values[0].numpy(), 0.1).getpixel((5, 5)) == tuple(ANCHORS[0])
    with_bar = std_map(values)
    picture_width = 8 * 24  # enlarged
    assert with_bar.width > picture_width
    bar = picture_width + 8 + 4
    assert with_bar.getpixel((bar, 8)) == tuple(ANCHORS[-1])
    assert with_bar.getpixel((bar, with_bar.height - 9)) == tuple(ANCHORS[0])


@pytest.mark.parametrize(("value", "top"), [(0.013, 0.02), (0.2, 0.2), (0.34, 0.5), (0.9, 1.0), (0.0, 1e-3)])
def test_scales_end_on_round_numbers(value, top):
    assert round_up(value) == pytest.approx(top)


def test_large_pictures_are_shrunk_in_pages_and_grids():
    assert shrunk(Image.new("RGB", (4 * LARGEST, LARGEST))).size == (LARGEST, LARGEST // 4)
    assert data_uri(Image.new("RGB", (600, 600))).startswith("data:image/webp")
    assert data_uri(Image.new("RGB", (600, 600)), lossless=True).startswith("data:image/png")
    prior = StationaryGaussian.natural((1, 400, 800))
    x = prior.sample(1, seed=0).float()
    problem = InverseProblem(make_operator("denoise", (1, 400, 800)), x, 0.1)
    grid = comparison_grid(problem, x[None])
    assert grid.height == 16 + 192 + 4  # 384 pixels wide, so 192 high


def test_plots_tell_noise_from_other_things():
    random = np.random.default_rng(0)
    noise, wider = random.standard_normal(20_000), 1.5 * random.standard_normal(20_000)

    def heights(values):
        return np.array([float(h) for h in re.findall(r'height="([\d.]+)"/>', plots.histogram(values))])

    bars = heights(noise)
    assert len(bars) == plots.BINS
    assert bars[20] / bars[30] == pytest.approx(np.exp(2.1**2 / 2 - 0.1**2 / 2), rel=0.15)
    dots = [np.array(re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', plots.quantile_plot(v)), float) for v in (noise, wider)]
    slopes = [np.polyfit(d[:, 0], -d[:, 1], 1)[0] for d in dots]
    assert slopes[1] / slopes[0] == pytest.approx(1.5, rel=0.05)
