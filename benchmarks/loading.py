"""How long a bundled prior takes to load, beside the bare reading of its file.

python benchmarks/loading.py
"""

from __future__ import annotations

from safetensors.torch import load_file

from measure import print_table, seconds, store
from snips import load_prior
from snips.priors.registry import BUNDLED


def main() -> None:
    results = {}
    for name, prior in BUNDLED.items():
        whole, bare = seconds(lambda name=name: load_prior(name)), seconds(lambda file=prior.file: load_file(file))
        results[f"{name}, seconds"], results[f"{name}, over bare reading"] = whole, whole / bare
    print_table("load_prior", ["measured", ""], [[name, value] for name, value in results.items()])
    store("loading", results)


if __name__ == "__main__":
    main()
