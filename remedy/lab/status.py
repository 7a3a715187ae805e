"""What a lab looks like now."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from remedy.lab.host import Host
from remedy.values import Headed, Record


class LabHostStatus(Record):
    """One host as it is now."""

    name: str
    state: Literal["up", "no-ssh", "off"]
    management_address: str
    cluster_address: str
    cluster_interface: str
    faults: list[str]
    boot_log: str


class LabStatus(Record):
    """A lab as it is now."""

    name: str
    running: bool
    inventory: str | None
    python: str | None
    hosts: list[LabHostStatus]


class LabStatusDocument(Headed):
    """What ``lab status`` prints with ``--json``."""

    schema_: Literal["remedy.lab-status/1"] = Field(default="remedy.lab-status/1", alias="schema")
    name: str
    running: bool
    python: str | None
    hosts: list[LabHostStatus]


def look(host: Host) -> LabHostStatus:
    """Return the state of a host."""
    state: Literal["up", "no-ssh", "off"] = "up"
    if not host.answers():
        state = "off" if host.leader() is None else "no-ssh"
    record = host.record
    return LabHostStatus(
        name=record.name,
        state=state,
        management_address=record.management_address,
        cluster_address=record.cluster_address,
        cluster_interface=record.cluster_interface,
        faults=record.faults,
        boot_log=str(host.folder / "boot.log"),
    )
