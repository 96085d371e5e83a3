"""The blocks of code in the README and the documentation, and which test runs which."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"  # run by tests/test_tutorials.py
GUIDES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent != TUTORIALS]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *GUIDES]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# tests/test_documented.py runs all blocks of Python and all commands but these, which stand here without comments.

# They change an environment, the shell's start file or the repository: tests/test_clean_clone.py runs them in a clone,
# in this order, and looks for what they leave there.
PACKAGES = ".venv/lib/python*/site-packages"
IN_A_CLONE = {
    "make demo": "demo/report.html",
    "snips --install-completion": ".bash_completions/snips.sh",
    "pip install .": f"{PACKAGES}/snips/assets/example.png",
    "pip install .[web]": f"{PACKAGES}/gradio",
    "pip install .[batch]": f"{PACKAGES}/zarr",
    "pip install .[batch,ray]": f"{PACKAGES}/ray",
    "pip install pre-commit && pre-commit install": ".git/hooks/pre-commit",
    "pip install --constraint constraints.txt build": f"{PACKAGES}/build",
    "python tools/release.py": "dist/SHA256SUMS",
}

# They do not end by themselves: tests/test_documented_processes.py starts them, and stops them once they work.
ENDLESS = (
    "snips web --open",
    "torchrun --nproc-per-node 2 -m snips train --data photos --out shared",
)

# They take minutes to hours: tests/test_documented_benchmarks.py adds these options, of which the last ones count.
SHORTER = {
    "python benchmarks/operators.py": "--sizes 16 --dense 16",
    "python benchmarks/overhead.py": "--milliseconds 1",
    "python benchmarks/exactness.py --langevin": "--resume",
    "python benchmarks/exactness.py --stationary": "--nfe 5",
    "python benchmarks/exactness.py --unseen": "--resume",
    "python benchmarks/exactness.py --calibration": "--nfe 5 --truths 200",
    "python benchmarks/exactness.py --calibration --mixture 4": "--nfe 5 --truths 200",
    "python benchmarks/peers.py": "",
    "python benchmarks/kills.py": "--kills 2 --rounds 1",
    "python benchmarks/malformed.py": "--loaded 10 --restored 2",
    "python benchmarks/soak.py --minutes 30": "--minutes 0 --prior gaussian",
    "python benchmarks/web_load.py --rounds 8": "--rounds 1 --visitors 2",
    "python benchmarks/scaling.py": "",
    "python benchmarks/tiles.py": "--side 64 --crop 128",
    "python benchmarks/compile.py": "--repeat 1",
}

# Of these, the ones that measure only what this record of theirs does not hold yet, and show the rest.
RECORDED = {
    "python benchmarks/exactness.py --langevin": "exactness_langevin.json",
    "python benchmarks/exactness.py --unseen": "exactness_unseen.json",
    "python benchmarks/peers.py": "peers.json",
    "python benchmarks/scaling.py": "scaling.json",
}

# No test runs these, for the reason given.
NOT_RUN = {
    "git clone <the repository> && cd snips": "says not from where; tests/test_clean_clone.py clones this repository",
    "make test": "runs these tests",
    "make check": "checks the sources, where .ci/run runs it for every change",
    "make audit": "needs an environment with all that is pinned; tests/test_audit.py tests its parts",
    "snips batch manifest.csv --engine ray --address auto --out /shared/restored": (
        "needs a running cluster, and /shared on all its machines; tests/test_batch_ray.py has a Ray on this machine"
    ),
    "SNIPS_SCREENSHOTS=1 python -m pytest tests/test_web_browser.py -k just_works": (
        "replaces pictures of the documentation; without the variable, `make test-slow` runs this test"
    ),
    "python benchmarks/exactness.py": "takes long even where all is recorded; its four other modes run with options",
    "python benchmarks/face_mixture.py --data FOLDER": "needs the pictures of CelebA, which do not come along",
}

ELSEWHERE = {*IN_A_CLONE, *ENDLESS, *SHORTER, *NOT_RUN}

# Commands that only the slow tests run.
LONG = ("snips experiment table1 --quick",)


@dataclass(frozen=True)
class Step:
    """One command, or one block of Python."""

    language: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def command(self) -> str:
        """Without the comment."""
        return " ".join(self.words)

    def runs_here(self, long_ones: bool) -> bool:
        if self.language == "python":
            return True
        return self.command not in ELSEWHERE and (long_ones or self.command not in LONG)


def steps(page: str) -> list[Step]:
    """What a reader of a page runs, in order; a line that ends with a backslash goes on."""
    found = []
    for language, text in BLOCK.findall(page):
        if language == "python":
            found.append(Step("python", text))
            continue
        lines = text.replace("\\\n", " ").splitlines()
        found += [Step("sh", line.strip()) for line in lines if shlex.split(line, comments=True)]
    return found


def commands(page: str) -> list[Step]:
    return [step for step in steps(page) if step.language == "sh"]


COMMAND = r"snips\s|torchrun\s|make [a-z]|pip install |pytest |(?:\S+=\S+ )?python \S+\.py"


def inline_commands(page: str) -> list[list[str]]:
    """The words of commands that stand in a line of text, between backquotes."""
    found = re.findall(rf"`((?:{COMMAND})[^`]*)`", without_blocks(page))
    return [shlex.split(command.replace("\n", " ")) for command in found]


def indented_commands(page: str) -> list[str]:
    """Commands in blocks without a fence, which no test would run."""
    return re.findall(rf"^ {{4,}}((?:{COMMAND}|git ).*)$", without_blocks(page), re.MULTILINE)


def without_blocks(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
