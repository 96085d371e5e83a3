"""Training: the same run whether stopped or not, checkpoints that survive a full disk, readable errors."""

import importlib.util
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import SafetensorError

from snips import load_prior
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.ncsnv2_files import save_ncsnv2
from snips.priors.unet import UNet, UNetConfig, load_unet, save_unet
from snips.training import TrainSettings, train, with_network
from snips.training.checkpoint import read_checkpoint, write_checkpoint
from snips.training.data import Crops, celeba64, load_images, split_files
from snips.training.ema import PowerAverage
from snips.training.loop import draw_batch, keyed, learning_rate, start
from snips.training.loss import NoiseLevels, denoising_loss, score_matching_loss
from snips.training.networks import NCSNv2Config
from snips.training.optim import orthogonal
from snips.training.record import _examples


@pytest.fixture
def settings(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    values = np.random.default_rng(0)
    for i in range(12):
        shape = (20 + i, 24, 3)
        Image.fromarray(values.integers(0, 255, shape, dtype=np.uint8)).save(folder / f"{i}.png")
    network = UNetConfig(channels=(1, 3), widths=(8, 8, 16), encoder=(1, 1, 1), decoder=(1, 1, 1))
    return TrainSettings(
        (str(folder),), str(tmp_path / "run"), str(tmp_path / "cache"),
        network=network, crop=16, batch=2, warmup=2, steps=6, cooldown=3, held_out=1,
    )  # fmt: skip


def weights(state):
    return torch.cat([p.detach().flatten() for p in [*state.model.parameters(), *state.averages[0].weights]])


NCSNV2 = {"network": NCSNv2Config(ngf=4), "mix": ()}


@pytest.mark.parametrize(
    "changes",
    [{"optimiser": "adam"}, {"optimiser": "muon"}, {"precision": "bfloat16"}, NCSNV2],
    ids=["adam", "muon", "bfloat16", "ncsnv2"],
)
def test_resumed_equals_uninterrupted_bit_for_bit(settings, tmp_path, changes):
    settings = replace(settings, **changes)
    whole = train(settings)
    broken = replace(settings, out=str(tmp_path / "broken"), minutes=0)

    def kill(state, loss):
        if state.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(broken, kill)
    assert read_checkpoint(tmp_path / "broken" / "checkpoint.pt")["step"] == 3
    resumed = train(broken)
    assert resumed.step == whole.step == 6
    assert torch.equal(weights(whole), weights(resumed))


def test_training_leaves_log_weights_and_picture(settings, tmp_path):
    train(replace(settings, steps=3))
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [row["event"] for row in rows] == ["start", "checkpoint"]
    assert set(rows[-1]["psnr_16.97"]) == {"1", "3"}
    with Image.open(tmp_path / "run" / "examples.png") as picture:
        assert picture.size == (16, 7 * 16)  # one held-out image: clean, three times noisy and denoised
    assert load_unet(tmp_path / "run" / "weights.safetensors").config == settings.network


def test_ncsnv2_learns_by_its_own_loss(settings, tmp_path):
    """The exported file is a prior like a converted checkpoint, and the loss of its sigmas' labels falls."""
    losses = []
    settings = replace(settings, **NCSNV2, batch=16, lr=3e-3, steps=40)
    state = train(settings, lambda state, loss: losses.append(loss))
    assert np.mean(losses[-10:]) < 0.9 * losses[0]
    prior = load_prior(tmp_path / "run" / "weights.safetensors")
    assert isinstance(prior, NCSNv2)
    assert torch.equal(prior.sigmas, state.model.sigmas)
    _, sigma, _ = draw_batch(
        state.model, settings, Crops(load_images(settings.folders, "none", settings.cache)[0], 16), 0
    )
    assert torch.isin(sigma, prior.sigmas).all()


def test_score_matching_loss_is_that_of_the_paper():
    """sigma^2 / 2 |score + n / sigma|^2 per pixel, and 0 for a network that knows the noise."""
    network, random = NCSNv2(ngf=4).requires_grad_(False), torch.Generator().manual_seed(0)
    clean, noise = torch.rand(2, 3, 8, 8, generator=random), torch.randn(2, 3, 8, 8, generator=random)
    sigma = torch.tensor([0.3, 4.0])
    wide = sigma[:, None, None, None]
    score = network.score(clean + wide * noise, sigma)
    expected = (wide**2 * (score + noise / wide) ** 2).mean() / 2
    torch.testing.assert_close(score_matching_loss(network, clean, noise, sigma), expected)
    network.unscaled = lambda x: -noise
    assert score_matching_loss(network, clean, noise, sigma) == 0


def test_another_network_for_a_preset(settings):
    changed = with_network(settings, "ncsnv2deeper")
    assert (changed.network, changed.folders) == (NCSNv2Config("ncsnv2deeper"), settings.folders)
    with pytest.raises(ValueError, match="did you mean ncsnv2"):
        with_network(settings, "ncsn2")


@pytest.mark.slow
def test_two_processes_take_the_mean_gradient(settings, tmp_path):
    settings = replace(settings, steps=2)
    context = torch.multiprocessing.get_context("spawn")
    ranks = [context.Process(target=_train_as, args=(settings, rank, str(tmp_path / "meet"))) for rank in (0, 1)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(120)
    assert [process.exitcode for process in ranks] == [0, 0]
    reached = read_checkpoint(tmp_path / "run" / "checkpoint.pt")["model"]
    for name, value in _trained_on_pairs(settings).state_dict().items():
        torch.testing.assert_close(reached[name], value, rtol=1e-4, atol=1e-5)


def _train_as(settings, rank, meeting):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    train(settings)
    torch.distributed.destroy_process_group()


def _trained_on_pairs(settings):
    """What two processes should reach: steps on the mean of two batches' gradients."""
    images, _ = load_images(settings.folders, settings.prepare, settings.cache)
    crops = Crops(images, settings.crop)
    state = start(replace(settings, out="/nonexistent"), crops)
    for step in range(settings.steps):
        state.optimiser.zero_grad()
        for part in (0, 1):
            clean, sigma, noise = draw_batch(state.model, settings, crops, 2 * step + part)
            (denoising_loss(state.model, clean, noise, sigma) / 2).backward()
        for group in state.optimiser.param_groups:
            group["lr"] = learning_rate(settings, step)
        state.optimiser.step()
    return state.model


def test_tensorboard_is_optional(settings):
    if importlib.util.find_spec("tensorboard") is None:
        with pytest.raises(ValueError, match=r"\.\[train\]"):
            train(replace(settings, tensorboard=True, steps=1))
    else:
        train(replace(settings, tensorboard=True, steps=1))
        assert list(Path(settings.out).glob("events*"))


def test_init_continues_from_weights(settings, tmp_path):
    train(settings)
    file = tmp_path / "run" / "weights.safetensors"
    again = replace(settings, out=str(tmp_path / "second"), init=str(file))
    images, _ = load_images(settings.folders, settings.prepare, settings.cache)
    state = start(again, Crops(images, 16))
    stored = load_unet(file)
    assert all(torch.equal(a, b) for a, b in zip(state.model.parameters(), stored.parameters(), strict=True))
    assert all(p.requires_grad for p in state.model.parameters())


def test_init_grows_a_network_that_starts_as_the_given_one(settings, tmp_path):
    train(settings)
    file = tmp_path / "run" / "weights.safetensors"
    deeper = replace(settings.network, encoder=(1, 1, 3), decoder=(1, 2, 2), attention=True)
    images, _ = load_images(settings.folders, settings.prepare, settings.cache)
    crops = Crops(images, 16)
    grown = start(replace(settings, out=str(tmp_path / "second"), init=str(file), network=deeper), crops).model
    x = crops.draw(2, 3, keyed(0, 0))
    assert sum(p.numel() for p in grown.parameters()) > sum(p.numel() for p in load_unet(file).parameters())
    torch.testing.assert_close(grown.denoise(x, 0.2), load_unet(file).denoise(x, 0.2))
    narrower = replace(settings.network, widths=(8, 8, 8))
    with pytest.raises(ValueError, match="is of another network"):
        start(replace(settings, out=str(tmp_path / "third"), init=str(file), network=narrower), crops)


def test_init_carries_the_hours_on(settings, tmp_path):
    hours = train(settings).seconds / 3600
    file = tmp_path / "run" / "weights.safetensors"
    images, _ = load_images(settings.folders, settings.prepare, settings.cache)
    again = start(replace(settings, out=str(tmp_path / "second"), init=str(file)), Crops(images, 16))
    assert again.step == 0
    assert again.seconds / 3600 == pytest.approx(hours)


def test_bfloat16_steps_are_nearly_those_of_float32(settings, tmp_path):
    full = weights(train(settings))
    half = weights(train(replace(settings, out=str(tmp_path / "half"), precision="bfloat16")))
    fresh = weights(
        start(
            replace(settings, out=str(tmp_path / "fresh")),
            Crops(load_images(settings.folders, settings.prepare, settings.cache)[0], 16),
        )
    )
    assert not torch.equal(full, half)
    assert (full - half).norm() < 0.2 * (full - fresh).norm()
    with pytest.raises(ValueError, match="float16"):
        train(replace(settings, out=str(tmp_path / "other"), precision="float61"))


def test_failed_write_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    write_checkpoint({"step": 1}, path)
    write_checkpoint({"step": 2}, path)

    def full_disk(state, file):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_checkpoint({"step": 3}, path)
    assert read_checkpoint(path) == {"step": 2}
    assert read_checkpoint(path.with_suffix(".previous")) == {"step": 1}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.previous", "checkpoint.pt"]


FILES = {  # what a run leaves behind, and how it is written again
    "cache/*.safetensors": lambda settings: load_images(settings.folders, settings.prepare, settings.cache),
    "run/unet.safetensors": lambda settings: save_unet(UNet(settings.network), Path(settings.out) / "unet.safetensors"),
    "run/ncsnv2.safetensors": lambda settings: save_ncsnv2(NCSNv2(ngf=4), Path(settings.out) / "ncsnv2.safetensors"),
    "run/checkpoint.pt": lambda settings: write_checkpoint({"step": 1}, Path(settings.out) / "checkpoint.pt"),
    "run/examples.png": lambda settings: _examples(
        UNet(settings.network).eval(), settings, load_images(settings.folders, "none", settings.cache)[1],
        Path(settings.out) / "examples.png",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_what_did_not_reach_the_disk_is_not_there(settings, tmp_path, monkeypatch, name):
    """Neither half a file nor a part of one; what was there before stays."""
    (tmp_path / "run").mkdir()
    if name == "run/examples.png":
        load_images(settings.folders, "none", settings.cache)
    before = sorted(tmp_path.rglob("*"))

    def full_disk(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        FILES[name](settings)
    assert [file for file in sorted(tmp_path.rglob("*")) if file.is_file()] == [f for f in before if f.is_file()]
    monkeypatch.undo()
    FILES[name](settings)
    assert list(tmp_path.glob(name))


def test_a_cache_on_a_full_disk_is_one_clear_line(settings, monkeypatch):
    def full_disk(tensors, path):
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("snips.training.data.save_file", full_disk)
    with pytest.raises(OSError, match="choose another --cache"):
        train(settings)


def test_corrupt_checkpoint_names_the_previous_one(settings, tmp_path):
    train(replace(settings, steps=1))
    train(replace(settings, steps=2))
    path = tmp_path / "run" / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"checkpoint\.previous"):
        train(settings)


def test_checkpoint_of_another_network_is_refused(settings):
    train(replace(settings, steps=1))
    with pytest.raises(ValueError, match="another network"):
        train(replace(settings, network=replace(settings.network, widths=(8, 8, 8))))


def test_bad_folders_and_images(settings, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="holds 0 images"):
        train(replace(settings, folders=(str(empty),)))
    with pytest.raises(ValueError, match="at most 20"):
        train(replace(settings, crop=64))
    for i in range(3):
        (empty / f"{i}.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"0\.png"):
        train(replace(settings, folders=(str(empty),)))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0.png 0", "1.png 1"], "lacks 10 of the images, 2.png first"),
        ([f"{i}.png 0" for i in range(12)], "names 12 images for training .0. and 0 to hold out"),
        ([f"{i}.png 1" for i in range(12)], "names 0 images for training"),
        (["image_id,partition"], "must have lines `name part`"),
    ],
    ids=["partial", "nothing held out", "nothing to train on", "another format"],
)
def test_a_partition_that_does_not_fit_is_refused(settings, tmp_path, lines, message):
    (tmp_path / "list_eval_partition.txt").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=message):
        train(settings)


def test_held_out_images_smaller_than_a_crop_are_refused_at_once(settings, tmp_path):
    Image.new("RGB", (24, 12)).save(tmp_path / "photos" / "12.png")
    with pytest.raises(ValueError, match="at most 12"):
        train(settings, lambda state, loss: pytest.fail("it trains"))


def test_random_numbers_depend_on_seed_and_step_alone():
    first = torch.rand(3, generator=keyed(0, 5))
    assert torch.equal(first, torch.rand(3, generator=keyed(0, 5)))
    assert not torch.equal(first, torch.rand(3, generator=keyed(0, 6)))
    assert not torch.equal(first, torch.rand(3, generator=keyed(1, 5)))


def test_learning_rate_is_a_trapezoid(settings):
    open_ended = replace(settings, steps=None, lr=1.0)
    assert [learning_rate(open_ended, i) for i in (0, 1, 10**6)] == [0.5, 1.0, 1.0]
    ending = replace(settings, steps=10, cooldown=4, lr=1.0)
    assert [learning_rate(ending, i) for i in (5, 6, 8, 9)] == [1.0, 1.0, 0.5, 0.25]


def test_last_files_are_held_out_in_numeric_order(settings):
    train_files, held = split_files(Path(settings.folders[0]))
    assert [f.name for f in held] == ["11.png"]
    assert train_files[-1].name == "10.png"


def test_cache_replaces_decoding(settings, monkeypatch):
    first, _ = load_images(settings.folders, "none", settings.cache)
    monkeypatch.setattr(Image, "open", None)
    second, _ = load_images(settings.folders, "none", settings.cache)
    assert torch.equal(first.pixels, second.pixels)
    assert first.image(3).shape == (3, 23, 24)


def test_celeba_preprocessing_keeps_the_centre():
    array = np.zeros((218, 178, 3), np.uint8)
    array[39:179, 19:159] = 255
    assert (np.asarray(celeba64(Image.fromarray(array))) == 255).all()


def test_noise_levels_keep_their_shares():
    levels = NoiseLevels((0.01, 0.1, 10.0), (0.25, 0.75))
    sigma = levels.draw(400, torch.Generator().manual_seed(0))
    assert (sigma < 0.1).sum() == 100
    assert sigma.min() >= 0.01
    assert sigma.max() <= 10


def test_power_average_is_the_weighted_mean():
    """gamma = 0 is the plain mean of the weights after each step."""
    model = torch.nn.Linear(1, 1, bias=False)
    average = PowerAverage(model, 0.0)
    for step, value in enumerate([3.0, 5.0, 10.0], 1):
        model.weight.data.fill_(value)
        average.update(model, step)
    assert average.weights[0].item() == pytest.approx(6.0)


def test_orthogonal_update_has_singular_values_near_one():
    matrix = torch.randn(12, 30, generator=torch.Generator().manual_seed(0))
    for update in (orthogonal(matrix), orthogonal(matrix.T).T):
        values = torch.linalg.svdvals(update)
        assert values.min() > 0.5
        assert values.max() < 1.3
