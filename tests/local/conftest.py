"""Machines of this machine's own, for tests that need no lab."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.local.rooms import Machines

NEEDED = ("ip", "nft", "nsenter", "ssh-keygen", "/usr/sbin/sshd")


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Callable[..., Machines]]:
    """What makes as many machines as are asked for; they are removed when the test is over."""
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"machines in namespaces need root and {', '.join(missing) or 'nothing else'}")
    made: list[Machines] = []

    def build(count: int, *, own_pids: bool = True) -> Machines:
        made.append(Machines(count, tmp_path, own_pids=own_pids))
        made[-1].make()
        return made[-1]

    yield build
    for cluster in made:
        cluster.remove()
