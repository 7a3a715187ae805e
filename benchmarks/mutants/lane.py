"""pytest in a process of its own, on a copy of the tree, and what it was like.

The process is forked from one that has imported pytest and the libraries of others, but nothing of the tree:
a trial starts in a fraction of a second.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

COPIED = ("remedy", "deploys", "templates", "tests", "benchmarks", "docs", "scripts", "inventory")
FILES = ("pyproject.toml", "README.md", "LICENSE")
HANG = 77
"""Exit status of a trial in which a test took far too long."""

SPARE_SECONDS, SLOWER = 10.0, 10.0
"""A test hangs when it takes this long and so many times longer than without a mutant."""
DATA_BYTES = 6 * 2**30
"""What a trial may allocate: a mutant that never stops collecting must not take the machine with it."""


def copy_tree(root: Path, to: Path) -> Path:
    """Copy what the tests need of a tree; return where to."""
    to.mkdir(parents=True)
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, symlinks=True)
    for name in FILES:
        shutil.copy2(root / name, to / name)
    return to


@dataclass(eq=False)
class Conditions:
    """A pytest plugin: settings under which results repeat, the choice of tests, and their times.

    Args:
        usual: how long each test takes without a mutant, by its id; empty: all tests, without limits.
        order: the ids of the tests to run, in this order; None: all.
    """

    usual: dict[str, float] = field(default_factory=dict)
    order: Sequence[str] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def pytest_collection(self) -> None:
        # After conftest.py, which may have loaded a profile, and before the modules whose tests take it.
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutants",
            settings(),
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order is not None:
            place = {nodeid: at for at, nodeid in enumerate(self.order)}
            chosen = [item for item in items if item.nodeid in place]
            items[:] = sorted(chosen, key=lambda item: place[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = time.monotonic()
        if item.nodeid in self.usual:
            limit = SPARE_SECONDS + SLOWER * self.usual[item.nodeid]
            signal.signal(signal.SIGALRM, _hangs)
            signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.seconds[item.nodeid] = time.monotonic() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _hangs(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    os._exit(HANG)  # not an exception: a mutant may catch it


def preload() -> None:
    """Import what trials need and what is not of the tree."""
    import click  # noqa: F401
    import hypothesis  # noqa: F401
    import jinja2  # noqa: F401
    import pydantic  # noqa: F401
    import pyinfra  # noqa: F401
    import rich.console  # noqa: F401
    import yaml  # noqa: F401


def fork(work: Callable[[], int], tree: Path, log: Path) -> int:
    """Start ``work`` in a process of its own, in ``tree`` and with its modules; return the process's id."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree)
        here = Path(__file__).resolve().parents[2]
        sys.path[:] = [str(tree), *(x for x in sys.path if x and Path(x).resolve() != here)]
        for name in list(sys.modules):
            if name.partition(".")[0] in ("remedy", "tests", "benchmarks", "deploys"):
                del sys.modules[name]
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, io.UnsupportedOperation):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def run_pytest(arguments: Sequence[str], *plugins: Any) -> int:
    """Run pytest here; return its exit status."""
    common = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--color=no"]
    return int(pytest.main([*common, *arguments], plugins=list(plugins)))
