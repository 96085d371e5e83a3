"""Training: the same run whether stopped or not, from other weights, in other precisions and processes."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from snips import load_prior
from snips.priors.ncsnv2 import NCSNv2
from snips.priors.stored import read_note
from snips.priors.unet import load_unet
from snips.training import train, with_channels, with_network, with_network_of
from snips.training.checkpoint import read_checkpoint
from snips.training.data import Crops
from snips.training.image_files import load_images
from snips.training.loop import draw_batch, keyed, start
from snips.training.networks import NCSNv2Config
from training_cases import small_settings


@pytest.fixture
def settings(tmp_path):
    return small_settings(tmp_path)


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


def test_another_network_for_a_preset(settings):
    changed = with_network(settings, "ncsnv2deeper")
    assert (changed.network, changed.folders) == (NCSNv2Config("ncsnv2deeper"), settings.folders)
    with pytest.raises(ValueError, match="did you mean ncsnv2"):
        with_network(settings, "ncsn2")


def test_the_paper_s_deeper_network_is_trained_on_its_own_size(settings):
    assert with_network(settings, "ncsnv2deeper").crop == 128


def test_only_our_network_is_compiled(settings):
    with pytest.raises(ValueError, match="leave out --compile"):
        train(replace(settings, **NCSNV2, compile=True))


def test_hours_of_the_paper_s_network_are_carried_on(settings, tmp_path):
    hours = train(replace(settings, **NCSNV2, steps=1)).seconds / 3600
    assert read_note(tmp_path / "run" / "weights.safetensors")["hours"] == pytest.approx(hours)


def test_logs_for_tensorboard(settings):
    pytest.importorskip("tensorboard", reason="an extra")
    train(replace(settings, tensorboard=True, steps=1))
    assert list(Path(settings.out).glob("events*"))


def test_tensorboard_is_optional(settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"\.\[train\]"):
        train(replace(settings, tensorboard=True, steps=1))


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


def test_init_of_both_kinds_may_go_on_with_one(settings, tmp_path):
    """What was learned from grey and colour images together goes on with grey ones; the way back does not exist."""
    train(settings)
    file = tmp_path / "run" / "weights.safetensors"
    images, _ = load_images(settings.folders, settings.prepare, settings.cache)
    crops, grey = Crops(images, 16), with_channels(with_network_of(settings, str(file)), (1,))
    model = start(replace(grey, out=str(tmp_path / "grey"), init=str(file)), crops).model
    x = crops.draw(2, 1, keyed(0, 0))
    torch.testing.assert_close(model.denoise(x, 0.2), load_unet(file).denoise(x, 0.2))
    train(replace(grey, out=str(tmp_path / "grey"), init=str(file)))
    again = replace(settings, out=str(tmp_path / "both"), init=str(tmp_path / "grey" / "weights.safetensors"))
    with pytest.raises(ValueError, match="knows no images of 3 channels"):
        start(again, crops)


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


def test_an_unknown_optimiser_is_refused(settings):
    with pytest.raises(ValueError, match="did you mean muon"):
        replace(settings, optimiser="moun")
