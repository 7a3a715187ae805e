"""Real hosts for tests.

``cluster``         the shared cluster of this test run, every host fresh: may be broken and changed
``module_cluster``  the same, fresh once a module: for tests that look at what one run did
``idle_cluster``    the same as it is left by whoever used it: only for reading
``new_cluster``     a factory of clusters of a test's own, gone when it ends

With REMEDY_TEST_RELEASE=bullseye all of them run that release of this machine's distribution.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from remedy.lab import machine
from remedy.lab.cluster import Lab
from remedy.lab.host import Host
from remedy.lab.options import UpOptions
from remedy.lab.paths import LabPaths

# The process id is in the name, so that what a crashed run left behind is told from what runs.
PREFIX = "test-"
HOSTS = 4
RELEASE = os.environ.get("REMEDY_TEST_RELEASE", "")


@dataclass(frozen=True)
class Cluster:
    """A lab, as tests see it.

    Args:
        lab: the lab itself.
        inventory_path: its inventory, in a folder of the test's own, so that runs do not mix.
    """

    lab: Lab
    inventory_path: Path

    @property
    def hosts(self) -> list[str]:
        """The inventory names of its hosts."""
        return [host.name for host in self.lab.hosts()]

    def host(self, name: str) -> Host:
        """One host, with everything the lab can do to it.

        Args:
            name: its inventory name.
        """
        return self.lab.host(name)

    def run(
        self, host: str, command: Sequence[str] | str, *, seconds: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host as root, without ssh.

        Args:
            host: its inventory name.
            command: an argument list, or a text for its shell.
            seconds: when to give up.
        """
        return self.lab.host(host).run(command, seconds=seconds)

    def fault(self, host: str, *names: str) -> None:
        """Break a host.

        Args:
            host: its inventory name.
            names: the faults.
        """
        self.lab.break_(host, names)

    def reset(self, *hosts: str) -> None:
        """Bring hosts back to the state of a fresh installation; all of them when none is named.

        Args:
            hosts: their inventory names.
        """
        self.lab.reset(*hosts)

    def reboot(self, host: str) -> None:
        """Reboot a host and wait until it answers.

        Args:
            host: its inventory name.
        """
        self.lab.reboot(host)

    def replace(self, host: str) -> None:
        """Put another machine, with another ssh host key, in a host's place.

        Args:
            host: its inventory name.
        """
        self.lab.replace(host)


@pytest.fixture(scope="session")
def _no_leftovers() -> None:
    """Skip where no lab can run; remove what test runs that are gone left behind."""
    reason = machine.obstacle()
    if reason is not None:
        pytest.skip(f"no lab here: {reason[0]}")
    labs = LabPaths.of().folder.parent
    for folder in labs.glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if not pid.isdigit() or not _runs_tests(int(pid)):
            Lab(LabPaths.of(folder.name)).down()


def _runs_tests(pid: int) -> bool:
    """Whether a process is a test run.

    Args:
        pid: its id, which may belong to another program by now.
    """
    return any(
        pid == one and any("pytest" in word for word in words) for one, words in machine.processes()
    )


@pytest.fixture(scope="session")
def _shared_lab(_no_leftovers: None) -> Iterator[Lab]:
    """The one lab of this test run."""
    lab = Lab(LabPaths.of(f"{PREFIX}{os.getpid()}"))
    try:
        lab.up(UpOptions(count=HOSTS, release=RELEASE))
        yield lab
    finally:
        lab.down()


# The hosts of the shared lab are made anew only when somebody may have changed them.
_used: set[str] = set()


@pytest.fixture
def cluster(_shared_lab: Lab, tmp_path: Path) -> Cluster:
    """The shared cluster, every host in the state of a fresh installation."""
    return _fresh(_shared_lab, tmp_path)


@pytest.fixture(scope="module")
def module_cluster(_shared_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """The shared cluster, fresh for the first test of a module; no test of it may use ``cluster``."""
    return _fresh(_shared_lab, tmp_path_factory.mktemp("module"))


@pytest.fixture
def idle_cluster(_shared_lab: Lab, tmp_path: Path) -> Cluster:
    """The shared cluster as it is; a test that uses it MUST NOT change a host."""
    return _as_cluster(_shared_lab, tmp_path)


@pytest.fixture
def new_cluster(_no_leftovers: None, tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Make clusters of a test's own: ``new_cluster(count=2, faults=("hosts-crlf",))``."""
    with clusters(tmp_path) as make:
        yield make


_numbers = count()


@contextmanager
def clusters(folder: Path) -> Iterator[Callable[..., Cluster]]:
    """Give a factory of clusters, which are gone at the end of the block.

    Args:
        folder: where their inventories go.
    """
    made: list[Lab] = []

    def make(**options: object) -> Cluster:
        lab = Lab(LabPaths.of(f"{PREFIX}{os.getpid()}-{next(_numbers)}"))
        made.append(lab)
        lab.up(UpOptions(**{"release": RELEASE, **options}))  # type: ignore[arg-type]
        return _as_cluster(lab, folder / str(len(made)))

    try:
        yield make
    finally:
        for lab in made:
            lab.down()


def _fresh(lab: Lab, folder: Path) -> Cluster:
    """Give a test the shared lab with every host fresh.

    Args:
        lab: the shared lab.
        folder: the test's folder.
    """
    if lab.paths.name in _used:
        lab.reset()
    _used.add(lab.paths.name)
    return _as_cluster(lab, folder)


def _as_cluster(lab: Lab, folder: Path) -> Cluster:
    """Give a test its own copy of a lab's inventory.

    Args:
        lab: which lab.
        folder: the test's folder.
    """
    folder.mkdir(exist_ok=True)
    inventory = folder / "inventory.py"
    shutil.copyfile(lab.paths.inventory, inventory)
    # The inventory lists the lab whose state file lies beside it.
    (folder / "state.json").symlink_to(lab.paths.state)
    return Cluster(lab, inventory)
