"""Batches: results that depend on the item alone, runs that go on, one table."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import torch

from batch_cases import SETTINGS, items_of, pictures, run, tensors
from snips import Restoration, load_prior
from snips.batch import Item, RunFolder, run_batch
from snips.batch.work import Workshop, weights_digests
from snips.experiments.sampled import prior_identity
from snips.files import locked
from snips.priors.unet import UNet, UNetConfig, save_unet


@pytest.fixture
def source(tmp_path):
    return pictures(tmp_path / "in")


def test_an_item_does_not_depend_on_the_others(source, tmp_path):
    run(source, tmp_path / "all")
    first = items_of(source, tmp_path)[:1]
    run_batch(first, RunFolder(tmp_path / "one"), SETTINGS)
    one, everything = tensors(tmp_path / "one"), tensors(tmp_path / "all")
    assert len(one) < len(everything)
    assert all(torch.equal(value, everything[name]) for name, value in one.items())


def test_results_tell_everything(source, tmp_path):
    rows = run(source, tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "scores.parquet").to_pylist()
    assert table == rows
    assert [row["key"] for row in table] == ["picture_0.png", "picture_1.png", "picture_2.png"]
    result = Restoration.load(tmp_path / "out" / table[0]["folder"])
    assert result.samples.shape == (3, 1, 3, 16, 16)
    stored = tensors(tmp_path / "out")
    assert torch.equal(stored["picture_0.png/mean"], result.mean)
    assert torch.equal(stored["picture_0.png/std"], result.std)
    residual = result.faithfulness().residual_std
    assert table[0]["residual_std"] == residual[:, 0].tolist()
    page = (tmp_path / "out" / "summary.html").read_text()
    assert page.count("/report.html") == 6
    assert not list((tmp_path / "out" / "states").iterdir())


def test_seeds_differ_by_item_and_run():
    seeds = {Item(key, {}).seed(seed) for key in ("a", "b") for seed in (0, 1)}
    assert len(seeds) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert Item("a", {"file": "x"}).seed(0) == Item("a", {"file": "y"}).seed(0)


def test_bad_items_fail_alone(source, tmp_path):
    (source / "bad.png").write_bytes(b"nothing")
    rows = run(source, tmp_path / "out")
    assert [row["error"] is None for row in rows] == [False, True, True, True]
    assert "bad.png" in rows[0]["error"]
    pictures(tmp_path / "new", 1)
    (tmp_path / "new" / "picture_0.png").rename(source / "bad.png")
    rows = run(source, tmp_path / "out")
    assert all(row["error"] is None for row in rows)
    assert not list((tmp_path / "out" / "failed").iterdir())


def test_finished_items_are_not_repeated(source, tmp_path):
    run(source, tmp_path / "out")
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "out" / "items").rglob("*")}
    seen = []
    run(source, tmp_path / "out", progress=lambda standing, outcome: seen.append((standing.before, outcome)))
    assert seen == [(3, None)]
    assert before == {f: f.stat().st_mtime_ns for f in (tmp_path / "out" / "items").rglob("*")}


def test_finished_results_stay_when_their_sources_change(source, tmp_path):
    """The others go on; what does not fit any more is said."""
    items, folder = items_of(source, tmp_path / "out"), RunFolder(tmp_path / "out")
    assert not run_batch(items[:2], folder, SETTINGS).warnings
    before = tensors(tmp_path / "out")
    (source / "picture_0.png").write_bytes((source / "picture_2.png").read_bytes())
    (source / "picture_1.png").unlink()
    scores = run_batch(items, folder, SETTINGS)
    assert [row["error"] for row in scores.rows] == [None, None, None]
    assert len(scores.warnings) == 2
    assert "picture_0.png: its source has changed" in scores.warnings[0]
    assert "picture_1.png: its source is gone" in scores.warnings[1]
    assert "its source is gone" in (tmp_path / "out" / "summary.html").read_text()
    after = tensors(tmp_path / "out")
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    fewer = run_batch(items[2:], folder, SETTINGS)
    assert [warning.split(":")[0] for warning in fewer.warnings] == ["items/picture_0.png", "items/picture_1.png"]


def test_finished_results_of_other_options_are_refused(source, tmp_path):
    run(source, tmp_path / "out")
    with pytest.raises(ValueError, match="other options"):
        run_batch(items_of(source, tmp_path / "out", sigma=0.2), RunFolder(tmp_path / "out"), SETTINGS)


def test_other_weights_of_the_same_prior_are_refused(source, tmp_path):
    """By the run's folder when it goes on, and by each worker."""
    weights, out = tmp_path / "own.safetensors", tmp_path / "out"
    small = UNetConfig(channels=(3,), widths=(8,), encoder=(1,), decoder=(1,))
    settings = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        save_unet(UNet(small), weights)
        settings.append(replace(SETTINGS, prior=str(weights), prior_weights=weights_digests(str(weights))))
    with pytest.raises(OSError, match="other weights"):
        run_batch(items_of(source, out), RunFolder(out), settings[0])
    with pytest.raises(ValueError, match="prior_weights differ"):
        run_batch(items_of(source, out), RunFolder(out), settings[1])
    scores = run_batch(items_of(source, tmp_path), RunFolder(tmp_path / "other"), settings[1])
    assert not scores.failed, scores.failed


