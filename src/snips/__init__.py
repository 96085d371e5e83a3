"""snips: posterior sampling for noisy linear inverse problems."""

from snips import metrics, operators, priors, samplers, schedules
from snips.conversion import as_operator
from snips.images import load_image
from snips.inverse_problem import InverseProblem
from snips.metrics.prior_check import check_prior
from snips.operators import LinearOperator, check_operator, compose, stack
from snips.priors import Gaussian, GaussianMixture, Prior, StationaryGaussian
from snips.priors.denoiser import as_prior
from snips.priors.registry import load_prior
from snips.problems import PROBLEMS, make_operator
from snips.restoration import Restoration, restore
from snips.running.verification import verify
from snips.version import __version__ as __version__
from snips.whitening import stack_measurements, whiten

__all__ = [
    "PROBLEMS",
    "Gaussian",
    "GaussianMixture",
    "InverseProblem",
    "LinearOperator",
    "Prior",
    "Restoration",
    "StationaryGaussian",
    "as_operator",
    "as_prior",
    "check_operator",
    "check_prior",
    "compose",
    "load_image",
    "load_prior",
    "make_operator",
    "metrics",
    "operators",
    "priors",
    "restore",
    "samplers",
    "schedules",
    "stack",
    "stack_measurements",
    "verify",
    "whiten",
]
