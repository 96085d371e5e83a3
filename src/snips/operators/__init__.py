"""Linear operators that know their singular value decomposition."""

from snips.operators import kernels
from snips.operators.base import LinearOperator
from snips.operators.checks import OperatorReport, check_operator
from snips.operators.circular import CircularBlur
from snips.operators.dense import Dense
from snips.operators.separable import Colorization, Deblurring, Denoising, Separable, SuperResolution
from snips.operators.subsampled import CompressiveSensing, FourierSampling, Inpainting, Zero

__all__ = [
    "CircularBlur",
    "Colorization",
    "CompressiveSensing",
    "Deblurring",
    "Denoising",
    "Dense",
    "FourierSampling",
    "Inpainting",
    "LinearOperator",
    "OperatorReport",
    "Separable",
    "SuperResolution",
    "Zero",
    "check_operator",
    "kernels",
]
