"""What training reads and writes: folders of images, their cache, files that survive a full disk."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import SafetensorError

from snips.priors.ncsnv2 import NCSNv2
from snips.priors.ncsnv2_files import save_ncsnv2
from snips.priors.unet import UNet, save_unet
from snips.training import are_grey, train, with_channels
from snips.training.checkpoint import write_checkpoint
from snips.training.image_files import celeba64, load_images, split_files
from snips.training.record import _examples
from training_cases import small_settings


@pytest.fixture
def settings(tmp_path):
    return small_settings(tmp_path)


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

    monkeypatch.setattr("snips.training.image_files.save_file", full_disk)
    with pytest.raises(OSError, match="choose another --cache"):
        train(settings)


def test_bad_folders_and_images(settings, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="holds 0 images"):
        train(replace(settings, folders=(str(empty),)))
    with pytest.raises(ValueError, match=r"0\.png is only 20 pixels wide or high: choose a crop of at most 20"):
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


@pytest.mark.parametrize("out", ["photos/run", "photos", "."])
def test_a_run_does_not_learn_from_its_own_pictures(settings, tmp_path, out):
    """Below the images, at the same place, or above them: all images are taken, and nothing else."""
    folder = tmp_path / "photos"
    settings = replace(settings, out=str(tmp_path / out), cache=str(folder / "cache"))
    for name in (".trash/7.png", "._8.png", "cache/9.png"):
        (folder / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (24, 24)).save(folder / name)
    before = load_images(settings.folders, "none", settings.cache, settings.own)
    train(replace(settings, steps=1))
    assert (tmp_path / out / "examples.png").exists()
    after = load_images(settings.folders, "none", settings.cache, settings.own)
    assert [len(images) for images in after] == [11, 1]
    assert all(torch.equal(a.pixels, b.pixels) for a, b in zip(after, before, strict=True))


def test_pictures_of_the_run_do_not_decide_about_colours(settings, tmp_path):
    (tmp_path / "grey" / "run").mkdir(parents=True)
    for i in range(3):
        Image.new("L", (8, 8)).save(tmp_path / "grey" / f"{i}.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "grey" / "run" / "examples.png")
    assert are_grey(str(tmp_path / "grey"), replace(settings, out=str(tmp_path / "grey" / "run")).own)


def test_replaced_images_are_decoded_again(settings, tmp_path):
    load_images(settings.folders, "none", settings.cache)
    replaced = tmp_path / "photos" / "3.png"
    Image.new("RGB", (24, 23), "white").save(replaced)
    assert (load_images(settings.folders, "none", settings.cache)[0].image(3) == 255).all()
    Image.new("RGB", (24, 23), "black").save(replaced)
    os.utime(replaced, ns=(0, replaced.stat().st_mtime_ns + 1))  # where the clock is too coarse to tell
    assert (load_images(settings.folders, "none", settings.cache)[0].image(3) == 0).all()


def test_a_link_to_nothing_is_one_clear_line(settings, tmp_path):
    (tmp_path / "photos" / "12.png").symlink_to(tmp_path / "gone.png")
    with pytest.raises(ValueError, match=r"cannot read the image .*12\.png"):
        load_images(settings.folders, "none", settings.cache)


def test_celeba_preprocessing_keeps_the_centre():
    array = np.zeros((218, 178, 3), np.uint8)
    array[39:179, 19:159] = 255
    assert (np.asarray(celeba64(Image.fromarray(array))) == 255).all()


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_images_of_16_bits_are_not_cut_off(suffix, tmp_path):
    """PIL turns all but the darkest of 65,536 greys into white."""
    folder = tmp_path / "deep"
    folder.mkdir()
    values = np.linspace(0, 65535, 24 * 24).reshape(24, 24).astype(np.uint16)
    for i in range(2):
        Image.fromarray(values).save(folder / f"{i}{suffix}")
    train_images, _ = load_images([str(folder)], "none", str(tmp_path / "cache"))
    expected = np.round(values / 65535 * 255)
    np.testing.assert_allclose(train_images.image(0)[0].numpy(), expected, atol=1)


@pytest.mark.parametrize(
    ("modes", "grey"),
    [(["L", "L", "I;16"], True), (["L", "1", "LA"], True), (["L", "grey as RGB"], True), (["L", "RGB"], False)],
)
def test_grey_images_are_known(modes, grey, tmp_path):
    for i, mode in enumerate(modes):
        if mode == "I;16":
            picture = Image.fromarray(np.full((8, 8), 999, np.uint16))
        elif mode == "grey as RGB":
            picture = Image.linear_gradient("L").convert("RGB")
        else:
            picture = Image.new(mode, (8, 8), "red" if mode == "RGB" else 0)
        picture.save(tmp_path / f"{i}.png")
    assert are_grey(str(tmp_path)) == grey


def test_grey_images_may_be_trained_on_as_colours(settings, tmp_path):
    """Their colour differences are exactly 0, and so is the variance that the linear branch finds there."""
    for file in (tmp_path / "photos").glob("*.png"):
        Image.open(file).convert("L").convert("RGB").save(file)
    state = train(replace(settings, steps=2))
    assert all(p.isfinite().all() for p in state.model.state_dict().values())


def test_a_damaged_cache_is_made_again(settings, tmp_path):
    first = load_images(settings.folders, "none", settings.cache)[0].pixels.clone()  # no part of the file itself
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(file.read_bytes()[:100])
    assert torch.equal(first, load_images(settings.folders, "none", settings.cache)[0].pixels)


def test_images_that_do_not_fit_into_memory_are_one_clear_line(settings, monkeypatch):
    monkeypatch.setattr("snips.training.image_files.available_memory", lambda: 9000)
    with pytest.raises(ValueError, match="the images do not fit into memory"):
        load_images(settings.folders, "none", settings.cache)


def test_an_enormous_image_is_one_clear_line(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    Image.new("RGB", (24, 24), "red").save(tmp_path / "photos" / "3.png")
    with pytest.raises(ValueError, match=r"cannot read the image .*\.png"):
        load_images(settings.folders, "none", settings.cache)
    assert are_grey(settings.folders[0])  # unreadable ones have no colours to miss


def test_a_folder_with_the_name_of_an_image_is_none(settings, tmp_path):
    (tmp_path / "photos" / "album.png").mkdir()
    assert len(load_images(settings.folders, "none", settings.cache)[0]) == 11


def test_faces_that_were_not_aligned_are_refused():
    with pytest.raises(ValueError, match="40 x 48 pixels; aligned images of CelebA have 178 x 218"):
        celeba64(Image.new("RGB", (40, 48)))


def test_channels_may_be_chosen(settings):
    assert with_channels(replace(settings, mix=(1, 3, 3)), (3, 1)).network.channels == (1, 3)
    assert with_channels(replace(settings, mix=(1, 3, 3)), (1,)).mix == ()
    with pytest.raises(ValueError, match="takes 1, 3 or 1,3, not 2"):
        with_channels(settings, (2,))


def test_photos_are_turned_as_their_camera_was_held(tmp_path):
    lying = Image.fromarray(np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3))
    orientation = Image.Exif()
    orientation[0x0112] = 6  # to be turned by a quarter to the right
    for index in range(3):
        lying.save(tmp_path / f"{index}.png", exif=orientation)
    images, _ = load_images([str(tmp_path)], "none", str(tmp_path / "cache"))
    assert torch.equal(images.image(0), torch.from_numpy(np.rot90(np.asarray(lying), -1).copy()).permute(2, 0, 1))
