"""Pieces of HTML for the page. Pictures are inside them, so that a preview leaves no files behind."""

from __future__ import annotations

from html import escape

from torch import Tensor

from snips.metrics.faithfulness import P_THRESHOLD, RHO_THRESHOLD
from snips.priors.registry import BUNDLED
from snips.report import data_uri
from snips.restoration import Restoration
from snips.web.downloads import enlarged
from snips.web.task import Progress


def status(message: str, kind: str = "info") -> str:
    """A line that screen readers announce."""
    role = "alert" if kind == "error" else "status"
    return f'<div class="snips-status snips-{kind}" role="{role}">{escape(message)}</div>'


def progress(now: Progress) -> str:
    """A line with a bar, which screen readers read when asked: several announcements a second would be a nuisance."""
    left = f", about {now.seconds_left:.0f} s left" if now.step < now.total else ""
    percent = round(100 * now.step / now.total)
    return (
        f'<div class="snips-status">Step {now.step} of {now.total}, noise level {now.sigma:.3g}{left}'
        f'<div class="snips-bar" role="progressbar" aria-label="Progress" aria-valuemin="0" aria-valuemax="100" '
        f'aria-valuenow="{percent}"><div style="width: {percent}%"></div></div></div>'
    )


def preview(now: Progress) -> str:
    estimate = _figure(now.estimate, "What the samples agree on so far")
    return f'<div class="snips-preview">{estimate}{_figure(now.state, "Noisy state of one sample")}</div>'


def picture(image: Tensor, caption: str) -> str:
    return f'<div class="snips-picture">{_figure(image, caption)}</div>'


def summary(result: Restoration) -> str:
    """What was done, in one line."""
    seconds, prior = result.settings["seconds"], result.settings["prior"]
    words = [f"{len(result.samples)} samples in {seconds:.1f} s with the prior {prior}"]
    if (scores := result.psnr()) is not None:
        words.append(f"PSNR {scores[0].mean():.2f} dB (samples), {scores[1].mean():.2f} dB (mean)")
    return "; ".join(words) + "." + _warning(prior, result.problem.operator.image_shape)


def _warning(prior: str, image_shape: tuple[int, int, int]) -> str:
    made_for = BUNDLED[prior].size if prior in BUNDLED else None
    if made_for in (None, image_shape[1:]):
        return ""
    return f" Beware: {prior} is made for {made_for[0]} x {made_for[1]} pixels; at other sizes it invents details."


def verdicts(result: Restoration) -> str:
    """The faithfulness of each sample as a table."""
    found = result.faithfulness()
    if found.faithful is None:
        return status("Without noise, or with fewer than 20 measurements, faithfulness cannot be tested.")
    rows = []
    for k, faithful in enumerate(found.faithful[:, 0].tolist()):
        mark = '<td class="snips-yes">yes</td>' if faithful else '<td class="snips-no">no</td>'
        numbers = [found.std_ratio, found.p_value, found.rho]
        cells = "".join(f"<td>{'-' if value is None else f'{value[k, 0]:.3f}'}</td>" for value in numbers)
        rows.append(f'<tr><th scope="row">{k + 1}</th>{mark}{cells}</tr>')
    heads = ("Sample", "Faithful", "Level / sigma", "p (normal)", "Correlation")
    header = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f'<table class="snips-table"><caption>{_explanation(found.faithful)}</caption>'
        f"<thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _explanation(faithful: Tensor) -> str:
    return (
        f"<strong>{int(faithful.sum())} of {faithful.numel()} samples explain the measurement</strong>: what they "
        f"leave over, y - Hx, has the level of the noise, is Gaussian (p &gt; {P_THRESHOLD:g}) and white "
        f"(correlation of neighbours below {RHO_THRESHOLD:g})."
    )


def _figure(image: Tensor, caption: str) -> str:
    source = data_uri(enlarged(image), lossless=True)
    return f'<figure><img src="{source}" alt="{escape(caption)}"><figcaption>{escape(caption)}</figcaption></figure>'
