"""The verdict on each sample in words and as a table: which tests it fails, and by how much."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from snips.metrics.faithfulness import P_THRESHOLD, Faithfulness

# The figure of a test and how far it may be from 1, or from 0 -> what it means that the test failed.
FAILURES: dict[str, Callable[[float, float], str]] = {
    "std_ratio": lambda value, slack: (
        f"the residual is {value:.3g} times as strong as the noise ({1 - slack:.2g} to {1 + slack:.2g} would pass)"
    ),
    "p_value": lambda value, _: f"the residual is not Gaussian (p = {value:.2g}, above {P_THRESHOLD:g} would pass)",
    "rho_x": lambda value, limit: f"neighbours along x are correlated (rho = {value:.2f}, {_passing(limit)})",
    "rho_y": lambda value, limit: f"neighbours along y are correlated (rho = {value:.2f}, {_passing(limit)})",
}
LIMITS = {"std_ratio": "slack", "p_value": "slack", "rho_x": "rho_x_limit", "rho_y": "rho_y_limit"}
CAUSES = {"std_ratio": "wrong strength", "p_value": "not Gaussian", "rho_x": "correlated", "rho_y": "correlated"}
CHANCE = 0.001  # of p: a smaller one is not taken for bad luck
WEAK = " The noise is probably weaker than sigma_0 says."
STRONG = " The noise is stronger than sigma_0 says, or H is not what was measured with."
BY_CHANCE = " By chance, one measurement in twenty fails this test, with all of its samples."
NOT_BY_CHANCE = " Noise that was cut off at black or white does this, and so do outliers."


def _passing(limit: float) -> str:
    return f"between -{limit:.2g} and {limit:.2g} would pass"


def failed_tests(found: Faithfulness, k: int, b: int) -> list[str]:
    """The figures of sample k of image b that do not pass."""
    return [name for name, passed in found.tests.items() if not bool(passed[k, b])]


def failures(found: Faithfulness, k: int, b: int) -> list[str]:
    """Why sample k of image b is not faithful, one phrase for each test that it fails."""
    return [
        FAILURES[name](*(_at(found, figure, k, b) for figure in (name, LIMITS[name])))
        for name in failed_tests(found, k, b)
    ]


def verdict_words(found: Faithfulness, k: int, b: int) -> str:
    """One sentence on sample k of image b."""
    if found.faithful is None:
        level = float(found.residual_std[k, b])
        return f"Sample {k + 1}: residual of {level:.3g}; too little noise or data for a verdict."
    if reasons := failures(found, k, b):
        return f"Sample {k + 1} does not pass all tests: {'; '.join(reasons)}.{_likely_cause(found, k, b)}"
    return f"Sample {k + 1} explains the measurement: its residual passes all tests."


def _likely_cause(found: Faithfulness, k: int, b: int) -> str:
    """What to think of first; empty where the failed tests say it themselves."""
    failed = failed_tests(found, k, b)
    if "std_ratio" in failed:
        return WEAK if _at(found, "std_ratio", k, b) < 1 else STRONG
    if failed == ["p_value"]:
        return BY_CHANCE if _at(found, "p_value", k, b) > CHANCE else NOT_BY_CHANCE
    return ""


def failure_counts(found: Faithfulness) -> str:
    """How many samples fail, by cause, as `3 not Gaussian, 1 correlated`; empty where all pass."""
    failing: dict[str, Tensor] = {}
    for name, passed in found.tests.items():
        cause = CAUSES[name]
        failing[cause] = failing[cause] | ~passed if cause in failing else ~passed
    return ", ".join(f"{int(fails.sum())} {cause}" for cause, fails in failing.items() if bool(fails.any()))


COLUMNS = {  # of the table: the title, and how a figure is written
    "residual_std": ("residual std", ".4g"),
    "std_ratio": ("over sigma_0", ".3f"),
    "p_value": ("p (normal)", ".2g"),
    "rho_x": ("rho along x", ".3f"),
    "rho_y": ("rho along y", ".3f"),
}


def verdict_table(found: Faithfulness, b: int) -> str:
    """One row for each sample of image b; figures that do not pass are marked."""
    known = {name: title for name, (title, _) in COLUMNS.items() if getattr(found, name) is not None}
    head = "".join(f"<th>{title}</th>" for title in ("sample", *known.values(), "verdict"))
    rows = "".join(_row(found, list(known), k, b) for k in range(len(found.residual_std)))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(found: Faithfulness, names: list[str], k: int, b: int) -> str:
    failed = failed_tests(found, k, b)
    figures = {name: format(_at(found, name, k, b), COLUMNS[name][1]) for name in names}
    cells = "".join(_cell(figure, "bad" if name in failed else "") for name, figure in figures.items())
    faithful = None if found.faithful is None else bool(found.faithful[k, b])
    verdict = {True: ("faithful", "good"), False: ("not faithful", "bad"), None: ("&ndash;", "")}[faithful]
    return f"<tr><td>{k + 1}</td>{cells}{_cell(*verdict)}</tr>"


def _at(found: Faithfulness, name: str, k: int, b: int) -> float:
    values: Tensor = getattr(found, name)
    return float(values[k, b])


def _cell(text: str, kind: str) -> str:
    return f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>"
