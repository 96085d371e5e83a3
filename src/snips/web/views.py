"""Pieces of HTML for the page. Pictures are inside them, so that a preview leaves no files behind."""

from __future__ import annotations

from html import escape

from torch import Tensor

from snips.metrics.faithfulness import P_THRESHOLD, RHO_THRESHOLD, Faithfulness
from snips.posing.pictures import PhotoProblem
from snips.priors import Prior
from snips.priors.choice import misfit
from snips.problems import PROBLEMS
from snips.report import data_uri
from snips.report.verdicts import failed_tests, verdict_words
from snips.restoration import Restoration
from snips.web.downloads import enlarged
from snips.web.task import Progress


def status(message: str, kind: str = "info") -> str:
    """A line that screen readers announce."""
    role = "alert" if kind == "error" else "status"
    return f'<div class="snips-status snips-{kind}" role="{role}">{escape(message)}</div>'


def notes(posed: PhotoProblem, prior: Prior) -> str:
    """What was done to the values, where the noise comes from, and what to beware of; empty where all is plain."""
    lines = [(text, False) for text in posed.notes]
    if posed.noise is not None:
        lines.append((str(posed.noise), bool(posed.noise.doubt)))
    if warning := misfit(prior, posed.problem.operator.image_shape):
        lines.append((warning, True))
    items = "".join(_note(text, doubtful) for text, doubtful in lines)
    return f'<ul class="snips-notes">{items}</ul>' if items else ""


def _note(text: str, doubtful: bool) -> str:
    text = escape(text[:1].upper() + text[1:] if not text.startswith("sigma_0") else text)
    return f'<li class="snips-doubt"><strong>Beware:</strong> {text}.</li>' if doubtful else f"<li>{text}.</li>"


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
    """What was done, in one line: the problem and the noise, too, as the form may have changed since."""
    seconds, prior, stopped = (result.settings.get(name) for name in ("seconds", "prior", "interrupted"))
    words = [f"{len(result.samples)} samples in {seconds:.1f} s with the prior {prior}, for {_posed(result)}"]
    if stopped:
        words.insert(0, f"Stopped: {stopped} samples were finished and are kept")
    if (scores := result.psnr()) is not None:
        words.append(f"PSNR {scores[0].mean():.2f} dB (samples), {scores[1].mean():.2f} dB (mean)")
    return "; ".join(words) + "."


def _posed(result: Restoration) -> str:
    recipe, sigma_0 = result.problem.operator.recipe, result.problem.sigma_0
    name = type(result.problem.operator).__name__ if recipe is None else recipe.name
    about = f" ({PROBLEMS[name].summary})" if name in PROBLEMS else ""
    return f"{name}{about} with noise {sigma_0:.3g}"


def verdicts(result: Restoration) -> str:
    """The faithfulness of each sample as a table, and in words which tests were not passed."""
    found = result.faithfulness()
    if found.faithful is None:
        return status("Without noise, or with fewer than 20 measurements, faithfulness cannot be tested.")
    header = "".join(f'<th scope="col">{name}</th>' for name in ("Sample", "Faithful", *FIGURES.values()))
    rows = "".join(_verdict_row(found, k) for k in range(len(found.faithful)))
    reasons = "".join(f"<li>{escape(words)}</li>" for words in _reasons(found))
    return (
        f'<p class="snips-explained">{_explanation(found, found.faithful)}</p>'
        f'<div class="snips-wide"><table class="snips-table" aria-label="Faithfulness of the samples">'
        f"<thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div>"
        + (f'<ul class="snips-notes">{reasons}</ul>' if reasons else "")
    )


def _reasons(found: Faithfulness) -> list[str]:
    """Which tests samples fail, in words; one sentence for all that fail the same."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for k in range(len(found.residual_std)):
        if failed := failed_tests(found, k, 0):
            alike.setdefault(tuple(failed), []).append(k)
    return [verdict_words(found, first, 0) + _also(others) for first, *others in alike.values()]


def _also(samples: list[int]) -> str:
    numbers = [str(k + 1) for k in samples]
    if not numbers:
        return ""
    listed = numbers[0] if len(numbers) == 1 else f"{', '.join(numbers[:-1])} and {numbers[-1]}"
    return f" It is the same with sample{'s' * (len(numbers) > 1)} {listed}."


FIGURES = {"std_ratio": "Level / sigma", "p_value": "p (normal)", "rho_x": "rho x", "rho_y": "rho y"}


def _verdict_row(found: Faithfulness, k: int) -> str:
    failed = failed_tests(found, k, 0)
    mark = '<td class="snips-no">no</td>' if failed else '<td class="snips-yes">yes</td>'
    cells = []
    for name in FIGURES:
        values = getattr(found, name)
        text = "-" if values is None else f"{values[k, 0]:.3f}"
        cells.append(f'<td class="snips-no">{text}</td>' if name in failed else f"<td>{text}</td>")
    return f'<tr><th scope="row">{k + 1}</th>{mark}{"".join(cells)}</tr>'


def _explanation(found: Faithfulness, faithful: Tensor) -> str:
    limits = [float(limit.max()) for limit in (found.rho_x_limit, found.rho_y_limit) if limit is not None]
    return (
        f"<strong>{int(faithful.sum())} of {faithful.numel()} samples explain the measurement.</strong> A sample does "
        f"if what it leaves over, y - Hx, has the level of the noise, is Gaussian (p &gt; {P_THRESHOLD:g}) and white "
        f"(correlation of neighbours below {max(limits, default=RHO_THRESHOLD):.2g})."
    )


def _figure(image: Tensor, caption: str) -> str:
    source = data_uri(enlarged(image), lossless=True)
    return f'<figure><img src="{source}" alt="{escape(caption)}"><figcaption>{escape(caption)}</figcaption></figure>'
