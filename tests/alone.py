"""Which tests cannot run side by side."""

from __future__ import annotations

import os

import pytest

# In a worker of pytest-xdist sockets do not give way to each other (see tests/conftest.py).
COOPERATIVE = pytest.mark.skipif(
    "PYTEST_XDIST_WORKER" in os.environ, reason="needs cooperative sockets: run it without -n"
)
