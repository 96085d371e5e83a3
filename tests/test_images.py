"""Reading and writing pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from photo_files import encoded
from snips.images import centre_crop, example_image, load_image, to_picture
from snips.photos import decoding


def save(tmp_path, image: Image.Image, name: str = "image.png", **options):
    image.save(tmp_path / name, **options)
    return tmp_path / name


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3), ("1", 1), ("RGBA", 3), ("P", 3), ("LA", 1)])
def test_modes(mode, channels, tmp_path):
    x = load_image(save(tmp_path, Image.new(mode, (5, 4))))
    assert x.shape == (1, channels, 4, 5)
    assert x.dtype == torch.float32


def test_values_are_in_0_1(tmp_path):
    values = np.array([[0, 128, 255]], dtype=np.uint8)
    torch.testing.assert_close(
        load_image(save(tmp_path, Image.fromarray(values)))[0, 0, 0], torch.tensor([0, 128 / 255, 1])
    )
    deep = np.array([[0, 256, 65535]], dtype=np.uint16)
    torch.testing.assert_close(
        load_image(save(tmp_path, Image.fromarray(deep)))[0, 0, 0], torch.tensor([0, 256 / 65535, 1])
    )


def test_float_images(tmp_path):
    values = np.array([[0.0, 0.5, 1.0]], dtype=np.float32)
    torch.testing.assert_close(
        load_image(save(tmp_path, Image.fromarray(values), "image.tiff"))[0, 0], torch.tensor(values)
    )
    for wrong in (values + 3, (values * 2_000_000).astype(np.int32)):
        with pytest.raises(ValueError, match=r"image.tiff.*not from 0 to 1: say which are black and white"):
            load_image(save(tmp_path, Image.fromarray(wrong), "image.tiff"))


def test_exif_orientation_is_obeyed(tmp_path):
    image = Image.new("RGB", (8, 4))
    exif = image.getexif()
    exif[0x0112] = 6  # the camera was turned
    assert load_image(save(tmp_path, image, "image.jpg", exif=exif)).shape == (1, 3, 8, 4)


def test_round_trip(tmp_path):
    x = (torch.rand(3, 6, 7) * 255).round() / 255
    torch.testing.assert_close(load_image(save(tmp_path, to_picture(x)))[0], x)


def test_pictures_are_clamped_and_any_number_of_channels_is_shown():
    assert to_picture(torch.full((1, 2, 2), 3.0)).getpixel((0, 0)) == 255
    assert to_picture(torch.full((3, 2, 2), -1.0)).getpixel((0, 0)) == (0, 0, 0)
    assert to_picture(torch.rand(2, 4, 5)).size == (10, 4)


def test_example_image():
    assert example_image().shape == (1, 3, 64, 64)


def test_centre_crop():
    x = torch.arange(35.0).reshape(1, 1, 5, 7)
    assert torch.equal(centre_crop(x, 4), x[..., 0:4, 1:5])


def test_too_many_pixels_are_refused_before_decoding(tmp_path, monkeypatch):
    path = save(tmp_path, Image.new("L", (30, 30)))
    monkeypatch.setattr(decoding, "MAX_PIXELS", 899)
    with pytest.raises(ValueError, match="30 x 30 pixels; at most 899"):
        load_image(path)


def test_missing_file(tmp_path):
    with pytest.raises(ValueError, match="there is no image file"):
        load_image(tmp_path / "nothing.png")
    with pytest.raises(ValueError, match="there is no image file"):
        load_image(tmp_path)


@given(kind=st.sampled_from(["PNG", "JPEG", "TIFF", "WEBP"]), share=st.floats(0, 0.95))
def test_truncated_files_are_refused(kind, share, tmp_path_factory):
    whole = encoded(kind)
    path = tmp_path_factory.getbasetemp() / "truncated"
    path.write_bytes(whole[: int(share * len(whole))])
    try:
        x = load_image(path)
    except ValueError as error:
        assert "cannot be read as an image" in str(error)
        assert "\n" not in str(error)
    else:  # a TIFF may keep its pixels before its directory is lost, never the other way round
        assert x.shape == (1, 3, 16, 16)
        assert torch.isfinite(x).all()


@given(data=st.binary(max_size=200))
def test_noise_is_not_an_image(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "noise.png"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="cannot be read as an image"):
        load_image(path)
