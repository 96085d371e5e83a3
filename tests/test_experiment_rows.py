"""What experiments compute: facts of samples, rows, verdicts, and the images they are measured on."""

from __future__ import annotations

import json
import statistics

import numpy as np
import pytest
import torch
from PIL import Image

from snips.experiments import Request, calls, datasets, markdown, red_sweep, sampled, table1
from snips.experiments.stored import prior_of
from snips.images import example_image
from snips.priors import StationaryGaussian
from snips.report import picture_grid
from snips.report.grid import GAP
from snips.restoration import restore


def test_facts_of_samples_are_those_of_the_restoration():
    images = torch.cat([example_image(), example_image().flip(-1)])[..., ::4, ::4]
    problem = sampled.simulated("deblur_uniform", images, 0.1, seed=3)[1]
    prior = StationaryGaussian.natural((3, 16, 16))
    result = restore(problem, prior, samples=4, nfe=8)
    facts = sampled.sample_facts(result)
    samples, mean = result.psnr()
    assert facts["image"] == 1
    assert facts["psnr_samples"] == samples[:, 0].tolist()
    assert facts["psnr_mean"] == mean.item()
    low, high = result.samples.amin(0), result.samples.amax(0)
    inside = ((problem.truth >= low) & (problem.truth <= high)).double().mean().item()
    assert facts["covered"] == pytest.approx(inside)
    assert facts["coverage_level"] == pytest.approx(3 / 5)
    assert facts["p_value"] == result.faithfulness().p_value[:, 0].tolist()


def fact(image: int, psnr: list[float], mean: float, p: list[float]) -> dict:
    known = {"group": "", "problem": "sr2", "sampler": "fast", "sigma_0": 0.1, "covered": 0.8, "coverage_level": 7 / 9}
    residuals = {"std_ratio": [1.0, 1.2], "p_value": p, "rho": [0.05, -0.2], "seconds": 2.0}
    return {**known, **residuals, "image": image, "psnr_samples": psnr, "psnr_mean": mean}


def test_rows_average_over_images_with_their_standard_error():
    facts = [fact(0, [24.0, 26.0], 28.0, [0.5, 0.01]), fact(1, [27.0, 27.0], 29.0, [0.3, 0.2])]
    row = sampled.summary_row(facts)
    assert row["psnr_sample"] == {"mean": 26.0, "standard_error": pytest.approx(statistics.stdev([25, 27]) / 2**0.5)}
    assert row["psnr_mean"]["mean"] == 28.5
    assert row["gap"]["mean"] == 2.5
    assert row["faithfulness"] == {
        "samples": 4,
        "std_ratio": pytest.approx(1.1),
        "std_ratio_range": [1.0, 1.2],
        "normal": 3,
        "uncorrelated": 2,
        "shares_of_each_image": [[0.5, 0.5], [1.0, 0.5]],
    }


@pytest.mark.parametrize(("mean", "reached"), [(24.5, False), (24.6, True)])
def test_a_figure_reaches_the_papers_within_its_standard_error(mean, reached):
    """The paper's 25.58 for sr2, with a standard error of 1 dB."""
    facts = [fact(0, [mean - 1] * 8, mean + 1.5, [0.5] * 8), fact(1, [mean + 1] * 8, mean + 3.5, [0.5] * 8)]
    row = table1._beside_paper(sampled.summary_row(facts))
    assert row["reached"]["psnr_sample"] is reached
    assert row["reached"]["gap"] is True
    both = (1 + 2 / 8) ** 0.5  # ours, and that of a mean of 8 images which scatter as ours do: by the root of 2
    assert row["difference"]["psnr_sample"] == pytest.approx({"mean": mean - 25.58, "standard_error": both})


def test_calls_show_algorithm_1_from_table1_with_the_same_prior(tmp_path):
    row = {"problem": "sr4", "sampler": "langevin", "images": 2, "psnr_mean": 1.0}
    others = [{**row, "sampler": "fast"}, {**row, "problem": "cs16"}]
    steps = {"samples": 8, "seed": 0, "levels": 500}
    results = {"prior": {"name": "a"}, "names": {"": ["1.jpg", "2.jpg"]}, "rows": [row, *others]}
    results["precision"] = {"langevin": "bfloat16", "fast": "float32"}
    record = {"experiment": "table1", "settings": {"langevin": steps}, "results": results}
    file = tmp_path / "result.json"
    file.write_text(json.dumps(record))
    same, names = {**steps, "samples": 19}, ("1.jpg", "2.jpg", "3.jpg")
    found = [{**row, "covered_images": 0, "inside": {}, "stored_by": "table1"}]
    assert calls.stored_langevin(file, {"name": "a"}, same, names) == (found, {"langevin": "bfloat16"})
    assert calls.stored_langevin(file, {"name": "b"}, same, names) == ([], {})
    assert calls.stored_langevin(file, {"name": "a"}, {**same, "seed": 1}, names) == ([], {})
    assert calls.stored_langevin(file, {"name": "a"}, same, ("2.jpg", "1.jpg")) == ([], {})
    assert calls.stored_langevin(tmp_path / "absent.json", {"name": "a"}, same, names) == ([], {})


