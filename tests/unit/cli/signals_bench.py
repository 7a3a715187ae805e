"""What tests of signals have in common."""

from __future__ import annotations

import signal
import sysconfig
from pathlib import Path

import pytest

COMMAND = Path(sysconfig.get_path("scripts")) / "remedy"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
# They go one way: one stands for them wherever commands are started for it.
SIGNALS = pytest.mark.parametrize(
    "number",
    [
        pytest.param(
            number, id=number.name, marks=() if number is signal.SIGINT else pytest.mark.full
        )
        for number in CODES
    ],
)
LONG = 30
