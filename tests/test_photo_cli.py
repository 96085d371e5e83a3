"""Photos through the command line: what comes out, what is said, and what is refused in one line."""

from __future__ import annotations

import errno
import json
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import convolve

from command_line import refused, run
from photo_files import KINDS, SUFFIXES, mutations, png, png16, random_pixels
from snips import Restoration, restoration
from snips.cli import problem_options
from snips.metrics import ssim
from snips.priors import registry
from snips.results import storage
from test_cli import QUICK, size_and_mode


@pytest.fixture
def photo(tmp_path):
    Image.fromarray(random_pixels(12, 20, 3)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def restored(tmp_path, *arguments):
    """Run `snips restore`, which must work, and read what it wrote."""
    result = run("restore", *arguments, "--out", tmp_path / "out", *QUICK)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize(("problem", "factor"), [("denoise", 1), ("sr2", 2), ("sr4", 4), ("deblur_gauss", 1)])
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_any_aspect_grey_colour_and_alpha(mode, problem, factor, tmp_path):
    picture = Image.fromarray(random_pixels(12, 20, 3)).convert(mode)
    if mode in ("LA", "RGBA"):
        picture.putalpha(Image.linear_gradient("L").resize((20, 12)))
    picture.save(tmp_path / "photo.png")
    restored(tmp_path, tmp_path / "photo.png", "-p", problem, "-s", "0.1")
    for name in ("sample_00", "mean"):
        assert size_and_mode(tmp_path / "out" / f"{name}.png") == ((20 * factor, 12 * factor), mode)
    assert Restoration.load(tmp_path / "out").samples.shape[2] == (1 if mode in ("L", "LA") else 3)


def test_alpha_comes_back_unchanged(tmp_path):
    picture = Image.fromarray(random_pixels(8, 8, 4))
    picture.save(tmp_path / "photo.png")
    restored(tmp_path, tmp_path / "photo.png", "-s", "0.1")
    with Image.open(tmp_path / "out" / "mean.png") as mean:
        assert mean.getchannel("A").tobytes() == picture.getchannel("A").tobytes()
    assert Restoration.load(tmp_path / "out").alpha.shape == (1, 1, 8, 8)


def test_16_bits_reach_the_measurement(tmp_path):
    values = random_pixels(8, 8, 3, dtype=np.uint16)
    (tmp_path / "deep.png").write_bytes(png16(values))
    restored(tmp_path, tmp_path / "deep.png", "-s", "0.1")
    y = Restoration.load(tmp_path / "out").problem.y[0]
    torch.testing.assert_close(y, torch.tensor(values.transpose(2, 0, 1).astype(np.float32) / 65535))


def test_simulate_reports_quality_and_truth(photo, tmp_path):
    result = restored(tmp_path, photo, "-p", "sr", "--factor", "3", "--simulate", "--json")
    description = json.loads(result.stdout)
    assert description["operator"]["image_shape"] == [3, 12, 18]  # cropped, as 3 does not divide 20
    assert "cropped to 18 x 12" in description["settings"]["notes"][0]
    stored = Restoration.load(tmp_path / "out")
    assert stored.problem.truth is not None
    mean = stored.samples.clamp(0, 1).mean(0)
    assert description["ssim"]["mean"] == pytest.approx(ssim(mean, stored.problem.truth).tolist(), abs=1e-5)
    assert description["psnr"]["mean"][0] > 5
    assert size_and_mode(tmp_path / "out" / "truth.png")[0] == (18, 12)


def test_factor_mask_and_matrix_name_their_problem(photo, tmp_path):
    np.save(tmp_path / "mask.npy", np.eye(12, 20))
    np.save(tmp_path / "H.npy", np.eye(240))
    for option, value, name in (
        ("--factor", 3, "sr"),
        ("--mask", tmp_path / "mask.npy", "inpaint"),
        ("--matrix", tmp_path / "H.npy", "matrix"),
    ):
        result = restored(tmp_path, photo, option, value, "-s", "0.1", "--force", "--json")
        assert json.loads(result.stdout)["operator"]["problem"] == name


def test_numbers_measured_by_a_matrix(tmp_path):
    random = np.random.default_rng(0)
    H, x = 100 * random.standard_normal((40, 48)), random.random(48)
    np.save(tmp_path / "H.npy", H)
    np.save(tmp_path / "y.npy", H @ x)
    arguments = (tmp_path / "y.npy", "--matrix", tmp_path / "H.npy", "-s", "0.01")
    assert "--shape" in refused(run("restore", *arguments, "--out", tmp_path / "out"))
    restored(tmp_path, *arguments, "--shape", "1,6,8")
    result = Restoration.load(tmp_path / "out")
    assert result.samples.shape[2:] == (1, 6, 8)
    residual = H @ result.samples[0].flatten().double().numpy() - H @ x
    assert np.abs(residual).max() < 1  # of values in the hundreds


def test_a_grey_picture_saved_as_colour_is_colorized(photo, tmp_path):
    with Image.open(photo) as picture:
        picture.convert("L").convert("RGB").save(tmp_path / "grey.png")
    restored(tmp_path, tmp_path / "grey.png", "-p", "colorize", "-s", "0.1")
    assert size_and_mode(tmp_path / "out" / "mean.png")[1] == "RGB"
    assert "has colours" in refused(run("restore", photo, "-p", "colorize", "--out", tmp_path / "other"))


def test_sigma_auto_says_what_it_found(tmp_path):
    noise = np.random.default_rng(0).standard_normal((128, 128))
    np.save(tmp_path / "noisy.npy", 0.5 + 0.1 * noise)
    result = restored(tmp_path, tmp_path / "noisy.npy", "-s", "auto", "--prior", "gaussian")
    assert "estimated from the finest wavelets" in result.stderr
    assert "warning" not in result.stderr
    assert Restoration.load(tmp_path / "out").problem.sigma_0 == pytest.approx(0.1, rel=0.05)


def test_a_guess_is_a_warning_even_with_json(photo, tmp_path):
    result = restored(tmp_path, photo, "--json")
    assert "warning: sigma_0" in result.stderr
    assert "a guess" in json.loads(result.stdout)["settings"]["noise"]


def test_a_stored_measurement_may_be_given_another_noise(photo, tmp_path):
    run("degrade", photo, "-p", "mri", "-s", "0.1", "--out", tmp_path / "y.npz")
    restored(tmp_path, tmp_path / "y.npz", "--sigma", "0.2")
    assert Restoration.load(tmp_path / "out").problem.sigma_0 == 0.2


def test_a_stated_range(tmp_path):
    np.save(tmp_path / "raw.npy", np.full((8, 8), 2048.0))
    assert "--range" in refused(run("restore", tmp_path / "raw.npy", "--out", tmp_path / "out"))
    result = restored(tmp_path, tmp_path / "raw.npy", "--range", "0,4096", "-s", "0.1")
    assert "0 is black and 4096 is white" in result.stderr
    assert Restoration.load(tmp_path / "out").problem.y.unique().tolist() == [0.5]


def test_the_prior_is_chosen_and_named(photo, tmp_path):
    assert "prior: " in restored(tmp_path, photo, "-s", "0.1").stderr
    assert "prior: " not in restored(tmp_path, photo, "-s", "0.1", "--prior", "gaussian", "--force").stderr


def test_a_face_prior_on_a_larger_photo_says_what_will_happen(tmp_path):
    Image.fromarray(random_pixels(72, 72, 3)).save(tmp_path / "photo.png")
    arguments = ("--prior", "faces", "-s", "0.1", "--nfe", "4", "-k", "1", "--out", tmp_path / "out")
    result = run("restore", tmp_path / "photo.png", *arguments)
    assert result.exit_code == 0, result.output
    assert "made for aligned images of 64 x 64 pixels, this one has 72 x 72" in result.stderr


def test_a_face_prior_on_a_grey_photo(tmp_path):
    Image.new("L", (64, 64)).save(tmp_path / "grey.png")
    line = refused(run("restore", tmp_path / "grey.png", "--prior", "faces", "-s", "0.1", "--out", tmp_path / "out"))
    assert "3 channels, not 1" in line


def test_large_photos_are_estimated_first(tmp_path):
    Image.fromarray(random_pixels(256, 256)).save(tmp_path / "large.png")
    result = restored(tmp_path, tmp_path / "large.png", "-s", "0.1", "--prior", "gaussian")
    assert "2 samples of 256 x 256 pixels will take about" in result.stderr
    assert "GiB of memory" in result.stderr


# The peak that a parent is told of its child counts the parent's own memory, from before the child became a program.
WITH_PEAK = """
import atexit, pathlib, snips.cli
atexit.register(lambda: print(pathlib.Path("/proc/self/status").read_text()))
snips.cli.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its peak of memory")
def test_the_estimated_memory_is_that_of_the_whole_program(tmp_path):
    """Program and weights included, as a task manager shows it: within a fifth of what the process really took."""
    Image.fromarray(random_pixels(256, 256)).save(tmp_path / "large.png")
    arguments = ["restore", tmp_path / "large.png", "-s", "0.1", "--nfe", "4", "-k", "2", "--out", tmp_path / "out"]
    done = subprocess.run([sys.executable, "-c", WITH_PEAK, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (gibibytes,) = re.findall(r"and ([\d.]+) GiB of memory", done.stderr)
    (kibibytes,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stdout)
    assert float(gibibytes) == pytest.approx(int(kibibytes) / 2**20, rel=0.2)


def test_ctrl_c_before_the_first_step_is_answered_in_one_line(tmp_path, monkeypatch):
    Image.fromarray(random_pixels(256, 256)).save(tmp_path / "large.png")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("snips.running.costs.estimate_cost", interrupted)
    result = run("restore", tmp_path / "large.png", "-s", "0.1", "--prior", "gaussian", "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert result.stderr.strip().splitlines() == ["snips: stopped"]
    assert not (tmp_path / "out").exists()


def test_what_does_not_fit_into_memory_is_refused_before(tmp_path, monkeypatch):
    Image.fromarray(random_pixels(256, 256)).save(tmp_path / "large.png")
    monkeypatch.setattr("snips.running.costs.available_memory", lambda: 1000)
    result = run("restore", tmp_path / "large.png", "-s", "0.1", "--out", tmp_path / "out", "--prior", "gaussian")
    assert result.exit_code == 2
    assert "GiB are free" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "25"], "did you mean --sigma 0.09804, which is 25/255"),
        (["-s", "loud"], "a number or auto"),
        (["-p", "cs4"], "measures projections, not pixels"),
        (["-p", "mri"], "measures frequencies, not pixels"),
        (["-p", "sr", "--factor", "0"], "whole number of at least 1"),
        (["-p", "sr4", "--factor", "3"], "cannot take factor=3"),
        (["--simulate", "-s", "auto"], "needs to know its noise"),
        (["--range", "1"], "2 numbers"),
        (["--range", "1,1"], "two different numbers"),
        (["-p", "matrix"], "needs the option matrix"),
        (["--chunk", "0", "-s", "0.1"], "chunk must be"),
    ],
)
def test_one_line_for_bad_options(arguments, message, photo, tmp_path):
    assert message in refused(run("restore", photo, "--out", tmp_path / "out", *QUICK, *arguments))
    assert not (tmp_path / "out").exists()


def test_a_sigma_for_0_to_255_is_asked_about_in_a_terminal(monkeypatch):
    monkeypatch.setattr(problem_options.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(problem_options.typer, "confirm", lambda *_, **__: True)
    assert problem_options.read_sigma("25") == 25 / 255
    monkeypatch.setattr(problem_options.typer, "confirm", lambda *_, **__: False)
    with pytest.raises(ValueError, match="0 to 1 here"):
        problem_options.read_sigma("25")


def test_a_kernel_as_a_picture(tmp_path):
    """Grey levels are relative weights: the measurement's model is the blur with the kernel of sum 1."""
    weights = np.array([[0, 50, 0], [100, 255, 0], [0, 25, 0]], np.uint8)
    Image.fromarray(weights).save(tmp_path / "kernel.png")
    truth = np.random.default_rng(0).random((12, 20))
    np.save(tmp_path / "photo.npy", convolve(truth, weights / weights.sum(), mode="wrap"))
    restored(
        tmp_path, tmp_path / "photo.npy", "--kernel", tmp_path / "kernel.png", "-o", "border=circular", "-s", "0.01"
    )
    problem = Restoration.load(tmp_path / "out").problem
    expected = problem.operator.forward(torch.from_numpy(truth)[None, None].float())
    np.testing.assert_allclose(problem.y, expected, atol=1e-5)


@pytest.mark.parametrize("kernel", [[[-1.0, -1.0]], [[1.0, -4.0]]])
def test_a_kernel_of_a_negative_sum(kernel, photo, tmp_path):
    np.save(tmp_path / "kernel.npy", np.array(kernel))
    line = refused(run("restore", photo, "--kernel", tmp_path / "kernel.npy", "--out", tmp_path / "out"))
    assert "needs a positive sum" in line


@pytest.mark.parametrize("white", [1, 127, 255])
def test_masks_with_any_white(white, photo, tmp_path):
    mask = np.zeros((12, 20), np.uint8)
    mask[:, 5:] = white
    Image.fromarray(mask).save(tmp_path / "mask.png")
    restored(tmp_path, photo, "-s", "0.1", "--mask", tmp_path / "mask.png")
    assert Restoration.load(tmp_path / "out").problem.y.numel() == 3 * 12 * 15


def test_a_mask_that_hides_everything(photo, tmp_path):
    Image.new("L", (20, 12), 0).save(tmp_path / "mask.png")
    line = refused(run("restore", photo, "--mask", tmp_path / "mask.png", "--out", tmp_path / "out"))
    assert "hides every pixel" in line


def test_more_interrupts_while_saving(photo, tmp_path, monkeypatch):
    """Ctrl-C again and again: what was finished is kept all the same."""
    real = Restoration.save

    def save(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(Restoration, "save", save)
    monkeypatch.setitem(restoration.SAMPLERS, "fast", interrupting(25))
    quick = ("-s", "0.1", "--nfe", "10", "-k", "5", "--chunk", "1", "--prior", "gaussian", "--out", tmp_path / "out")
    assert run("restore", photo, *quick).exit_code == 130
    assert len(Restoration.load(tmp_path / "out").samples) == 2


@pytest.mark.parametrize("kernel", [[[1.0, -2.0, 1.0]], [[0.0]], [[1.0, -1.0]]])
def test_a_kernel_that_sums_to_0(kernel, photo, tmp_path):
    np.save(tmp_path / "kernel.npy", np.array(kernel))
    line = refused(run("restore", photo, "--kernel", tmp_path / "kernel.npy", "--out", tmp_path / "out"))
    assert "sum to 0" in line


def test_the_input_is_never_overwritten(photo, tmp_path):
    before = photo.read_bytes()
    line = refused(run("restore", photo, "-s", "0.1", "--out", tmp_path, "--force"))
    assert "lies in the folder for the results" in line
    assert photo.read_bytes() == before


def test_sampling_without_an_svd(photo, tmp_path):
    restored(tmp_path, photo, "-s", "0.1", "--sampler", "matrix_free")
    assert Restoration.load(tmp_path / "out").settings["sampler"] == "matrix_free"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-p", "sr", "--factor", "100000"), "asks for more than 64,000,000 pixels"),
        (("-p", "inpaint", "-o", 'mask={"a": 1}'), "the mask must be an array of numbers"),
        (("-p", "inpaint", "-o", "mask=[[1, 2], [3]]"), "the mask must be an array of numbers"),
        (("-p", "sr", "-o", "factor=Infinity", "--simulate"), "the factor must be a whole number"),
        (("-p", "sr", "-o", "factor=1e400", "--simulate"), "the factor must be a whole number"),
    ],
)
def test_options_that_make_no_sense(arguments, message, photo, tmp_path):
    assert message in refused(run("restore", photo, "-s", "0.1", *arguments, "--out", tmp_path / "out"))


