"""Optimisers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


class Muon(torch.optim.Optimizer):
    """Momentum whose matrix is made orthogonal (Jordan et al. 2024) for kernels; Adam for everything else.

    An orthogonal update moves all directions of a layer alike. It costs fifteen matrix products per layer and step,
    whatever the batch is: less with larger batches, and half as much in bfloat16. Updates have the size of Adam's.
    """

    def __init__(
        self,
        kernels: Iterable[Tensor],
        others: Iterable[Tensor],
        lr: float,
        momentum: float = 0.95,
        products: torch.dtype = torch.float32,
    ) -> None:
        self.products = products
        groups = [{"params": list(kernels), "kernels": True}, {"params": list(others), "kernels": False}]
        super().__init__(groups, {"lr": lr, "momentum": momentum, "betas": (0.9, 0.99), "eps": 1e-8})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    (self._kernel if group["kernels"] else self._adam)(p, group)

    def _kernel(self, p: Tensor, group: dict) -> None:
        state = self.state[p]
        if not state:
            state["momentum"] = torch.zeros_like(p)
        buffer = state["momentum"].lerp_(p.grad, 1 - group["momentum"])
        direction = buffer.lerp(p.grad, 1 - group["momentum"]).flatten(1)
        update = orthogonal(direction.to(self.products)).to(p.dtype)
        # 0.2 sqrt(longer side) gives entries the root mean square of Adam's updates.
        p.add_(update.view(p.shape), alpha=-group["lr"] * 0.2 * max(update.shape) ** 0.5)

    def _adam(self, p: Tensor, group: dict) -> None:
        state = self.state[p]
        if not state:
            state.update(step=0, mean=torch.zeros_like(p), square=torch.zeros_like(p))
        state["step"] += 1
        beta, beta_square = group["betas"]
        state["mean"].lerp_(p.grad, 1 - beta)
        state["square"].mul_(beta_square).addcmul_(p.grad, p.grad, value=1 - beta_square)
        scale = (state["square"] / (1 - beta_square ** state["step"])).sqrt_().add_(group["eps"])
        p.addcdiv_(state["mean"], scale, value=-group["lr"] / (1 - beta ** state["step"]))


def orthogonal(matrix: Tensor, iterations: int = 5) -> Tensor:
    """Nearly U V^T of matrix = U S V^T, by a quintic Newton-Schulz iteration (0.7 < S < 1.2 after it)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-12)
    for _ in range(iterations):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adam(model: nn.Module, lr: float, products: torch.dtype) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.99), fused=True)


def _muon(model: nn.Module, lr: float, products: torch.dtype) -> torch.optim.Optimizer:
    named = list(model.named_parameters())
    is_kernel = [p.ndim == 4 and p.shape[1] > 1 and not n.startswith(("stem", "head")) for n, p in named]
    kernels = [p for (_, p), k in zip(named, is_kernel, strict=True) if k]
    others = [p for (_, p), k in zip(named, is_kernel, strict=True) if not k]
    return Muon(kernels, others, lr, products=products)


Make = Callable[[nn.Module, float, torch.dtype], torch.optim.Optimizer]  # network, learning rate, precision of products
OPTIMISERS: dict[str, Make] = {"adam": _adam, "muon": _muon}


def optimiser_name(optimiser: torch.optim.Optimizer) -> str:
    """Its name in OPTIMISERS."""
    return type(optimiser).__name__.lower()
