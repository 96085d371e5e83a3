"""Quality against the truth, and faithfulness to the measurement."""

from snips.metrics.faithfulness import Faithfulness, faithfulness
from snips.metrics.perceptual import lpips
from snips.metrics.quality import psnr, ssim

__all__ = ["Faithfulness", "faithfulness", "lpips", "psnr", "ssim"]
