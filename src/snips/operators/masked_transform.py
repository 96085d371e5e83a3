"""A mask after an orthonormal transform, with y left in its full size: zeros where nothing was measured."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from snips.operators.base import LinearOperator, checked_image_shape
from snips.operators.transforms import hadamard


class MaskedTransform(LinearOperator):
    """y = weights * T x in the shape of the image: deepinv's inpainting, demosaicing, single-pixel camera and MRI.

    Args:
        weights: (C, H, W) or what broadcasts to it, real; 0 where nothing is measured. s = |weights|.
        transform: "identity", "hadamard" (each channel), or "fourier": orthonormal, of complex images whose real and
            imaginary parts are pairs of channels, with the zero frequency in the middle.

    As U only changes signs, y_bar lies where y does. `recorded` marks the entries of y that were measured.
    """

    weights: Tensor
    signs: Tensor

    def __init__(self, image_shape: tuple[int, ...], weights: Tensor, transform: str = "identity") -> None:
        image_shape = checked_image_shape(image_shape)
        super().__init__(image_shape, image_shape)
        if transform not in TRANSFORMS:
            raise ValueError(f"unknown transform {transform!r}: choose one of {', '.join(TRANSFORMS)}")
        if transform == "fourier" and image_shape[0] % 2:
            raise ValueError(f"a complex image needs pairs of channels, but there are {image_shape[0]}")
        self.transform = transform
        weights = checked_weights(weights, image_shape)
        self.register_exact("weights", weights)
        self.register_exact("signs", weights.sign())
        self.register_exact("singular_values", weights.abs())
        self.recorded = weights != 0
        self.pixel_values = transform == "identity" and bool(((weights == 0) | (weights == 1)).all())

    def forward(self, x: Tensor) -> Tensor:
        return self.weights * TRANSFORMS[self.transform][0](x)

    def Vt(self, x: Tensor) -> Tensor:
        return TRANSFORMS[self.transform][0](x)

    def V(self, x_bar: Tensor) -> Tensor:
        return TRANSFORMS[self.transform][1](x_bar)

    def Ut(self, y: Tensor) -> Tensor:
        return self.signs * y

    def U(self, y_bar: Tensor) -> Tensor:
        return self.signs * y_bar


def checked_weights(weights: Tensor, shape: tuple[int, ...]) -> Tensor:
    """In float64 and in the whole shape, or a clear error."""
    weights = torch.as_tensor(weights)
    if weights.is_complex() or not torch.isfinite(weights).all():
        raise ValueError("the weights of a mask must be real and finite")
    try:
        return weights.to(torch.float64).expand(shape).clone()
    except RuntimeError:
        raise ValueError(f"a mask of shape {tuple(weights.shape)} does not fit {shape}") from None


def _hadamard(x: Tensor) -> Tensor:
    return hadamard(x.flatten(2)).reshape(x.shape)


def _fourier(x: Tensor, transform: Callable[..., Tensor] = torch.fft.fft2) -> Tensor:
    """Of pairs of channels, the centre of the image and the zero frequency in the middle."""
    parts = torch.view_as_complex(x.unflatten(1, (-1, 2)).movedim(2, -1).contiguous())
    moved = transform(torch.fft.ifftshift(parts, (-2, -1)), norm="ortho")
    return torch.view_as_real(torch.fft.fftshift(moved, (-2, -1))).movedim(-1, 2).flatten(1, 2)


def _unfourier(x: Tensor) -> Tensor:
    return _fourier(x, torch.fft.ifft2)


TRANSFORMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "identity": (lambda x: x, lambda x: x),
    "hadamard": (_hadamard, _hadamard),
    "fourier": (_fourier, _unfourier),
}