def test_a_mask_of_another_size(photo, tmp_path):
    Image.new("L", (20, 11), 255).save(tmp_path / "mask.png")
    line = refused(run("restore", photo, "--mask", tmp_path / "mask.png", "--out", tmp_path / "out"))
    assert "mask has shape (1, 11, 20)" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [(png(30_000, 30_000, 8, 2, b""), "64,000,000 pixels"), (png(64, 64, 8, 2, b"few"), "cannot be read as an image")],
)
def test_bad_files(content, message, tmp_path):
    (tmp_path / "bad.png").write_bytes(content)
    assert message in refused(run("restore", tmp_path / "bad.png", "--out", tmp_path / "out"))


def interrupting(step):
    """The fast sampler, with Ctrl-C after some step."""

    def sampler(*arguments, on_step, **options):
        def then_stop(info):
            on_step(info)
            if info.step == step:
                raise KeyboardInterrupt

        return restoration.fast(*arguments, on_step=then_stop, **options)

    return sampler


@pytest.mark.parametrize(("step", "kept"), [(25, 2), (5, 0)])
def test_ctrl_c_keeps_finished_samples(step, kept, photo, tmp_path, monkeypatch):
    whole = ("restore", photo, "-s", "0.1", "--nfe", "10", "-k", "5", "--chunk", "1", "--prior", "gaussian", "--out")
    run(*whole, tmp_path / "whole")
    monkeypatch.setitem(restoration.SAMPLERS, "fast", interrupting(step))
    result = run(*whole, tmp_path / "out")
    assert result.exit_code == 130
    if not kept:
        assert "nothing is written" in result.stderr
        assert not (tmp_path / "out").exists()
        return
    assert "2 of 5 samples were finished and are kept" in result.stderr
    samples = Restoration.load(tmp_path / "out").samples
    assert torch.equal(samples, Restoration.load(tmp_path / "whole").samples[:2])


