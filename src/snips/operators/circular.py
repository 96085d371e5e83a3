"""Convolution with any 2-D kernel on a torus: the Fourier basis diagonalises it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from snips.operators.base import LinearOperator, checked_image_shape, numbers_of, numerical_rank_cut
from snips.operators.kernels import checked_kernel, keeps_brightness


class CircularBlur(LinearOperator):
    """y = kernel * x with wrap-around. Measurement (C, H, W).

        y_ij = sum_kl kernel_kl x_(i - k + K // 2, j - l + L // 2), indices modulo the image

    In the Fourier basis H multiplies by the kernel's spectrum h, so s = |h| and U = F^* diag(h / |h|).

    Args:
        kernel: (K, L) for all channels, or (C, K, L).
    """

    kernel: Tensor  # (1, K, L) or (C, K, L)
    phase: Tensor  # (1 or C, H, W, 2): h / |h| as real and imaginary part, 0 where s = 0

    def __init__(self, image_shape: tuple[int, ...], kernel: Tensor) -> None:
        channels, height, width = image_shape = checked_image_shape(image_shape)
        super().__init__(image_shape, image_shape)
        kernel = numbers_of(kernel, "the kernel")
        kernel = checked_kernel(kernel, ndim=3) if kernel.ndim == 3 else checked_kernel(kernel, ndim=2)[None]
        if len(kernel) not in (1, channels):
            raise ValueError(f"there are {len(kernel)} kernels for {channels} channels: give one, or one for each")
        self.pixel_values = keeps_brightness(kernel)
        folded = torch.stack([fold_kernel(k, height, width) for k in kernel])
        spectrum = torch.fft.fft2(folded)
        s = numerical_rank_cut(spectrum.abs(), (height * width, height * width))
        phase = torch.where(s > 0, spectrum / torch.where(s > 0, s, 1), 0)
        self.register_exact("singular_values", s)
        self.register_exact("phase", torch.view_as_real(phase))
        self.register_exact("kernel", crop_kernel(kernel, folded))

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = self.kernel.shape[1:]
        # conv2d correlates: the kernel is flipped, and its centre K // 2 becomes K - 1 - K // 2
        above, left = rows - 1 - rows // 2, columns - 1 - columns // 2
        padded = F.pad(x, (left, columns - 1 - left, above, rows - 1 - above), mode="circular")
        weight = self.kernel.flip(1, 2)[:, None].expand(x.shape[1], 1, -1, -1)
        return F.conv2d(padded, weight, groups=x.shape[1])

    def Vt(self, x: Tensor) -> Tensor:
        return torch.fft.fft2(x, norm="ortho")

    def V(self, x_bar: Tensor) -> Tensor:
        return torch.fft.ifft2(x_bar, norm="ortho").real

    def Ut(self, y: Tensor) -> Tensor:
        return torch.fft.fft2(y, norm="ortho") * torch.view_as_complex(self.phase).conj()

    def U(self, y_bar: Tensor) -> Tensor:
        return torch.fft.ifft2(y_bar * torch.view_as_complex(self.phase), norm="ortho").real


def fold_kernel(kernel: Tensor, height: int, width: int) -> Tensor:
    """The kernel on the (height, width) torus with its centre at (0, 0), wrapped where it is larger."""
    rows = (torch.arange(kernel.shape[0]) - kernel.shape[0] // 2) % height
    columns = (torch.arange(kernel.shape[1]) - kernel.shape[1] // 2) % width
    folded = kernel.new_zeros(height, width)
    return folded.index_put((rows[:, None], columns[None, :]), kernel, accumulate=True)


def crop_kernel(kernel: Tensor, folded: Tensor) -> Tensor:
    """Kernels no larger than the image that act the same: themselves, or the folded ones, centred."""
    height, width = folded.shape[1:]
    if kernel.shape[1] <= height and kernel.shape[2] <= width:
        return kernel
    return folded.roll((height // 2, width // 2), (1, 2))


def convolved(a: Tensor, b: Tensor) -> Tensor:
    """One kernel in place of two, (1 or C, K, L) each; the middle of the result is where both have theirs."""
    channels = max(len(a), len(b))
    (rows, columns), b = b.shape[1:], b.expand(channels, -1, -1)
    padded = F.pad(a.expand(channels, -1, -1), (columns - 1, columns - 1, rows - 1, rows - 1))
    full = F.conv2d(padded[None], b.flip(1, 2)[:, None], groups=channels)[0]
    # K // 2 + K' // 2 is the middle of K + K' - 1 entries, unless both are even: then of one more
    more = [int(n % 2 == 0 and m % 2 == 0) for n, m in zip(a.shape[1:], (rows, columns), strict=True)]
    return F.pad(full, (0, more[1], 0, more[0]))
