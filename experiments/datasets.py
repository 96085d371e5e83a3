"""The test images, for the scripts in this folder."""

from snips.experiments.datasets import bsds_test, celeba_test

__all__ = ["bsds_test", "celeba_test"]
