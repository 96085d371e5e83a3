"""diffusers: pixel-space diffusion networks as denoisers of images with added noise.

A variance-preserving network sees x_vp = sqrt(a_t) x + sqrt(1 - a_t) noise, images in [-1, 1]. Divided by sqrt(a_t) it
is an image with added noise of level sigma_t = sqrt((1 - a_t) / a_t), so at any sigma

    x_vp = (x + sigma noise) / sqrt(1 + sigma^2),

and the timestep is where sigma_t = sigma, between two of the network's own by interpolation of log sigma.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from snips.names import unknown_name
from snips.priors.denoiser import ForeignDenoiser

# The denoised image from x_vp, what the network predicts, sqrt(a) and sqrt(1 - a).
PREDICTIONS: dict[str, Callable[[Tensor, Tensor, float, float], Tensor]] = {
    "epsilon": lambda x, out, signal, noise: (x - noise * out) / signal,
    "v_prediction": lambda x, out, signal, noise: signal * x - noise * out,
    "sample": lambda x, out, signal, noise: out,
}


class DiffusersPrior(ForeignDenoiser):
    """A UNet2DModel with its scheduler (DDPM, DDIM and others with `alphas_cumprod`)."""

    def __init__(self, network: Any, scheduler: Any) -> None:
        alphas = getattr(scheduler, "alphas_cumprod", None)
        if alphas is None:
            given = "none" if scheduler is None else f"a {type(scheduler).__name__}"
            raise ValueError(
                f"a diffusion network needs its scheduler= with alphas_cumprod, such as DDPM's, not {given}"
            )
        a = torch.as_tensor(alphas).double().cpu().clamp(min=1e-12, max=1 - 1e-12)
        levels = ((1 - a) / a).sqrt()
        if not (levels.diff() > 0).all():
            raise ValueError("the noise levels of the scheduler must rise with the timestep")
        self.prediction = str(scheduler.config.prediction_type)
        if self.prediction not in PREDICTIONS:
            raise ValueError(unknown_name("prediction type", self.prediction, list(PREDICTIONS)))
        log_levels, lowest, highest = levels.log().numpy(), float(levels[0]), float(levels[-1])
        super().__init__(network, value_range=(-1.0, 1.0), sigma_range=(lowest / 2, highest / 2))
        self.log_levels = log_levels

    def timestep(self, sigma: float) -> float:
        """Where the network's own noise level is sigma, for pixels in [-1, 1]; a fraction between two of its steps."""
        return float(np.interp(np.log(sigma), self.log_levels, np.arange(len(self.log_levels))))

    def _denoise_inside(self, x: Tensor, sigma: float) -> Tensor:
        signal, noise = (1 + sigma**2) ** -0.5, sigma * (1 + sigma**2) ** -0.5
        x_vp = signal * x
        timesteps = torch.full((len(x),), self.timestep(sigma), device=x.device)  # one for each image: all take that
        out = self.network(x_vp, timesteps)
        out = out if isinstance(out, Tensor) else out.sample
        out = out[:, : x.shape[1]]  # further channels are learned variances
        return PREDICTIONS[self.prediction](x_vp, out, signal, noise)
