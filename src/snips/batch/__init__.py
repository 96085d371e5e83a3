"""Many measurements: restored one by one, here or on a cluster, with nothing lost when a machine dies."""

from snips.batch.folders import RunFolder, RunSettings
from snips.batch.items import Item
from snips.batch.runs import run_batch
from snips.batch.sources import read_items

__all__ = ["Item", "RunFolder", "RunSettings", "read_items", "run_batch"]
