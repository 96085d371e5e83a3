"""Linear operators that know their singular value decomposition."""

from snips.operators import blurs, kernels
from snips.operators.base import LinearOperator
from snips.operators.checks import OperatorReport, check_operator
from snips.operators.circular import CircularBlur
from snips.operators.combine import compose, scale_rows, stack
from snips.operators.dense import Dense
from snips.operators.foreign import MatrixFree, ThinSVD
from snips.operators.masked_transform import MaskedTransform
from snips.operators.reshaped import Reshaped
from snips.operators.separable import Colorization, Deblurring, Denoising, Separable, SuperResolution
from snips.operators.stacked import Stacked
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
    "MaskedTransform",
    "MatrixFree",
    "OperatorReport",
    "Reshaped",
    "Separable",
    "Stacked",
    "SuperResolution",
    "ThinSVD",
    "Zero",
    "blurs",
    "check_operator",
    "compose",
    "kernels",
    "scale_rows",
    "stack",
]
