"""What tests of prior files share."""

from __future__ import annotations

import pytest

from snips.priors.registry import load_prior
from snips.priors.unet import UNetConfig

TINY = UNetConfig(widths=(8, 8, 16))


def message_for(given) -> str:
    """The one line that load_prior refuses it with."""
    with pytest.raises(ValueError, match=r"^.+$") as caught:
        load_prior(given)
    assert "\n" not in str(caught.value)
    return str(caught.value)