def test_one_digest_of_weights_for_batches_and_experiments(tmp_path):
    """Whoever compares two results compares like with like; the file's name and its place are no part of it."""
    torch.manual_seed(0)
    network = UNet(UNetConfig(channels=(3,), widths=(8,), encoder=(1,), decoder=(1,)))
    files = [str(tmp_path / name) for name in ("a.safetensors", "b.safetensors")]
    for file in files:
        save_unet(network, file)
    found = [weights_digests(file)[file] for file in files]
    stored = load_prior(files[0])
    assert found[0] == found[1] == prior_identity(stored)["sha256"]
    with torch.no_grad():
        next(stored.parameters()).view(-1)[0] += 1
    assert prior_identity(stored)["sha256"] != found[0]


def test_a_prior_that_does_not_fit_is_told_once(source, tmp_path):
    weights, folder = tmp_path / "own.safetensors", RunFolder(tmp_path / "out")
    save_unet(UNet(UNetConfig(channels=(3,), size=(64, 64), widths=(8,), encoder=(1,), decoder=(1,))), weights)
    settings = replace(SETTINGS, prior=str(weights), prior_weights=weights_digests(str(weights)))
    scores = run_batch(items_of(source, folder.path), folder, settings)
    (told,) = scores.warnings
    assert "the prior does not fit 3 of 3 items (picture_0.png: the prior own.safetensors was made for" in told
    assert all("64 x 64" in row["prior_doubt"] for row in scores.rows)


@pytest.mark.parametrize("change", [{"seed": 4}, {"chunk": 1}, {"threads": 2}, {"samples": 2}])
def test_a_run_goes_on_with_its_own_settings_only(change, source, tmp_path):
    run(source, tmp_path / "out")
    with pytest.raises(ValueError, match=f"other settings \\({next(iter(change))} differ"):
        run_batch(items_of(source, tmp_path / "out"), RunFolder(tmp_path / "out"), replace(SETTINGS, **change))


def test_one_run_at_a_time(source, tmp_path):
    with locked(tmp_path / "out"), pytest.raises(ValueError, match="another run"):
        run(source, tmp_path / "out")


def test_a_folder_of_something_else_is_left_alone(source, tmp_path):
    with pytest.raises(ValueError, match="something else"):
        run(source, source, force=True)
    assert len(list(source.iterdir())) == 3


def test_operators_and_priors_are_made_once():
    shop, matrix = Workshop(), torch.eye(16)
    first = shop.operator("matrix", (1, 4, 4), matrix=matrix)
    assert shop.operator("matrix", (1, 4, 4), matrix=matrix.clone()) is first
    assert shop.operator("matrix", (1, 4, 4), matrix=2 * matrix) is not first
    assert shop.prior("gaussian", (1, 4, 4), {}) is shop.prior("gaussian", (1, 4, 4), {})
    assert shop.prior("gaussian", (1, 4, 4), {}) is not shop.prior("gaussian", (1, 4, 8), {})


def test_names_of_folders():
    keys = ("a.png", "b/a.png", "b_a.png", "../x", "é" * 300, "日本", "-" * 90, "", ".hidden")
    names = [Item(key, {}).name for key in keys]
    assert names[0] == "a.png"
    assert len(set(names)) == len(names)
    assert all(len(name) <= 100 and "/" not in name and name[0] not in ".-" for name in names)