@pytest.mark.parametrize(
    ("precision", "told"),
    [
        ({}, ""),
        ({"fast": "float32"}, ""),
        ({"fast": "bfloat16", "langevin": "bfloat16"}, " Products of the network in bfloat16."),
        ({"fast": "float32", "langevin": "bfloat16"}, " Products of the network in bfloat16 for `langevin`."),
    ],
)
def test_lower_precision_is_told_where_it_was(precision, told):
    results = {"prior": {"name": "faces", "sha256": "1"}, "source": "two faces", "precision": precision}
    assert markdown.setting(results) == f"Images: two faces. Prior: `faces` (weights 1).{told}\n\n"
    names = [prior_of(results, sampler)["name"] for sampler in ("fast", "langevin")]
    assert names == ["faces, bfloat16" if precision.get(s) == "bfloat16" else "faces" for s in ("fast", "langevin")]


def test_quality_of_more_images_and_intervals_of_fewer_are_one_row():
    own = {"problem": "sr4", "sampler": "langevin 2500", "images": 4, "psnr_mean": 1, "covered_images": 4, "inside": 2}
    fast = {**own, "sampler": "fast 100", "images": 64}
    stored = {**own, "sampler": "langevin", "images": 8, "psnr_mean": 3, "covered_images": 0, "stored_by": "table1"}
    other = {**stored, "problem": "cs4"}
    together = {**own, "images": 8, "psnr_mean": 3, "stored_by": "table1"}
    same = {"langevin": "bfloat16", "langevin 2500": "bfloat16"}
    assert calls.one_for_algorithm_1([fast, own, stored, other], same) == [fast, together, other]
    assert calls.one_for_algorithm_1([own, {**stored, "images": 2}], same) == [own]
    assert calls.one_for_algorithm_1([fast, own, stored], {**same, "langevin": "float32"}) == [fast, own, stored]


def test_coverage_over_problems_errs_by_image():
    """Two problems of the same two images: 1 and 0.5 in one, 0.8 and 0.5 in the other, so 0.9 and 0.5 of the images."""
    rows = [
        {"sampler": "fast 100", "inside_of_each_image": dict.fromkeys(("pixels", *calls.SUMMARIES), shares)}
        for shares in ([1.0, 0.5], [0.8, 0.5])
    ]
    stored = {"sampler": "langevin", "stored_by": "table1"}
    line = calls._over_problems([*rows, stored]).splitlines()[-1]
    assert line == "| fast 100 | 2 |" + " 70.0 ± 20.0 % |" * 4
    assert calls._over_problems([stored]) == ""


def test_rows_with_fewer_images_are_compared_on_these():
    """The other images of the longer row are harder by 10 dB, which must not count."""
    few = {"sampler": "langevin", "psnr_of_each_image": [[20.0, 22.0], [21.0, 24.0]]}
    many = {"sampler": "fast", "psnr_of_each_image": [[21.0, 23.0], [23.0, 25.0], [11.0, 13.0]]}
    found = sampled.less(few, many)
    assert found["images"] == 2
    assert found["psnr_sample"] == {"mean": -1.5, "standard_error": pytest.approx(0.5)}
    assert found["psnr_mean"] == {"mean": -1.0, "standard_error": pytest.approx(0.0)}


def test_the_truth_fails_by_chance_alone():
    """Of 400 images of pure noise, 95 % pass the test of normality; binomial, 4 standard errors: 1 in 16,000."""
    problem = sampled.simulated("denoise", torch.full((400, 1, 16, 16), 0.5), 0.1, seed=0)
    found = sampled.of_the_truth(problem)
    assert found["samples"] == 400
    assert found["normal"] / 400 == pytest.approx(0.95, abs=4 * (0.95 * 0.05 / 400) ** 0.5)
    assert found["std_ratio"] == pytest.approx(1, abs=0.02)


def test_test_images_without_data_are_few_under_every_option(tmp_path):
    assert Request(tmp_path, bundled=True).count(64, 2) == 1
    assert Request(tmp_path, bundled=True).count(64, 2, bundled=2) == 2
    assert Request(tmp_path, quick=True).count(64, 2) == 2
    assert Request(tmp_path).count(64, 2) == 64
    assert Request(tmp_path, images=3, quick=True).count(64, 2) == 3


