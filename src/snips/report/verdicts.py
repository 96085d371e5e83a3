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
    "p_value": lambda value, _: f"it is not Gaussian (p = {value:.2g}, above {P_THRESHOLD:g} would pass)",
    "rho_x": lambda value, limit: f"neighbours along x are correlated (rho = {value:.2f}, {_passing(limit)})",
    "rho_y": lambda value, limit: f"neighbours along y are correlated (rho = {value:.2f}, {_passing(limit)})",
}
LIMITS = {"std_ratio": "slack", "p_value": "slack", "rho_x": "rho_x_limit", "rho_y": "rho_y_limit"}
BY_CHANCE = " One true image in twenty fails this test by chance."


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
        chance = BY_CHANCE if failed_tests(found, k, b) == ["p_value"] else ""
        return f"Sample {k + 1} does not pass all tests: {'; '.join(reasons)}.{chance}"
    return f"Sample {k + 1} explains the measurement: its residual passes all tests."


def verdict_table(found: Faithfulness, b: int) -> str:
    """One row for each sample of image b; figures that do not pass are marked."""
    columns = {
        "residual_std": "residual std",
        "std_ratio": "over sigma_0",
        "p_value": "p (normal)",
        "rho_x": "rho along x",
        "rho_y": "rho along y",
    }
    known = {name: title for name, title in columns.items() if getattr(found, name) is not None}
    head = "".join(f"<th>{title}</th>" for title in ("sample", *known.values(), "verdict"))
    rows = "".join(_row(found, list(known), k, b) for k in range(len(found.residual_std)))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(found: Faithfulness, names: list[str], k: int, b: int) -> str:
    failed = failed_tests(found, k, b)
    cells = "".join(_cell(f"{_at(found, name, k, b):.4g}", "bad" if name in failed else "") for name in names)
    faithful = None if found.faithful is None else bool(found.faithful[k, b])
    verdict = {True: ("faithful", "good"), False: ("not faithful", "bad"), None: ("&ndash;", "")}[faithful]
    return f"<tr><td>{k + 1}</td>{cells}{_cell(*verdict)}</tr>"


def _at(found: Faithfulness, name: str, k: int, b: int) -> float:
    values: Tensor = getattr(found, name)
    return float(values[k, b])


def _cell(text: str, kind: str) -> str:
    return f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>"
