"""Results as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def with_error(value: dict[str, Any], digits: int = 2) -> str:
    """mean ± standard error."""
    error = value["standard_error"]
    return f"{value['mean']:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %"


def faithfulness_cells(found: dict[str, Any] | None) -> list[str]:
    """Residual over sigma_0, share with p > 0.05, share with |rho| < 0.1."""
    if found is None:
        return ["-", "-", "-"]
    total = found["samples"]
    return [f"{found['std_ratio']:.3f}", share(found["normal"], total), share(found["uncorrelated"], total)]


FAITHFULNESS_COLUMNS = ("residual std / σ₀", "p > 0.05", "abs ρ < 0.1")


def setting(results: dict[str, Any]) -> str:
    """One line on images, prior and noise, for under a heading."""
    prior = results["prior"]
    return f"Images: {results['source']}. Prior: `{prior['name']}` (weights {prior['sha256']}).\n\n"
