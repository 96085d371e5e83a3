"""Write the stored tables into the pages that discuss them: `python docs/figures/tables.py`, after new measurements.

A table of a page is replaced where a table of the page of measurements has the same head; of several with one head, the
first stands for the first.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

DOCS = Path(__file__).parents[1]
sys.path.append(str(DOCS / "hooks"))
from measurements import MEASUREMENTS, section  # noqa: E402

TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
PAGES = {  # page -> titles of measurements
    "fast_sampler.md": (
        "Distance to exact posteriors",
        "Distance for mixtures that nothing was chosen with",
        "Standard deviations by frequency",
        "Calibration",
        "Calibration for a mixture that nothing was chosen with",
        "PSNR with an exact prior of faces",
    ),
    "peers.md": ("Other samplers",),
}


def with_tables(page: str, measured: str) -> str:
    """The page with the tables of `measured` in place of its own, matched by their heads."""
    waiting: dict[str, list[str]] = defaultdict(list)
    for found in TABLE.findall(measured):
        waiting[head(found)].append(found)

    def replaced(match: re.Match[str]) -> str:
        mine = waiting[head(match[0])]
        return mine.pop(0) if mine else match[0]

    return TABLE.sub(replaced, page)


def head(table: str) -> str:
    return table.splitlines()[0]


def main() -> None:
    for name, titles in PAGES.items():
        page = DOCS / name
        chosen = [each for each in MEASUREMENTS if each.title in titles]
        measured = "\n".join(section(each) for each in chosen)
        page.write_text(with_tables(page.read_text(encoding="utf-8"), measured), encoding="utf-8")


if __name__ == "__main__":
    main()