@pytest.mark.slow
def test_ctrl_c_from_a_terminal(tmp_path):
    """A real signal in a real process, while it is sampling; far too many samples to be finished."""
    np.save(tmp_path / "photo.npy", np.full((64, 64), 1.1))
    command = (sys.executable, "-m", "snips", "restore", "photo.npy", "-s", "0.1", "-k", "5000", "--prior", "gaussian")
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "1 is white" in process.stderr.readline()  # the last words before sampling
    time.sleep(10)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert ("are kept" in said) == (tmp_path / "restored" / "report.html").exists()


def test_natural_is_chosen_once_it_is_there(photo, monkeypatch, tmp_path):
    from snips.priors.choice import choose_prior

    monkeypatch.setattr(registry, "WEIGHTS", tmp_path)
    assert choose_prior((3, 64, 64)).name == "gaussian"
    for name in ("natural", "faces"):
        (tmp_path / f"{name}.safetensors").touch()
        assert choose_prior((1, 64, 64)).name == choose_prior((3, 64, 65)).name == "natural"
    assert choose_prior((3, 64, 64)).name == "faces"
    assert choose_prior((2, 64, 64)).name == "gaussian"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_end_well(kind, tmp_path):
    """200 files of each kind through the whole command: results or one clear line, never a traceback."""
    path = tmp_path / f"mutated{SUFFIXES.get(kind, '.bin')}"
    quick = (
        "--nfe",
        "4",
        "-k",
        "1",
        "-s",
        "0.1",
        "--prior",
        "gaussian",
        "--out",
        tmp_path / "out",
        "--force",
        "--json",
    )
    for content in mutations(kind, 200):
        path.write_bytes(content)
        result = run("restore", path, *quick, "--out", tmp_path / "out", "--force")
        assert result.exit_code == 0 or refused(result)


