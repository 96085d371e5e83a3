"""Some coefficients of an orthonormal transform: inpainting, compressive sensing, Fourier sampling."""

from __future__ import annotations

import torch
from torch import Tensor

from snips.memory import check_memory
from snips.operators.base import LinearOperator, checked_image_shape, reciprocal
from snips.operators.masks import checked_mask
from snips.operators.transforms import dct, hadamard, idct
from snips.streams import checked_seed


class Inpainting(LinearOperator):
    """Some pixels are seen, the others are not. V = I, and s is the mask.

    Args:
        mask: True = seen; (H, W) or (1, H, W) for all channels, or (C, H, W).

    The measurement lists the seen pixels in row-major order: (C, M), or (M,) where the channels' masks differ.
    """

    seen: Tensor  # positions of the seen pixels in each channel, or in the whole image
    pixel_values = True

    def __init__(self, image_shape: tuple[int, ...], mask: Tensor) -> None:
        channels, height, width = image_shape = checked_image_shape(image_shape)
        mask = checked_mask(mask, image_shape)
        shared = bool((mask == mask[:1]).all())
        mask = mask[:1] if shared else mask
        seen = mask.flatten().nonzero()[:, 0]
        super().__init__(image_shape, (channels, len(seen)) if shared else (len(seen),))
        self.spread_shape = (channels, height * width) if shared else (channels * height * width,)
        self.register_buffer("seen", seen, persistent=False)
        self.register_exact("singular_values", mask.to(torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(-1, *self.spread_shape).index_select(-1, self.seen)

    def Vt(self, x: Tensor) -> Tensor:
        return x

    def V(self, x_bar: Tensor) -> Tensor:
        return x_bar

    def Ut(self, y: Tensor) -> Tensor:
        spread = y.new_zeros(len(y), *self.spread_shape)
        return spread.index_copy(-1, self.seen, y).reshape(-1, *self.image_shape)

    def U(self, y_bar: Tensor) -> Tensor:
        return self.forward(y_bar)


class Zero(LinearOperator):
    """H = 0: nothing is measured, and posterior samples are samples of the prior. Measurement (0,)."""

    def __init__(self, image_shape: tuple[int, ...]) -> None:
        super().__init__(image_shape, (0,))
        self.register_exact("singular_values", torch.zeros(1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), 0)

    def Vt(self, x: Tensor) -> Tensor:
        return x

    def V(self, x_bar: Tensor) -> Tensor:
        return x_bar

    def Ut(self, y: Tensor) -> Tensor:
        return y.new_zeros(len(y), *self.image_shape)

    def U(self, y_bar: Tensor) -> Tensor:
        return self.forward(y_bar)


class CompressiveSensing(LinearOperator):
    """Random projections with orthonormal rows, the same for each channel: y = R T D x. Measurement (C, M).

    D flips the sign of random pixels, T is an orthonormal transform of the flattened channel, and R keeps M random
    rows. All singular values are 1 or 0.

    Args:
        measurements: M, the number of projections of each channel.
        transform: "hadamard" (needs a power of two), "dct" (any size), "dense" (a random orthogonal matrix, as in
            the paper; small images only), or "auto": hadamard where it fits, else dct.
        seed: of the signs, the rows and the dense matrix.
    """

    signs: Tensor  # (H W,)
    rows: Tensor  # (M,) positions of the kept coefficients, ascending

    def __init__(self, image_shape: tuple[int, ...], measurements: int, transform: str = "auto", seed: int = 0) -> None:
        channels, height, width = image_shape = checked_image_shape(image_shape)
        pixels = height * width
        if not 1 <= measurements <= pixels:
            raise ValueError(f"{measurements} measurements of {pixels} pixels: choose between 1 and {pixels}")
        super().__init__(image_shape, (channels, int(measurements)))
        self.transform = choose_transform(transform, pixels)
        random = torch.Generator().manual_seed(checked_seed(seed))
        if self.transform == "dense":
            self.register_exact("basis", random_orthogonal(pixels, random))
        signs = torch.randint(2, (pixels,), generator=random, dtype=torch.float64) * 2 - 1
        rows = torch.randperm(pixels, generator=random)[:measurements].sort().values
        self.register_exact("signs", signs)
        self.register_buffer("rows", rows, persistent=False)
        kept = torch.zeros(pixels, dtype=torch.float64).index_fill(0, rows, 1)
        self.register_exact("singular_values", kept.reshape(1, height, width))

    def forward(self, x: Tensor) -> Tensor:
        return self._analyse(x.flatten(2) * self.signs)[..., self.rows]

    def Vt(self, x: Tensor) -> Tensor:
        return self._analyse(x.flatten(2) * self.signs).reshape(-1, *self.image_shape)

    def V(self, x_bar: Tensor) -> Tensor:
        return (self._synthesise(x_bar.flatten(2)) * self.signs).reshape(-1, *self.image_shape)

    def Ut(self, y: Tensor) -> Tensor:
        spread = y.new_zeros(*y.shape[:2], len(self.signs))
        return spread.index_copy(-1, self.rows, y).reshape(-1, *self.image_shape)

    def U(self, y_bar: Tensor) -> Tensor:
        return y_bar.flatten(2).index_select(-1, self.rows)

    def _analyse(self, x: Tensor) -> Tensor:
        if self.transform == "dense":
            return x @ self.get_buffer("basis").T
        return hadamard(x) if self.transform == "hadamard" else dct(x)

    def _synthesise(self, x_bar: Tensor) -> Tensor:
        if self.transform == "dense":
            return x_bar @ self.get_buffer("basis")
        return hadamard(x_bar) if self.transform == "hadamard" else idct(x_bar)


class FourierSampling(LinearOperator):
    """Part of the orthonormal 2-D Fourier transform of an image: single-coil MRI.

    Args:
        mask: (H, W), True = measured, zero frequency at [0, 0] as in `torch.fft` (see `numpy.fft.ifftshift`).
        complex_image: the channels are pairs of real and imaginary parts; by default exactly when C = 2.

    Measurement (C, M, 2), or (C / 2, M, 2) for complex images: the real and the imaginary part of the M measured
    frequencies in row-major order. For a real image a frequency k and its mirror -k tell the same, so with mask m

        s_k = sqrt((m_k + m_-k) / 2)      and      U^T y = (m_k y_k + m_-k conj(y_-k)) / (2 s_k).
    """

    measured: Tensor  # (M,) positions of the measured frequencies

    def __init__(self, image_shape: tuple[int, ...], mask: Tensor, complex_image: bool | None = None) -> None:
        channels, height, width = image_shape = checked_image_shape(image_shape)
        self_complex = channels == 2 if complex_image is None else complex_image
        if self_complex and channels % 2:
            raise ValueError(f"a complex image needs pairs of channels, but there are {channels}")
        mask = checked_mask(mask, (1, height, width))
        measured = mask.flatten().nonzero()[:, 0]
        super().__init__(image_shape, (channels // 2 if self_complex else channels, len(measured), 2))
        self.complex_image = self_complex
        weight = mask.to(torch.float64)
        self.register_exact("singular_values", weight if self_complex else ((weight + mirrored(weight)) / 2).sqrt())
        self.register_buffer("measured", measured, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        frequencies = torch.fft.fft2(self._as_complex(x), norm="ortho")
        return torch.view_as_real(frequencies.flatten(2).index_select(-1, self.measured))

    def Vt(self, x: Tensor) -> Tensor:
        return torch.fft.fft2(self._as_complex(x), norm="ortho")

    def V(self, x_bar: Tensor) -> Tensor:
        x = torch.fft.ifft2(x_bar, norm="ortho")
        if not self.complex_image:
            return x.real
        return torch.view_as_real(x).movedim(-1, 2).flatten(1, 2)  # (B, C/2, H, W, 2) -> (B, C, H, W)

    def Ut(self, y: Tensor) -> Tensor:
        _, height, width = self.image_shape
        spread = torch.zeros(*y.shape[:2], height * width, dtype=y.dtype.to_complex(), device=y.device)
        spread = spread.index_copy(-1, self.measured, torch.view_as_complex(y.contiguous()))
        spread = spread.reshape(*y.shape[:2], height, width)
        if self.complex_image:
            return spread
        return (spread + mirrored(spread).conj()) / 2 * reciprocal(self.singular_values)

    def U(self, y_bar: Tensor) -> Tensor:
        scaled = y_bar * reciprocal(self.singular_values)
        return torch.view_as_real(scaled.flatten(2).index_select(-1, self.measured))

    def _as_complex(self, x: Tensor) -> Tensor:
        if not self.complex_image:
            return x
        return torch.view_as_complex(x.unflatten(1, (-1, 2)).movedim(2, -1).contiguous())


def mirrored(spectrum: Tensor) -> Tensor:
    """The coefficient at -k in place of the one at k, along the last two axes."""
    return spectrum.flip(-2, -1).roll((1, 1), (-2, -1))


def choose_transform(transform: str, pixels: int) -> str:
    power_of_two = pixels & (pixels - 1) == 0
    if transform == "auto":
        return "hadamard" if power_of_two else "dct"
    if transform not in ("hadamard", "dct", "dense"):
        raise ValueError(f"unknown transform {transform!r}: choose 'auto', 'hadamard', 'dct' or 'dense'")
    if transform == "hadamard" and not power_of_two:
        raise ValueError(f"a Hadamard transform needs a power of two, but there are {pixels} pixels: use 'dct'")
    return transform


def random_orthogonal(size: int, random: torch.Generator) -> Tensor:
    """A (size, size) orthogonal matrix, uniformly distributed (QR of Gaussian entries, signs of R fixed)."""
    check_memory(
        8 * 5 * size * size,
        f"a dense random {size} x {size} orthogonal matrix",
        "use transform='hadamard' or 'dct', which need no matrix",
    )
    Q, R = torch.linalg.qr(torch.randn(size, size, generator=random, dtype=torch.float64))
    return Q * R.diagonal().sign()
