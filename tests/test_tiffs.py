"""TIFF files of all kinds: which are read right, and which are refused with what to do."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image

from photo_files import random_pixels, tiff12, write
from snips.photos import tiff
from snips.photos.photo import load_photo


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_16_bit_tiff_keeps_every_bit(order, compression, tmp_path):
    values = random_pixels(6, 4, 3, dtype=np.uint16)
    tifffile.imwrite(tmp_path / "deep.tif", values, photometric="rgb", byteorder=order, compression=compression)
    found = load_photo(tmp_path / "deep.tif").pixels[0]
    assert torch.equal((found * 65535).round().to(torch.int64), torch.tensor(values.transpose(2, 0, 1).astype(int)))


TIFF_KINDS = {  # what is written, and as what it is read: channels last, 0 black, 1 white
    "float32 colour": (np.float32, (6, 9, 3), {"photometric": "rgb"}),
    "float32 grey": (np.float32, (6, 9), {"photometric": "minisblack"}),
    "float32 deflated": (np.float32, (6, 9, 3), {"photometric": "rgb", "compression": "zlib"}),
    "float32 tiles": (np.float32, (40, 50, 3), {"photometric": "rgb", "tile": (16, 16)}),
    "float32 planes": (np.float32, (3, 6, 9), {"photometric": "rgb", "planarconfig": "separate"}),
    "float32 alpha": (np.float32, (6, 9, 4), {"photometric": "rgb", "extrasamples": ["unassalpha"]}),
    "float64 colour": (np.float64, (6, 9, 3), {"photometric": "rgb", "byteorder": ">"}),
    "float16 grey": (np.float16, (6, 9), {"photometric": "minisblack"}),
    "16-bit planes": (np.uint16, (3, 6, 9), {"photometric": "rgb", "planarconfig": "separate"}),
    "16-bit grey and alpha": (np.uint16, (6, 9, 2), {"photometric": "minisblack", "extrasamples": ["unassalpha"]}),
    "8-bit planes": (np.uint8, (3, 6, 9), {"photometric": "rgb", "planarconfig": "separate"}),
    "8-bit deflated": (np.uint8, (6, 9, 3), {"photometric": "rgb", "compression": "zlib", "predictor": True}),
    "8-bit inverted": (np.uint8, (6, 9), {"photometric": "miniswhite"}),
    "BigTIFF": (np.uint16, (6, 9, 3), {"photometric": "rgb", "bigtiff": True}),
}


@pytest.mark.parametrize("kind", TIFF_KINDS)
def test_tiffs_that_are_read_right(kind, tmp_path):
    dtype, shape, options = TIFF_KINDS[kind]
    integers = np.issubdtype(dtype, np.integer)
    values = random_pixels(*shape, dtype=dtype) if integers else np.random.default_rng(0).random(shape).astype(dtype)
    tifffile.imwrite(tmp_path / "x.tif", values, **options)
    photo = load_photo(tmp_path / "x.tif")
    found = photo.pixels if photo.alpha is None else torch.cat([photo.pixels, photo.alpha], 1)
    expected = values / np.iinfo(dtype).max if integers else values.astype(np.float64)
    expected = 1 - expected if options["photometric"] == "miniswhite" else expected
    channels_last = expected[..., None] if expected.ndim == 2 else expected
    expected = expected if "planes" in kind else np.moveaxis(channels_last, -1, 0)
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert photo.notes == ()


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "tiff_adobe_deflate", "zstd"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_compressed_grey_tiffs(dtype, compression, tmp_path):
    integers = np.issubdtype(dtype, np.integer)
    values = random_pixels(6, 9, dtype=dtype) if integers else np.random.default_rng(0).random((6, 9)).astype(dtype)
    Image.fromarray(values).save(tmp_path / "x.tif", compression=compression)
    np.testing.assert_allclose(
        load_photo(tmp_path / "x.tif").pixels[0, 0], values / np.iinfo(dtype).max if integers else values, atol=1e-6
    )


def test_12_bits_are_scaled_to_their_own_white(tmp_path):
    values = random_pixels(6, 8, dtype=np.uint16) >> 4
    photo = load_photo(write(tmp_path / "x.tif", tiff12(values)))
    np.testing.assert_allclose(photo.pixels[0, 0], values / 4095, atol=1e-5)


def test_a_tiff_with_a_palette(tmp_path):
    colours, chosen = random_pixels(256, 3), random_pixels(6, 9)
    picture = Image.fromarray(chosen, mode="L").convert("P")
    picture.putpalette(colours.tobytes())
    picture.save(tmp_path / "x.tif")
    np.testing.assert_allclose(
        load_photo(tmp_path / "x.tif").pixels[0].permute(1, 2, 0), colours[chosen] / 255, atol=1e-6
    )


def test_premultiplied_transparency_is_undone(tmp_path):
    premultiplied = np.full((4, 4, 4), (60, 40, 20, 127), np.uint8)
    tifffile.imwrite(tmp_path / "x.tif", premultiplied, photometric="rgb", extrasamples=["assocalpha"])
    photo = load_photo(tmp_path / "x.tif")
    np.testing.assert_allclose(photo.pixels[0, :, 0, 0], np.array([60, 40, 20]) / 127, atol=0.01)
    np.testing.assert_allclose(photo.alpha[0, 0], 127 / 255, atol=1e-6)


def test_a_jpeg_inside_a_tiff_is_lossy(tmp_path):
    Image.fromarray(random_pixels(16, 16, 3)).save(tmp_path / "x.tif", compression="jpeg")
    assert load_photo(tmp_path / "x.tif").lossy


@pytest.mark.parametrize(
    ("dtype", "shape", "options", "message"),
    [
        (np.int8, (6, 9), {}, "values run from .* not from 0 to 1: say which are black and white"),
        (np.int16, (6, 9), {}, "values run from .* --range"),
        (np.uint32, (6, 9), {}, "values run from [0-9].* --range"),  # not negative, as Pillow has them
        (np.float32, (6, 9), {"photometric": "miniswhite"}, "white is 0, .*: invert it"),
        (np.float32, (6, 9, 4), {"photometric": "separated"}, "holds SEPARATED in 32-bit .*: convert it to RGB"),
        (np.uint16, (6, 9, 3), {"photometric": "cielab"}, "of a kind that is not read .*CIELAB.*: save it as"),
        (np.float32, (6, 9, 5), {"planarconfig": "contig"}, "has 5 channels .*: remove the others"),
        (np.float64, (3, 6, 9), {}, "has 3 pages: save the one you mean"),
        (np.complex64, (6, 9), {}, "neither integers nor floating-point numbers: save it as"),
    ],
)
def test_tiffs_that_are_refused_with_what_to_do(dtype, shape, options, message, tmp_path):
    random = np.random.default_rng(0)
    values = (
        random_pixels(*shape, dtype=dtype) if np.issubdtype(dtype, np.integer) else random.random(shape).astype(dtype)
    )
    tifffile.imwrite(tmp_path / "x.tif", values, **{"photometric": "minisblack", **options})
    with pytest.raises(ValueError, match=message) as caught:
        load_photo(tmp_path / "x.tif")
    assert "x.tif" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_compression_without_a_decoder_is_named(tmp_path):
    """Pillow cannot read floating-point colours, and tifffile alone no LZW."""
    tifffile.imwrite(tmp_path / "x.tif", np.zeros((6, 9, 3), np.float32), photometric="rgb")
    with tifffile.TiffFile(tmp_path / "x.tif", mode="r+") as file:
        file.pages[0].tags["Compression"].overwrite(5)
    with pytest.raises(ValueError, match="32-bit floating-point numbers compressed by LZW.*: save it uncompressed"):
        load_photo(tmp_path / "x.tif")


def test_a_truncated_float_tiff(tmp_path):
    tifffile.imwrite(tmp_path / "whole.tif", np.ones((20, 20, 3), np.float32), photometric="rgb")
    cut = (tmp_path / "whole.tif").read_bytes()[:-400]
    with pytest.raises(ValueError, match="cut.tif cannot be read .*missing.*damaged"):
        load_photo(write(tmp_path / "cut.tif", cut))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_float_tiffs_are_turned_upright_as_others(orientation, tmp_path):
    values = random_pixels(4, 6, 3)
    tag = [(274, "H", 1, orientation, True)]
    tifffile.imwrite(tmp_path / "bytes.tif", values, photometric="rgb", extratags=tag)
    tifffile.imwrite(tmp_path / "floats.tif", values.astype(np.float32) / 255, photometric="rgb", extratags=tag)
    found = [load_photo(tmp_path / f"{name}.tif").pixels for name in ("bytes", "floats")]
    torch.testing.assert_close(*found)


def test_16_bit_colours_are_turned_upright(tmp_path):
    values = random_pixels(4, 6, 3, dtype=np.uint16)
    tifffile.imwrite(tmp_path / "turned.tif", values, photometric="rgb", extratags=[(274, "H", 1, 6, True)])
    found = load_photo(tmp_path / "turned.tif").pixels[0]
    expected = np.rot90(values, -1).transpose(2, 0, 1).astype(int)  # orientation 6: turn clockwise
    assert torch.equal((found * 65535).round().to(torch.int64), torch.tensor(expected.copy()))


def test_16_bit_tiff_whose_white_is_0(tmp_path):
    values = random_pixels(5, 7, dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "inverted.tif", tiffinfo={262: 0})
    with Image.open(tmp_path / "inverted.tif") as written:
        assert written.tag_v2[262] == 0
    np.testing.assert_allclose(load_photo(tmp_path / "inverted.tif").pixels[0, 0], 1 - values / 65535, atol=1e-6)


def test_a_side_that_is_a_list_of_numbers_is_damage():
    """Multiplied with the other side, which a damaged file may say to be millions, the list would fill all memory."""
    damaged = SimpleNamespace(imagewidth=15_204_393, imagelength=(6, 0, 9))
    with pytest.raises(ValueError, match="its width or height is no number"):
        tiff._area(damaged)