def test_more_samples_than_memory_holds_are_refused_before(photo, tmp_path, monkeypatch):
    monkeypatch.setattr("snips.running.costs.available_memory", lambda: 2**30)
    line = refused(run("restore", photo, "-s", "0.1", "-k", "100000000", "--out", tmp_path / "out", "--nfe", "4"))
    assert "100,000,000 samples need 1072.9 GiB of memory, but 1.0 GiB are free: take at most 93,206" in line


def test_a_folder_that_cannot_be_made_is_noticed_before(photo, monkeypatch):
    monkeypatch.setattr("snips.cli.restoring.posed_problem", lambda *_, **__: pytest.fail("too late"))
    assert "/proc/foo cannot be created" in refused(run("restore", photo, "--out", "/proc/foo", *QUICK))


def test_a_full_disk_does_not_lose_the_samples(photo, tmp_path, monkeypatch):
    real = storage.write_pictures

    def write(restoration, folder):
        if folder.parent == tmp_path / "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(restoration, folder)

    monkeypatch.setattr(storage, "write_pictures", write)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    arguments = ("-s", "0.1", "--prior", "gaussian", "--out", tmp_path / "full" / "out")
    line = refused(run("restore", photo, *arguments, *QUICK))
    assert f"{tmp_path / 'full' / 'out'} cannot be written (No space left on device)" in line
    rescued = re.search("the result is in (.*) instead", line)[1]
    assert len(Restoration.load(rescued).samples) == 2
    assert list((tmp_path / "full").iterdir()) == []


@pytest.mark.parametrize("typed", ["-s 25", "-s25", "--sigma=25", "--sigma 25"])
def test_the_command_to_repeat_has_the_noise_that_was_meant(typed):
    found = problem_options.with_sigma(f"snips restore photo-s25.png {typed} -k 25", "25", 25 / 255)
    assert found == f"snips restore photo-s25.png {typed.removesuffix('25')}0.0980392 -k 25"
    assert problem_options.with_sigma(f"snips restore a.png {typed}", "25", 25.0) == f"snips restore a.png {typed}"


def test_the_degraded_picture_keeps_transparency_too(tmp_path):
    Image.fromarray(random_pixels(12, 20, 4)).save(tmp_path / "photo.png")
    restored(tmp_path, tmp_path / "photo.png", "-s", "0.1", "--prior", "gaussian")
    assert size_and_mode(tmp_path / "out" / "degraded.png")[1] == "RGBA"
