"""Photos of all kinds: what is read, what is said about it, what is refused."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image, ImageCms

from photo_files import ink_profile, png, png16, random_pixels, write
from snips.photos import arrays
from snips.photos.photo import as_photo, grey_if_equal, load_photo


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_16_bit_png_keeps_every_bit(channels, tmp_path):
    values = random_pixels(5, 7, channels, dtype=np.uint16)
    photo = load_photo(write(tmp_path / "deep.png", png16(values)))
    found = photo.pixels if channels < 4 else torch.cat([photo.pixels, photo.alpha], 1)
    assert torch.equal((found[0] * 65535).round().to(torch.int64), torch.tensor(values.transpose(2, 0, 1).astype(int)))
    assert photo.step == 1 / 65535


def test_16_bit_grey_with_transparency_says_that_it_loses_bits(tmp_path):
    photo = load_photo(write(tmp_path / "deep.png", png16(random_pixels(5, 7, 2, dtype=np.uint16))))
    assert photo.pixels.shape == photo.alpha.shape == (1, 1, 5, 7)
    assert photo.notes == ("of its 16 bits the upper 8 are read",)


@pytest.mark.parametrize(("mode", "channels"), [("LA", 1), ("RGBA", 3)])
def test_alpha_is_kept_apart(mode, channels, tmp_path):
    picture = Image.new(mode, (4, 3), (10, 51) if mode == "LA" else (10, 20, 30, 51))
    picture.save(tmp_path / "clear.png")
    photo = load_photo(tmp_path / "clear.png")
    assert photo.pixels.shape == (1, channels, 3, 4)
    assert torch.equal(photo.alpha, torch.full((1, 1, 3, 4), 0.2))


def test_an_opaque_alpha_is_none(tmp_path):
    Image.new("RGBA", (4, 3), (1, 2, 3, 255)).save(tmp_path / "opaque.png")
    assert load_photo(tmp_path / "opaque.png").alpha is None


def test_a_transparent_colour_of_a_palette_is_alpha(tmp_path):
    palette = Image.new("P", (4, 3), 0)
    palette.putpalette([255, 0, 0, 0, 255, 0])
    palette.putpixel((1, 1), 1)
    palette.save(tmp_path / "palette.png", transparency=1)
    photo = load_photo(tmp_path / "palette.png")
    assert photo.alpha[0, 0, 1, 1] == 0
    assert photo.alpha.sum() == 11


def test_a_tensor_with_its_channels_last_is_refused():
    with pytest.raises(ValueError, match="as if its channels were last"):
        as_photo(torch.rand(20, 30, 3))


def test_tensors_of_few_bits():
    assert as_photo(torch.full((1, 4, 4), 0.5, dtype=torch.bfloat16)).pixels.mean() == 0.5


def test_cmyk_without_a_profile_is_converted_and_said(tmp_path):
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(tmp_path / "ink.jpg", quality=100)
    photo = load_photo(tmp_path / "ink.jpg")
    red = photo.pixels.mean((0, 2, 3))
    assert red[0] > 0.95
    assert red[1:].max() < 0.05
    assert photo.lossy
    assert "plain formula" in photo.notes[0]


def test_cmyk_with_a_profile_follows_it(tmp_path):
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "ink.jpg", icc_profile=ink_profile(), quality=100)
    photo = load_photo(tmp_path / "ink.jpg")
    red, green, blue = photo.pixels.mean((0, 2, 3))
    assert green > 0.4  # the plain formula would make it red
    assert max(red, blue) < 0.1
    assert "by the colour profile" in photo.notes[0]


def test_cmyk_with_a_profile_that_does_not_fit_falls_back(tmp_path):
    wrong = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()  # a profile of light, not of ink
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "ink.jpg", icc_profile=wrong)
    assert "plain formula" in load_photo(tmp_path / "ink.jpg").notes[0]


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3), (3, 5, 7), (1, 3, 5, 7)])
def test_arrays_in_files(shape, tmp_path):
    values = np.random.default_rng(0).random(shape, dtype=np.float32)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", anything=values)
    photo = load_photo(tmp_path / "x.npy")
    assert photo.pixels.shape[-2:] == (5, 7)
    assert torch.equal(photo.pixels, load_photo(tmp_path / "x.npz").pixels)
    assert photo.pixels[0, 0, 0, 0] == values.flat[0]
    assert photo.notes == ()


def test_numbers_beyond_0_and_1_are_kept_and_said(tmp_path):
    np.save(tmp_path / "noisy.npy", np.array([[-0.3, 0.5, 1.4]]))
    photo = load_photo(tmp_path / "noisy.npy")
    torch.testing.assert_close(photo.pixels.flatten(), torch.tensor([-0.3, 0.5, 1.4]))
    assert "0 is black, 1 is white" in photo.notes[0]


def test_a_stated_range_scales(tmp_path):
    np.save(tmp_path / "raw.npy", np.array([[100, 2148, 4196]], dtype=np.int32))
    with pytest.raises(ValueError, match=r"raw.npy.*run from 100 to 4196.*--range 0,16383"):
        load_photo(tmp_path / "raw.npy")
    photo = load_photo(tmp_path / "raw.npy", (100.0, 4196.0))
    torch.testing.assert_close(photo.pixels.flatten(), torch.tensor([0, 0.5, 1]))
    assert "100 is black and 4196 is white" in photo.notes[0]
    assert photo.step == 1 / 4096


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([["a"]]), "real numbers"),
        (np.zeros((2, 2), complex), "real numbers"),
        (np.zeros((0, 3)), "real numbers"),
        (np.full((3, 3), np.nan), "NaN or Inf in 9"),
        (np.zeros((2, 3, 3, 3)), "2 images"),
        (np.zeros((9, 9, 9)), "no image"),
        (np.array([[{}]], dtype=object), "pickle|Python objects"),
    ],
)
def test_arrays_that_are_no_images(values, message, tmp_path):
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(ValueError, match=message):
        load_photo(tmp_path / "x.npy")


def test_python_values():
    values = random_pixels(5, 7, 3)
    expected = torch.tensor(values.transpose(2, 0, 1).astype(np.float32))[None] / 255
    for given in (values, Image.fromarray(values), torch.tensor(values).permute(2, 0, 1)):
        torch.testing.assert_close(as_photo(given).pixels, expected)
    assert as_photo(np.zeros((4, 4))).pixels.dtype == torch.float64
    assert as_photo(torch.zeros(2, 4, 8, 8)).pixels.shape == (2, 4, 8, 8)  # a tensor's channels are data
    with pytest.raises(ValueError, match="not dict"):
        as_photo({})


def test_grey_saved_as_colour():
    grey = torch.rand(1, 1, 4, 4)
    assert grey_if_equal(grey.expand(1, 3, 4, 4), 1 / 255).shape == (1, 1, 4, 4)
    assert grey_if_equal(torch.rand(1, 3, 4, 4), 1 / 255) is None


def refused(path) -> str:
    with pytest.raises(ValueError, match=str(path.name)) as caught:
        load_photo(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_huge_pictures_are_refused_by_their_header(tmp_path):
    assert "64,000,000 pixels" in refused(write(tmp_path / "huge.png", png(30_000, 30_000, 8, 2, b"few")))
    assert "9000 x 9000 pixels" in refused(write(tmp_path / "large.png", png(9000, 9000, 8, 2, b"few")))


def test_a_bomb_in_an_archive_is_refused_by_its_directory(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((1000, 1000)))
    monkeypatch.setattr(arrays, "MAX_BYTES", 8_000_000)
    assert "would unpack to" in refused(tmp_path / "bomb.npz")


def test_other_files_in_an_archive_are_no_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert "readme.txt is no array" in refused(tmp_path / "x.npz")


def test_an_array_header_that_promises_too_much(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((10, 10)))
    lying = buffer.getvalue().replace(b"(10, 10), }" + b" " * 10, b"(10000000000, 10), }"[:21].ljust(21))
    with pytest.raises(ValueError, match="cannot be read"):
        arrays.load_npy(write(tmp_path / "lie.npy", lying))


def test_truncated_jpeg(tmp_path):
    Image.fromarray(random_pixels(64, 64, 3)).save(tmp_path / "whole.jpg")
    half = (tmp_path / "whole.jpg").read_bytes()[:2000]
    assert "truncated" in refused(write(tmp_path / "half.jpg", half))


@pytest.mark.parametrize("name", ["moving.gif", "moving.webp", "pages.tiff"])
def test_several_frames(name, tmp_path):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green", "blue")]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    assert "3 frames" in refused(tmp_path / name)


def test_formats_that_nobody_checked_are_refused(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "page.eps")
    assert "cannot be read" in refused(tmp_path / "page.eps")
