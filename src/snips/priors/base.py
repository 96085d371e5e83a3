"""What every prior offers: a minimum-mean-squared-error denoiser, and through it the score."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Prior(nn.Module):
    """A distribution of clean images, known through its MMSE denoiser.

    Subclasses implement `denoise`. The score of the noisy image follows by Miyasawa's (Tweedie's) identity,

        grad log p_sigma(x) = (E[x_clean | x] - x) / sigma^2.
    """

    name: str = ""  # for people and for result.json; the class's where empty
    mirrored: bool = False  # whether an image is as likely as its mirror image; samplers then use both

    def denoise(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """E[x_clean | x_clean + sigma n = x] for x (B, C, H, W); sigma is a number, a () or a (B,) tensor."""
        raise NotImplementedError

    def score(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        """The gradient of the log density of images with noise of level sigma, at x (B, C, H, W)."""
        return (denoised_copy(self, x, sigma) - x) / per_image(sigma, x) ** 2

    def with_stored_weights(self) -> Prior:
        """The prior as it was stored: another where this one only computes it in lower precision."""
        return self

    def forward(self, x: Tensor, sigma: float | Tensor) -> Tensor:
        return self.denoise(x, sigma)


def check_images(x: Tensor, image_shape: tuple[int, ...]) -> None:
    """For priors of one size: without this, a wrong shape could broadcast to a wrong answer."""
    if tuple(x.shape[1:]) != tuple(image_shape):
        raise ValueError(f"this prior is of images {tuple(image_shape)}, not {tuple(x.shape[1:])}")


def checked_tensor(denoised: object) -> Tensor:
    """What a prior of somebody else's returned: some networks return a tuple, or an object that holds the image."""
    if not isinstance(denoised, Tensor):
        raise ValueError(f"the prior returned a {type(denoised).__name__}: it must return the denoised image, a tensor")
    return denoised


def denoised_copy(prior: Prior, x: Tensor, sigma: float | Tensor) -> Tensor:
    """D(x): a prior may work in place, or return the same buffer each time, without harm to x or to an earlier D."""
    return checked_tensor(prior.denoise(x.clone(), sigma)).clone()


def per_image(sigma: float | Tensor, x: Tensor) -> Tensor:
    """Sigma as a tensor that broadcasts against x (B, ...): shape (B, 1, ...) or (1, 1, ...)."""
    sigma = torch.as_tensor(sigma, dtype=x.dtype, device=x.device)
    if sigma.ndim > 1 or sigma.numel() not in (1, x.shape[0]):
        raise ValueError(f"sigma has shape {tuple(sigma.shape)}; give one, or one for each of {x.shape[0]} images")
    return sigma.reshape(-1, *[1] * (x.ndim - 1))
