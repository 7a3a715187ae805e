"""What a lab remembers about itself: the state file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path
from typing import Literal

from remedy.errors import LabError, UsageError
from remedy.files import write_whole
from remedy.lab.events import Listener, emit
from remedy.lab.life import Life
from remedy.lab.paths import LabPaths
from remedy.text import folded
from remedy.values import Record


class HostRecord(Record):
    """One host of a lab."""

    name: str
    number: int
    management_address: str
    cluster_address: str
    cluster_interface: str
    faults: list[str]


class LabRecord(Record):
    """One lab: what is in its state file, which ``inventory/lab.py`` reads by itself."""

    schema_: Literal["remedy.lab/1"] = "remedy.lab/1"
    name: str
    phase: Literal["starting", "up"]
    prefix: str
    root: str
    docker: bool = False
    mpi: bool = False
    release: str = ""
    life: Life = "bare"
    management: str
    cluster: str
    key: str
    known_hosts: str
    python: str | None
    binds: list[str]
    hosts: list[HostRecord]

    def host(self, name: str) -> HostRecord:
        """Return the record of one host.

        Raises:
            UsageError: the lab has no such host.
        """
        for record in self.hosts:
            if record.name == name:
                return record
        known = folded(record.name for record in self.hosts)
        raise UsageError(f"the lab has no host {name!r}", next_step=f"It runs: {known}")


def read(paths: LabPaths) -> LabRecord | None:
    """Read a lab's state file.

    Returns:
        the record, or None where no lab of that name runs.

    Raises:
        LabError: the file is there but is not a state file.
    """
    try:
        document = json.loads(paths.state.read_text(encoding="utf-8"))
        document["schema_"] = document.pop("schema")
        return LabRecord.model_validate(document)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise LabError(
            f"{paths.state} cannot be read: labs belong to root",
            next_step="Run the command with sudo.",
        ) from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise LabError(
            f"{paths.state} is not a lab's state file ({type(error).__name__})",
            next_step="`remedy lab down` removes what is left of that lab.",
        ) from error


def write(paths: LabPaths, record: LabRecord) -> None:
    """Write a lab's state file, whole or not at all."""
    document = record.model_dump(mode="json")
    document = {"schema": document.pop("schema_"), **document}
    write_whole(paths.state, json.dumps(document, indent=1) + "\n", mode=0o600)


@contextmanager
def locked(paths: LabPaths, listener: Listener | None) -> Iterator[None]:
    """Keep other commands that change this lab waiting; other labs go on.

    Args:
        paths: which lab.
        listener: is called when another command is waited for.
    """
    with _holding(paths, paths.lock, listener, "another command changes this lab"):
        yield


@contextmanager
def machine_locked(paths: LabPaths, listener: Listener | None) -> Iterator[None]:
    """Keep commands waiting that change what all labs of this machine share.

    These are the root file systems, the address ranges and a kernel setting. Whoever needs both locks takes
    the lab's first.

    Args:
        paths: a lab of this machine.
        listener: is called when another command is waited for.
    """
    doing = "another lab command is at work on this machine"
    with _holding(paths, paths.machine_lock, listener, doing):
        yield


@contextmanager
def _holding(paths: LabPaths, path: Path, listener: Listener | None, doing: str) -> Iterator[None]:
    """Hold a lock file's lock.

    Args:
        paths: which lab.
        path: the lock file.
        listener: is called when another command is waited for.
        doing: what that command does.
    """
    paths.base.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("a") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            emit(listener, "waiting", f"{doing}; waiting for it")
            flock(lock, LOCK_EX)
        try:
            yield
        finally:
            flock(lock, LOCK_UN)
