"""The page of all measurements, made from the stored JSON while the site is built: no figure in it was typed.

What is absent is named with the command that measures it.
"""

from __future__ import annotations

from faces_tables import face_mixture, message_passing, one_call, own_truths, precision
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from peers_tables import peers_tables
from sections import Measurement, section
from stored_tables import (
    BENCHMARKS,
    calibration,
    denoising,
    exactness_tables,
    facts,
    noise,
    operators,
    outcomes,
    overhead,
    scaling,
    soak,
    stationary,
    tiles,
    trials,
    unseen_tables,
)

EXPERIMENTS = BENCHMARKS.parents[1] / "experiments" / "results"
PAGE = "measurements.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=page(MEASUREMENTS)))
    return files


def page(measurements: list[Measurement]) -> str:
    text = [
        "# Measurements\n",
        "Every table here is made from a stored file while these pages are built. Times are those of a small machine "
        "that also had other work; compare them with each other, not with yours.\n",
    ]
    return "\n".join([*text, *(section(measurement) for measurement in measurements)])


DISTANCES = (
    "Sliced Wasserstein distance to exact samples over that of two exact sets; 1 is perfect. "
    "[The fast sampler](fast_sampler.md#how-far-it-is-from-exact-posteriors) says how it is measured."
)
PEERS = "Samplers of deepinv with the same exact denoiser. [Other samplers](peers.md) says how to read it."
OVERHEAD = "What a step costs beyond the call of the denoiser, for 8 chains of 3 x 64 x 64."
MEASUREMENTS = [
    Measurement(
        "Distance to exact posteriors",
        BENCHMARKS / "exactness.json",
        "python benchmarks/exactness.py",
        DISTANCES,
        exactness_tables,
        of_fast=True,
    ),
    Measurement(
        "Distance for mixtures that nothing was chosen with",
        BENCHMARKS / "exactness_unseen.json",
        "python benchmarks/exactness.py --unseen",
        "The same for three mixtures that were never looked at before.",
        unseen_tables,
        of_fast=True,
    ),
    Measurement(
        "Standard deviations by frequency",
        BENCHMARKS / "exactness_stationary.json",
        "python benchmarks/exactness.py --stationary",
        "Samples over exact, 64 x 64 pixels, a Gaussian prior with the spectrum of photographs, 100 calls.",
        stationary,
        of_fast=True,
    ),
    Measurement(
        "Calibration",
        BENCHMARKS / "exactness_calibration.json",
        "python benchmarks/exactness.py --calibration",
        "The share of truths inside 90 % intervals; in brackets whether ranks are uniform.",
        calibration,
        of_fast=True,
    ),
    Measurement(
        "Calibration for a mixture that nothing was chosen with",
        BENCHMARKS / "exactness_calibration_4.json",
        "python benchmarks/exactness.py --calibration --mixture 4",
        "The same for a mixture that was never looked at before.",
        calibration,
        of_fast=True,
    ),
    Measurement(
        "PSNR with an exact prior of faces",
        BENCHMARKS / "face_mixture.json",
        "python benchmarks/face_mixture.py --data FOLDER",
        "Grey faces of 32 x 32 from a Gaussian mixture: samples of the exact posterior and of the fast sampler.",
        face_mixture,
        of_fast=True,
    ),
    Measurement(
        "Prior or sampler?",
        BENCHMARKS / "message_passing.json",
        "python benchmarks/message_passing.py --data FOLDER",
        "8 faces with the bundled prior: the posterior mean without any samples, beside that of the fast sampler.",
        message_passing,
        of_fast=True,
    ),
    Measurement(
        "Truths of the prior itself",
        BENCHMARKS / "own_truths.json",
        "python benchmarks/own_truths.py --data FOLDER",
        "Do samples scatter as much as their mean errs, for images drawn from the prior and for faces of CelebA?",
        own_truths,
        of_fast=True,
    ),
    Measurement(
        "Denoising by samples and by one call",
        BENCHMARKS / "one_call.json",
        "python benchmarks/one_call.py --data FOLDER",
        "Where y is the image with white noise, one call of the denoiser and its derivative tell the mean and the "
        "variance that the samples must have. 1, 0, 1 and 1 are exact.",
        one_call,
        of_fast=True,
    ),
    Measurement(
        "Products in bfloat16",
        BENCHMARKS / "precision.json",
        "python benchmarks/precision.py --data FOLDER",
        "PSNR of 8 denoised faces, of their samples and of the means of these, for the same random numbers.",
        precision,
        of_fast=True,
    ),
    Measurement(
        "Other samplers", BENCHMARKS / "peers.json", "python benchmarks/peers.py", PEERS, peers_tables, of_fast=True
    ),
    Measurement(
        "Cost of the operators",
        BENCHMARKS / "operators.json",
        "python benchmarks/operators.py",
        "The decomposition is set up once; Vt and V are needed in each step.",
        operators,
    ),
    Measurement("Cost of a step", BENCHMARKS / "overhead.json", "python benchmarks/overhead.py", OVERHEAD, overhead),
    Measurement(
        "Cost of a step with a bundled prior",
        BENCHMARKS / "overhead_faces.json",
        "python benchmarks/overhead.py --prior faces",
        OVERHEAD,
        overhead,
    ),
    Measurement(
        "Tiles",
        BENCHMARKS / "tiles.json",
        "python benchmarks/tiles.py",
        "How far a call of `natural` in tiles is from the call on the whole image, for pixels in [0, 1].",
        tiles,
    ),
    Measurement(
        "Estimated noise",
        BENCHMARKS / "noise.json",
        "python benchmarks/noise.py",
        "`--sigma auto` on crops of photographs with known noise: how many estimates were called no guess, how many of "
        "those were right to 20 %, and the extremes of estimate over truth.",
        noise,
    ),
    Measurement(
        "Loading a prior",
        BENCHMARKS / "loading.json",
        "python benchmarks/loading.py",
        "Seconds for `load_prior` of a bundled prior, and how many times as long as reading its file alone.",
        facts,
    ),
    Measurement(
        "Compiling the network",
        BENCHMARKS / "compile.json",
        "python benchmarks/compile.py",
        "Seconds of one call of `faces` for 8 images with and without `torch.compile`. It is not used.",
        facts,
    ),
    Measurement(
        "Damaged files",
        BENCHMARKS / "malformed.json",
        "python benchmarks/malformed.py",
        "Image files with random bytes changed or the end cut off.",
        outcomes,
    ),
    Measurement(
        "Many visitors at once",
        BENCHMARKS / "web_load.json",
        "python benchmarks/web_load.py",
        "The web page on loopback: how many got exactly their own result, another's, or none.",
        facts,
    ),
    Measurement(
        "Killed batches",
        BENCHMARKS / "kills.json",
        "python benchmarks/kills.py",
        "`kill -9` of whole runs, and of workers of Ray; each run ended with the bits of one that was left in peace.",
        facts,
    ),
    Measurement(
        "A long run",
        BENCHMARKS / "soak.json",
        "python benchmarks/soak.py --minutes 30",
        "One restoration after the other, saved and read back: [what counts](reliability.md#long-runs).",
        soak,
    ),
    Measurement(
        "Time and memory by pixels",
        BENCHMARKS / "scaling.json",
        "python benchmarks/scaling.py",
        "The prior `natural`: one call against a run of the fast sampler around it, one chain at a time, one thread.",
        scaling,
    ),
    Measurement(
        "Which network to train",
        BENCHMARKS / "denoiser_trials.json",
        "python benchmarks/denoiser_trials.py --data FOLDER",
        "PSNR on held-out faces by noise level, after equal times of training on one CPU core; "
        "[more trials](network_trials.md).",
        trials,
    ),
    *(
        Measurement(
            f"The bundled prior `{name}` as a denoiser",
            EXPERIMENTS / f"denoising_{name}.json",
            f"python experiments/denoising.py {name} --data FOLDER",
            "PSNR on test images, beside FFDNet where it was made for that noise.",
            denoising,
        )
        for name in ("faces", "natural")
    ),
]
