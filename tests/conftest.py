"""Shared by all tests."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, settings

from snips.priors import GaussianMixture

# Seeds are fixed: a test that fails once fails again.
settings.register_profile("snips", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("snips")


@pytest.fixture(autouse=True)
def _fixed_seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def mixture() -> GaussianMixture:
    """Two overlapping components over 1x4x4 images, in float64."""
    random = torch.Generator().manual_seed(7)
    means = 0.5 + 0.3 * torch.randn(2, 16, generator=random, dtype=torch.float64)
    roots = 0.3 * torch.randn(2, 16, 16, generator=random, dtype=torch.float64)
    covariances = roots @ roots.mT + 0.01 * torch.eye(16)
    return GaussianMixture(torch.tensor([0.4, 0.6]), means, covariances, (1, 4, 4)).double()
