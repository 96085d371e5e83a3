"""Priors: what images look like, known through a denoiser."""

from snips.priors.analytic import Gaussian, GaussianMixture
from snips.priors.base import Prior
from snips.priors.registry import load_prior
from snips.priors.stationary import StationaryGaussian

__all__ = ["Gaussian", "GaussianMixture", "Prior", "StationaryGaussian", "load_prior"]
