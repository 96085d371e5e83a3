"""Samplers of an experiment that are run one after the other share its table, where they may."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from snips.experiments import EXPERIMENTS, Request, published, run, sampled, stored
from snips.experiments.stored import with_former
from snips.priors.precision import bfloat16_works
from snips.samplers.multistep import STEPS_VERSION


def silent(*_):
    pass


def test_samplers_of_table1_share_a_folder(tmp_path):
    """One after the other, and on fewer images: nothing that was stored is lost."""

    def ran(sampler, images, **more):
        request = Request(tmp_path, quick=True, prior="gaussian", samplers=(sampler,), images=images, **more)
        return run("table1", EXPERIMENTS["table1"], request, silent)

    fast = ran("fast", 2)
    both = ran("langevin", 1)
    results = both["results"]
    assert [row for row in results["rows"] if row["sampler"] == "fast"] == fast["results"]["rows"]
    assert [(row["problem"], row["images"]) for row in results["rows"] if row["sampler"] == "langevin"] == [
        (name, 1) for name in published.TABLE_1
    ]
    assert all(row["less"]["images"] == 1 for row in results["rows"] if row["sampler"] == "langevin")
    assert {name: results[name] for name in ("names", "source", "truth")} == {
        name: fast["results"][name] for name in ("names", "source", "truth")
    }
    assert both["command"] == f"{fast['command']} && snips experiment table1 --quick --images 1 --prior gaussian " + (
        "--sampler langevin"
    )
    text = (tmp_path / "table1" / "result.md").read_text(encoding="utf-8")
    assert "For each image: `fast`, 8 calls, 3 samples; `langevin`, 12 calls, 3 samples." in text
    again = ran("fast", 1)  # as asked for: fewer images than before
    assert {row["images"] for row in again["results"]["rows"]} == {1}
    assert again["results"]["names"] == {"": ["example"]}
    assert {row["sampler"] for row in again["results"]["rows"]} == {"fast", "langevin"}
    assert "--images 2" not in again["command"]


@pytest.mark.skipif(not bfloat16_works(), reason="products in bfloat16 crash on this processor")
def test_samplers_of_one_table_may_have_networks_of_other_precision(tmp_path):
    """A network, as no other prior has a lower precision; few calls of a small one."""

    def ran(sampler, precision):
        request = Request(
            tmp_path, quick=True, prior="faces", samplers=(sampler,), images=1, precision=precision, nfe=4
        )
        return run("table1", EXPERIMENTS["table1"], request, silent)

    ran("fast", "bfloat16")
    results = ran("langevin", "float32")["results"]
    assert results["precision"] == {"fast": "bfloat16", "langevin": "float32"}
    assert {row["sampler"] for row in results["rows"]} == {"fast", "langevin"}
    assert results["prior"]["name"] == "faces"
    before = {row["problem"]: row["psnr_mean"] for row in results["rows"] if row["sampler"] == "fast"}
    again = ran("fast", "float32")["results"]
    after = {row["problem"]: row["psnr_mean"] for row in again["rows"] if row["sampler"] == "fast"}
    assert all(before[problem] != after[problem] for problem in published.TABLE_1)
    assert again["precision"] == {"fast": "float32", "langevin": "float32"}


def test_samples_of_other_steps_are_drawn_again(tmp_path, monkeypatch):
    """What an earlier version stored of `fast` is neither reused nor shown beside what is new."""
    request = Request(tmp_path, quick=True, prior="gaussian", samplers=("fast",), images=1)
    run("table1", EXPERIMENTS["table1"], request, silent)
    parts = set((tmp_path / "table1" / "parts").glob("*.json"))
    for module in (sampled, stored):
        monkeypatch.setattr(module, "STEPS_VERSION", 99)
    results = run("table1", EXPERIMENTS["table1"], replace(request, samplers=("langevin",)), silent)["results"]
    assert {row["sampler"] for row in results["rows"]} == {"langevin"}
    run("table1", EXPERIMENTS["table1"], request, silent)
    new = set((tmp_path / "table1" / "parts").glob("*fast*.json")) - parts
    assert len(new) == len(published.TABLE_1) + 1


@pytest.mark.parametrize(("names", "settings"), [(["b"], {"seed": 0}), (["a"], {"seed": 1})])
def test_other_images_or_settings_share_no_table(names, settings, tmp_path):
    mine = {"names": {"": ["a"]}, "made_by": {"fast": "f"}, "rows": []}
    stored = {"names": {"": names}, "rows": [{"sampler": "langevin", "images": 1}]}
    record = {"experiment": "table1", "command": "l", "settings": settings, "results": stored}
    (tmp_path / "result.json").write_text(json.dumps(record))
    samplers = ("fast", "langevin")
    assert with_former("table1", mine, tmp_path / "result.json", {"seed": 0}, samplers) == {
        **mine,
        "steps": STEPS_VERSION,
    }
