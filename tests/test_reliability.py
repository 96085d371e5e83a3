"""docs/reliability.md repeats what is stored, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
WIDEST = 1024  # pixels of the side, where memory is limited


def stored(name: str) -> dict[str, Any]:
    return json.loads((ROOT / name).read_text())["results"]


def benchmark(name: str) -> dict[str, Any]:
    return stored(f"benchmarks/results/{name}.json")


def kills() -> str:
    found = benchmark("kills")
    return (
        f"{found['kills']} kills of whole runs and {found['worker_kills']} of Ray workers were survived: no item was "
        "lost, no bit changed, no file was left over."
    )


def malformed() -> str:
    found = benchmark("malformed")["total"]
    return (
        f"Of {sum(found.values()):,} files {found['refused']:,} were refused with one line, {found['read']:,} were "
        f"still readable and gave finite pixels, {found['crashed']} crashed"
    )


def soak() -> str:
    found = benchmark("soak")
    assert found["minutes"] >= 30
    assert found["unchanged"] == found["restorations"]
    return (
        f"In {found['minutes']:.0f} minutes all {found['restorations']:,} results were read back unchanged, and memory "
        f"grew by {found['growth_mib']:.1f} MiB, to {found['memory_mib'][-1]:.0f} MiB."
    )


def web() -> str:
    found = benchmark("web_load")
    assert found["wrong"] == found["lost"] == found["folders_left"] == 0
    return f"All {found['own']} visitors got exactly the samples that their own picture and seed have, bit for bit"


def web_memory() -> str:
    found = benchmark("web_load")
    first, *_, fifth, _, _, last = found["memory_mib"]
    assert last < fifth
    return (
        f"The server's memory peaked at {found['peak_mib']:.0f} MiB. It rose by {fifth - first:.0f} MiB over the first "
        "five rounds and by nothing over the last four"
    )


def memory() -> str:
    rows = [row for row in benchmark("scaling")["memory"]["rows"] if row["side"] == WIDEST]
    assert {row["problem"] for row in rows} == {"sr4", "deblur_uniform", "inpaint", "cs4"}
    assert all(row["memory_ratio"] < benchmark("scaling")["memory_limit"] == 6 for row in rows)
    ratios = ", ".join(f"{row['memory_ratio']:.1f} for {row['problem']}" for row in rows)
    return f"At {WIDEST} x {WIDEST} x 3 a run takes {ratios} times the {rows[0]['bare_mib']:,.0f} MiB of a bare call."


def time() -> str:
    powers = benchmark("scaling")["time"]["growth_exponents"].values()
    every, last = ([power[name] for power in powers] for name in ("all", "largest_two"))
    return (
        f"The time of a step grows as the number of pixels to the power of {min(every):.2f} to {max(every):.2f} over "
        f"the whole range, and of {min(last):.2f} to {max(last):.2f} from 512 to 1024."
    )


def tiles() -> str:
    worst = {
        width: max(row["deviation"] for row in benchmark("tiles")["rows"] if row["margin"] == width)
        for width in (64, 0)
    }
    assert worst[64] < 0.01 / 255
    told = {width: f"{value:.1e}".replace("e-0", "e-") for width, value in worst.items()}
    return (
        f"up to {told[64]} (root mean square, below a hundredth of a step of 8 bits); "
        f"without a margin it would be up to {told[0]}"
    )


def compiling() -> str:
    found = benchmark("compile")
    assert found["calls_to_break_even"] is None  # no call is saved
    took = [f"{found[name]:.2f} s" for name in ("eager", "compiled")]
    return f"A call took {took[0]} without and {took[1]} with it, and compiling took {found['compiling']:.0f} s."


def noise() -> str:
    found = benchmark("noise")
    return (
        f"Of {found['estimates']} estimates, for crops of 64 and 256 pixels from four photographs with noise of 0.02, "
        f"0.05 and 0.1, {found['trusted']} were not called a guess, and {found['close']} of these were right"
    )


def audit() -> str:
    found = stored("tools/audit.json")
    wrong = ("unpinned", "of_other_versions", "not_from_wheels", "altered_files", "not_installed")
    assert not any(found[name] for name in wrong)
    return f"The last recorded run found all {found['installed']} pinned, installed as pinned and unaltered."


def advisories() -> str:
    asked = stored("tools/audit.json")["advisories"]["asked"]
    return "advisories were asked for" if asked else "**It could not ask for vulnerabilities**"


def release() -> str:
    found = stored("tools/release.json")
    assert found["equal"]
    assert len(found["sha256"]) == 2
    return f"{found['builds']} builds gave the same bytes of both files."


CLAIMS = [kills, malformed, soak, web, web_memory, memory, time, tiles, compiling, audit, advisories, release]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_the_page_says_what_is_stored(claim):
    assert claim() in words_of("reliability.md")


def test_the_page_of_photos_says_what_is_stored():
    assert noise() in words_of("photos.md")


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", (ROOT / "docs" / page).read_text())
