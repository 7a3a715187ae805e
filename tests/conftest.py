"""What every test runs under: which are left out, how thorough hypothesis is, what pytest-xdist needs."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.lab.forks import WHOLE

if "PYTEST_XDIST_WORKER" in os.environ:
    # A worker talks to pytest by real threads and locks. pyinfra puts gevent's in their place at import, and
    # the worker then dies at its end (LoopExit: "would block forever"); so in a worker it does not. Nothing is
    # lost but the few tests of connections that give way to each other, which have `tests.alone.COOPERATIVE`.
    import gevent.monkey

    gevent.monkey.patch_all = lambda **_: None

# A process that was begun in the background or by nohup ignores these, and so would all that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No deadlines: a machine that runs tests is busy, and a slow example is no wrong one. A test whose examples are
# dear says a number of its own.
settings.register_profile(
    "quick", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=300)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="run the tests marked `full` too, and let hypothesis try many more examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("thorough" if config.getoption("full") else "quick")
    if config.getoption("full"):
        os.environ[WHOLE] = "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked ``full``, unless asked for, be it by name (``test_x.py::test_y``)."""
    if config.getoption("full"):
        return
    named = tuple(word for word in config.args if "::" in word)
    long = [
        item
        for item in items
        if item.get_closest_marker("full") and not item.nodeid.startswith(named)
    ]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]
