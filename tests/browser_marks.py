"""The marks of all tests that need a real browser."""

from __future__ import annotations

import pytest

from web_pages import CHROMIUM

IN_BROWSER = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: install it with apt-get"),
    pytest.mark.xdist_group("browser"),  # one browser and one server at a time
]
