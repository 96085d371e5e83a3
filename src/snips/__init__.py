"""snips: posterior sampling for noisy linear inverse problems."""

__version__ = "0.1.0"

from snips import metrics, operators, priors, samplers, schedules
from snips.images import load_image
from snips.operators import LinearOperator, check_operator
from snips.priors import Gaussian, GaussianMixture, Prior, StationaryGaussian
from snips.priors.registry import load_prior
from snips.problems import PROBLEMS, InverseProblem, make_operator
from snips.restoration import Restoration, restore
from snips.verification import verify

__all__ = [
    "PROBLEMS",
    "Gaussian",
    "GaussianMixture",
    "InverseProblem",
    "LinearOperator",
    "Prior",
    "Restoration",
    "StationaryGaussian",
    "check_operator",
    "load_image",
    "load_prior",
    "make_operator",
    "metrics",
    "operators",
    "priors",
    "restore",
    "samplers",
    "schedules",
    "verify",
]
