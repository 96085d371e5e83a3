"""The paper's experiments: every table and figure, beside the published numbers."""

from snips.experiments.ablation import ABLATION
from snips.experiments.base import ALL_SAMPLERS, Experiment, Request
from snips.experiments.calls import CALLS_AND_COVERAGE
from snips.experiments.cost import COST
from snips.experiments.faithful import FAITHFULNESS
from snips.experiments.figures import CELEBA_FIGURES, LSUN_FIGURES, STRIP, UNCURATED
from snips.experiments.red import RED_COMPARISON
from snips.experiments.red_sweep import RED_SWEEP
from snips.experiments.runs import run
from snips.experiments.table1 import TABLE1

EXPERIMENTS: dict[str, Experiment] = {
    "table1": TABLE1,
    "calls": CALLS_AND_COVERAGE,
    "faithfulness": FAITHFULNESS,
    "red_sweep": RED_SWEEP,
    "red": RED_COMPARISON,
    "ablation": ABLATION,
    "figures": CELEBA_FIGURES,
    "strip": STRIP,
    "uncurated": UNCURATED,
    "lsun": LSUN_FIGURES,
    "cost": COST,
}

__all__ = ["ALL_SAMPLERS", "EXPERIMENTS", "Experiment", "Request", "run"]
