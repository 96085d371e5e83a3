"""How often was a batch killed, and did it ever lose or change anything?

    python benchmarks/kills.py [--kills 60] [--rounds 4]

Runs what `pytest tests/test_batch_crashes.py tests/test_batch_ray.py -m slow` runs and counts: `kill -9` of a whole run
at random moments, each time continued, and of workers of Ray in the midst of items. Ends with an error where an item is
lost, a bit differs from a run that was left in peace, or a half-written file or a state is left over.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import ray
import torch

from measure import print_table, store

from batch_cases import pictures  # isort: skip  (`measure` makes the tests' folder known)
from batch_kills import survive_kills, survive_worker_kills  # isort: skip


def killed_runs(kills: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as name:
        return survive_kills(pictures(Path(name) / "in"), Path(name), kills, seed=1)


def killed_workers(rounds: int) -> dict[str, int]:
    """Each round is a run of its own, in one cluster of two workers."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    total = 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            total += survive_worker_kills(pictures(Path(name) / "in", 6), Path(name))["worker_kills"]
    ray.shutdown()
    return {"worker_kills": total, "runs_with_killed_workers": rounds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = killed_runs(args.kills) | killed_workers(args.rounds)
    print_table("killed", ["", ""], [[name, value] for name, value in results.items()])
    store("kills", results)


if __name__ == "__main__":
    main()