def test_test_images_without_data_are_those_at_hand(tmp_path):
    test = datasets.faces(Request(tmp_path, quick=True), 2)
    torch.testing.assert_close(test.images, torch.cat([example_image(), example_image().flip(-1)]))
    assert test.publishable
    with pytest.raises(ValueError, match="only 2 images, not 3: .*--images"):
        datasets.faces(Request(tmp_path, quick=True), 3)
    large = datasets.scenes(Request(tmp_path, quick=True), 2)
    assert large.images.shape == (2, 3, 128, 128)


def test_celeba_is_read_from_its_test_split(tmp_path):
    folder = tmp_path / "celeba" / "img_align_celeba"
    folder.mkdir(parents=True)
    for name, level in (("1.jpg", 10), ("2.jpg", 200), ("3.jpg", 100)):
        Image.new("RGB", (178, 218), (level,) * 3).save(folder / name)
    (tmp_path / "celeba" / "list_eval_partition.txt").write_text("1.jpg 0\n2.jpg 2\n3.jpg 2\n")
    test = datasets.faces(Request(tmp_path, data=tmp_path), 2)
    assert [round(float(image.mean() * 255)) for image in test.images] == [200, 100]
    assert not test.publishable
    assert test.names == ("2.jpg", "3.jpg")
    assert test.source == "CelebA, the first 2 of 2 test images in its list"
    with pytest.raises(ValueError, match="only 2 images in .*not 3"):
        datasets.faces(Request(tmp_path, data=tmp_path), 3)


@pytest.mark.parametrize("content", [b"", b"no picture"])
@pytest.mark.parametrize("kind", ["jpg", "png"])
def test_an_image_that_cannot_be_read_is_named(kind, content, tmp_path):
    """Damaged in its middle or from the start on."""
    file = tmp_path / f"bad.{kind}"
    Image.effect_noise((178, 218), 50).convert("RGB").save(file)
    file.write_bytes(content or file.read_bytes()[:2000])
    with pytest.raises(ValueError, match=rf"bad.{kind} cannot be read \(.*\): copy it again from its collection"):
        datasets.photograph(file)


@pytest.mark.parametrize(
    ("listing", "message"), [("1.jpg 2\n4.jpg 2\n", "4.jpg is missing"), ("1.jpg 2\njust a line of words\n", "damaged")]
)
def test_a_list_that_does_not_fit_its_files_is_named(listing, message, tmp_path):
    folder = tmp_path / "celeba" / "img_align_celeba"
    folder.mkdir(parents=True)
    Image.new("RGB", (178, 218)).save(folder / "1.jpg")
    (tmp_path / "celeba" / "list_eval_partition.txt").write_text("\n" + listing)
    with pytest.raises(ValueError, match=message):
        datasets.faces(Request(tmp_path, data=tmp_path), 2)


def test_the_best_of_a_sweep_counts_only_for_the_same_prior(tmp_path):
    best = {"sigma_0": 0.1, "iterations": 200, "weight": 7.0, "denoiser_sigma": 0.02}
    stored = tmp_path / "result.json"
    record = {"experiment": "red_sweep", "results": {"prior": {"name": "a"}, "best": [best]}}
    stored.write_text(json.dumps(record))
    assert red_sweep.stored_best(stored, 0.1, {"name": "a"}) == red_sweep.RedSetting(7.0, 200, 0.02)
    assert red_sweep.stored_best(stored, 0.1, {"name": "b"}) is None
    assert red_sweep.stored_best(tmp_path / "absent.json", 0.1, {"name": "a"}) is None


FOREIGN = ("{}", "[]", '{"experiment": "table1"}', '{"experiment": "red_sweep", "results": {}}', "null")


@pytest.mark.parametrize("content", FOREIGN)
def test_results_that_were_changed_are_named(content, tmp_path):
    """One line each, by all that read what another experiment stored."""
    file = tmp_path / "result.json"
    file.write_text(content)
    with pytest.raises(ValueError, match="result.json is not what `snips experiment red_sweep` writes: remove it"):
        red_sweep.stored_best(file, 0.1, {"name": "a"})
    with pytest.raises(ValueError, match="result.json is not what `snips experiment table1` writes: remove it"):
        calls.stored_langevin(file, {"name": "a"}, {"samples": 19}, ["1.jpg"])


def test_columns_of_pictures_share_the_largest_size():
    grid = picture_grid([("small", torch.zeros(2, 1, 8, 8)), ("large", torch.ones(2, 3, 16, 24))], scale=2)
    pixels = np.asarray(grid)
    assert grid.size == (2 * 48 + 3 * GAP, 16 + 2 * (32 + GAP))
    assert (pixels[20, 20] == 0).all()
    assert (pixels[20, 80] == 255).all()
