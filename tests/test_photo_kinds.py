"""Kinds of photos, masks and options that were once taken for others: what is said, and what is refused."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image, ImageFont

import snips
from command_line import QUICK, refused, run
from photo_files import encoded, png16, random_pixels, saved_photo
from snips import InverseProblem, make_operator
from snips.images import load_image
from snips.photos.photo import as_photo, load_photo
from snips.posing.noise import estimate_noise
from snips.report import comparison_grid
from snips.report.grid import GAP

PROFILE = b"\1" * 33  # of an odd length, which the file pads


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("lossless", [False, True])
def test_a_webp_knows_whether_it_was_compressed_with_loss(lossless, extended, tmp_path):
    more = {"icc_profile": PROFILE} if extended else {}
    Image.fromarray(random_pixels(16, 16, 3)).save(tmp_path / "photo.webp", lossless=lossless, **more)
    assert load_photo(tmp_path / "photo.webp").lossy == (not lossless)
    with Image.open(tmp_path / "photo.webp") as picture:
        assert as_photo(picture).lossy == (not lossless)


def test_a_webp_without_a_file_may_be_lossy():
    buffer = io.BytesIO()
    Image.fromarray(random_pixels(16, 16, 3)).save(buffer, "WEBP", lossless=True)
    assert as_photo(Image.open(buffer)).lossy


def test_the_noise_of_a_lossy_webp_is_a_guess(tmp_path):
    Image.fromarray(random_pixels(64, 64, 3)).save(tmp_path / "photo.webp", quality=60)
    result = run("restore", tmp_path / "photo.webp", "--prior", "gaussian", "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    assert "warning" in result.stderr
    assert "its compression (JPEG or WebP)" in result.stderr


@pytest.mark.parametrize("mode", ["L", "LA"])
def test_grey_stays_grey_in_webp(mode, tmp_path):
    picture = Image.fromarray(random_pixels(8, 12, 3)).convert(mode)
    if mode == "LA":
        picture.putalpha(Image.linear_gradient("L").resize((12, 8)))
    picture.save(tmp_path / "photo.webp", lossless=True, exact=True)
    photo = load_photo(tmp_path / "photo.webp")
    assert photo.pixels.shape == (1, 1, 8, 12)
    assert (photo.alpha is not None) == (mode == "LA")
    torch.testing.assert_close(photo.pixels[0, 0], torch.from_numpy(np.array(picture.getchannel("L")) / 255).float())
    assert "WebP stores grey" in photo.notes[0]


def test_one_different_pixel_makes_a_webp_coloured(tmp_path):
    values = random_pixels(8, 8, 1).repeat(3, axis=2)
    values[3, 4, 2] ^= 1
    Image.fromarray(values).save(tmp_path / "photo.webp", lossless=True)
    assert load_image(tmp_path / "photo.webp").shape == (1, 3, 8, 8)


@pytest.mark.parametrize(("shape", "said"), [((3, 37, 1), True), ((3, 37, 8), False), ((37, 9, 3), False)])
def test_an_array_of_two_meanings_says_how_it_is_read(shape, said):
    assert bool(as_photo(np.full(shape, 0.5)).notes) == said


@pytest.mark.parametrize("names", [("first", "second"), ()])
def test_an_archive_of_other_arrays_is_told_what_to_do(names, tmp_path):
    np.savez(tmp_path / "several.npz", **{name: np.zeros((4, 4)) for name in names})
    line = refused(run("restore", tmp_path / "several.npz", "--out", tmp_path / "out"))
    assert f"holds {', '.join(names) or 'no array'}: save the image alone" in line


@pytest.fixture
def photo(tmp_path):
    return saved_photo(tmp_path / "photo.png", 16, 16)


def test_a_transparent_mask_is_refused_as_its_holes_would_be_lost(photo, tmp_path):
    mask = Image.new("LA", (16, 16), (255, 255))
    mask.putpixel((3, 3), (255, 0))
    mask.save(tmp_path / "mask.png")
    line = refused(run("restore", photo, "--mask", tmp_path / "mask.png", "--out", tmp_path / "out"))
    assert "is transparent in places" in line


def test_an_option_of_another_problem_is_named_without_its_numbers(photo, tmp_path):
    Image.new("L", (16, 16), 255).save(tmp_path / "mask.png")
    mask = ("--mask", tmp_path / "mask.png", "-s", "0.1", "--out", tmp_path / "out")
    assert "sr2 cannot take mask of shape (16, 16)" in refused(run("restore", photo, "-p", "sr2", *mask))
    assert "inpaint cannot take factor=2;" in refused(run("restore", photo, "--factor", "2", *mask))


def test_a_matrix_is_a_matrix(photo, tmp_path):
    np.save(tmp_path / "row.npy", np.ones(5))
    for name, words in (("row.npy", "has shape (5,)"), ("photo.png", "is read from a .npy file")):
        assert words in refused(run("restore", photo, "--matrix", tmp_path / name, "--out", tmp_path / "out"))


def test_an_infinite_noise_is_not_taken_for_0_to_255(photo, tmp_path):
    line = refused(run("restore", photo, "-s", "inf", "--out", tmp_path / "out"))
    assert "finite number" in line
    assert "255" not in line


def test_tiles_that_are_asked_for_in_vain(photo, tmp_path):
    arguments = ("-s", "0.1", "--prior", "natural", "--tile", "32", "--out", tmp_path / "out")
    assert "it is denoised whole" in run("restore", photo, *arguments, *QUICK).stderr


def test_few_seen_pixels_in_a_large_picture_are_few():
    """Wavelets need 800 pixels; 20 x 30 of 64 x 64 are not enough, however large the picture around them is."""
    mask = torch.zeros(64, 64, dtype=torch.bool)
    mask[20:40, 20:50] = True
    operator = make_operator("inpaint", (1, 64, 64), mask=mask)
    truth = torch.full((1, 1, 64, 64), 0.5)
    found = estimate_noise(operator, InverseProblem.simulate(operator, truth, 0.1, seed=0).y)
    assert "wavelets" not in found.method
    assert found.doubt


def test_names_in_the_grid_of_narrow_pictures_do_not_overlap():
    problem = InverseProblem(make_operator("denoise", (1, 200, 2)), torch.zeros(1, 1, 200, 2), 0.1)
    grid = comparison_grid(problem, torch.zeros(2, 1, 1, 200, 2))
    names = ("degraded", "sample 1", "sample 2", "mean", "std x 4")
    assert grid.width >= sum(ImageFont.load_default().getlength(name) + GAP for name in names)


def test_a_batch_with_its_channels_last_is_refused():
    with pytest.raises(ValueError, match=r"permute\(0, 3, 1, 2\)"):
        as_photo(torch.zeros(1, 8, 8, 3))
    assert as_photo(torch.zeros(1, 8, 8, 8)).pixels.shape == (1, 8, 8, 8)


def test_a_damaged_picture_that_pillow_opened(tmp_path):
    Image.fromarray(random_pixels(32, 32, 3)).save(tmp_path / "photo.jpg")
    data = (tmp_path / "photo.jpg").read_bytes()
    with Image.open(io.BytesIO(data[: len(data) // 2])) as picture, pytest.raises(ValueError, match="damaged"):
        as_photo(picture)


def test_of_an_animation_that_pillow_opened_the_current_frame_is_taken():
    buffer = io.BytesIO()
    first, second = (Image.new("L", (8, 8), grey) for grey in (0, 255))
    first.save(buffer, "GIF", save_all=True, append_images=[second])
    with Image.open(buffer) as picture:
        picture.seek(1)
        photo = as_photo(picture)
    assert photo.pixels.mean() == 1
    assert photo.notes == ("of its 2 frames the current one is taken",)


def test_what_python_users_get_wrong():
    with pytest.raises(ValueError, match=r"open files with PIL\.Image\.open"):
        as_photo("photo.png")
    with pytest.raises(ValueError, match="value_range takes two numbers"):
        snips.restore(np.full((8, 8), 100.0), sigma_0=0.1, value_range=(0,))  # pyright: ignore


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["L", "P", "I;16", "RGB", "RGBA", "CMYK"])
def test_uncompressed_tiffs_are_turned_as_compressed_ones(mode, orientation, tmp_path):
    picture = Image.fromarray(random_pixels(6, 9, 4))
    picture = Image.fromarray(random_pixels(6, 9, dtype=np.uint16)) if mode == "I;16" else picture.convert(mode)
    plain, packed = tmp_path / "plain.tif", tmp_path / "packed.tif"
    picture.save(plain, tiffinfo={274: orientation})
    picture.save(packed, tiffinfo={274: orientation}, compression="tiff_lzw")
    expected = load_photo(packed)
    with Image.open(plain) as opened:
        for found in (load_photo(plain), as_photo(opened)):
            assert torch.equal(found.pixels, expected.pixels)


def test_a_picture_of_32_bits_has_no_obvious_white(tmp_path):
    picture = Image.fromarray(random_pixels(6, 9))
    with pytest.raises(ValueError, match="--range 0,255"):
        as_photo(picture.convert("I"))
    assert torch.equal(as_photo(picture.convert("I"), (0, 255)).pixels, as_photo(picture).pixels)
    (tmp_path / "deep.png").write_bytes(png16(random_pixels(6, 9, 1, dtype=np.uint16)))
    with Image.open(tmp_path / "deep.png") as opened:
        assert torch.equal(as_photo(opened).pixels, load_photo(tmp_path / "deep.png").pixels)


@pytest.mark.parametrize("value_range", [(16, 235), (255, 0), (0, 255)])
def test_transparency_has_a_range_of_its_own(value_range, tmp_path):
    values = random_pixels(6, 9, 4)
    expected = torch.from_numpy(values[..., 3] / 255).float()
    Image.fromarray(values).save(tmp_path / "photo.png")
    floats = np.concatenate([values[..., :3].astype(float), values[..., 3:] / 255], -1)
    np.save(tmp_path / "photo.npy", floats)
    for name in ("photo.png", "photo.npy"):
        torch.testing.assert_close(load_photo(tmp_path / name, value_range).alpha[0, 0], expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_transparent_colour_of_16_bits(channels, tmp_path):
    values = random_pixels(6, 9, channels, dtype=np.uint16)
    content = png16(values, transparent=values[2, 3])
    (tmp_path / "deep.png").write_bytes(content)
    photo = load_photo(tmp_path / "deep.png")
    assert (photo.alpha[0, 0] == 0).nonzero().tolist() == [[2, 3]]
    torch.testing.assert_close(photo.pixels[0], torch.from_numpy(np.moveaxis(values / 65535, -1, 0)).float())


@pytest.mark.parametrize(("white", "notes"), [(255, ()), (1023, ("its 1,024 levels are read as 256",))])
def test_a_ppm_of_many_levels_says_that_it_loses_some(white, notes, tmp_path):
    values = random_pixels(6, 9, 3).astype(">u2" if white > 255 else "u1")
    (tmp_path / "x.ppm").write_bytes(b"P6\n9 6\n%d\n" % white + values.tobytes())
    assert load_photo(tmp_path / "x.ppm").notes == notes


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ma.masked_array(np.zeros((4, 4)), mask=np.eye(4)), "a masked array is not read"),
        (np.eye(4, dtype=np.int64), "integers of int64, whose white may be 1 or more: .* --range 0,1 "),
        (torch.zeros(1, 4, 4).to_sparse(), "a sparse tensor"),
        (torch.zeros(1, 4, 4, device="meta"), "a meta tensor"),
    ],
)
def test_values_that_are_no_picture_as_they_are(value, message):
    with pytest.raises(ValueError, match=message):
        as_photo(value)


def test_tensors_of_8_bits_and_bytes_of_grey_and_alpha():
    assert as_photo(torch.full((1, 4, 4), 0.5).to(torch.float8_e4m3fn)).pixels.unique().tolist() == [0.5]
    photo = as_photo(random_pixels(6, 9, 2))
    assert photo.pixels.shape == photo.alpha.shape == (1, 1, 6, 9)


def test_uncompressed_ycbcr_is_not_called_truncated(tmp_path):
    tifffile.imwrite(tmp_path / "x.tif", random_pixels(16, 16, 3), photometric="ycbcr")
    with pytest.raises(ValueError, match="of a kind that is not read .*YCbCr"):
        load_photo(tmp_path / "x.tif")


def test_a_picture_with_the_name_of_an_array(tmp_path):
    (tmp_path / "photo.npy").write_bytes(encoded("PNG"))
    with pytest.raises(ValueError, match="is no file of NumPy") as caught:
        load_photo(tmp_path / "photo.npy")
    assert "allow_pickle" not in str(caught.value)
