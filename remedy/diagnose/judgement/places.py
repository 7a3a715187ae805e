"""What a text can mean where it happened: between a process and its own host, or in shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from remedy.diagnose.catalogue import CauseWeight, Role
from remedy.diagnose.scanner.exceptions import EXCEPTION
from remedy.diagnose.scanner.job_setting import together
from remedy.diagnose.scanner.log_scan import Event, LogScan

# Causes that lie between hosts: a process and its own host have no network between them.
BETWEEN_HOSTS = frozenset(
    ("firewall-ports", "ib-link-fault", "mtu-mismatch", "network-unreachable", "wrong-interface")
)
_OWN = re.compile(
    r"(?:\b[Cc]onnect\w{0,5}(?:\(\))?[^\n]{0,40}? (?:to|at)|\bhost|remote=)"
    r"\W{0,3}(?:localhost|127\.0\.0\.1|::1)(?![\w.])"
)
_LOOPBACK = re.compile(r"[Cc]onnect to (?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|localhost)<")
_OWN_ADDRESSES = frozenset(("localhost", "127.0.0.1", "::1"))
NO_PORT = "0"  # nobody can listen there: the launch names no port
# Python's own modules that put semaphores and arrays into /dev/shm (sem_open(3), shm_open(3)).
_SHARED = re.compile(
    r"[/\\](?:multiprocess(?:ing)?[/\\](?:synchronize|shared_memory|heap)"
    r"|torch[/\\]multiprocessing[/\\]reductions)\.py$"
)
_FULL = "disk-full"
_OF_SHARED_MEMORY = (
    CauseWeight(
        label="shm-too-small",
        weight=0.84,
        because="Python's own semaphores and arrays stand in /dev/shm, and it is full",
    ),
    CauseWeight(label="stale-shm", weight=0.5, because="or jobs that ended left it full"),
    CauseWeight(label=_FULL, weight=0.3, because="or another volume is full"),
)


# NCCL's peers are ranks: of a job on several hosts, those at such an address gave one that leads nowhere.
_OF_PEERS = re.compile(
    r"NCCL (?:WARN|INFO)\b|\b(?:socket\w*Connect|ncclOsSocket\w*): [Cc]onnect to"
)
_OF_NO_HOST = (
    CauseWeight(
        label="wrong-interface",
        weight=0.8,
        because="a rank gave its peers on other hosts a loopback address (NCCL_SOCKET_IFNAME=lo)",
    ),
    CauseWeight(
        label="loopback-hostname",
        weight=0.5,
        because="or a host's own name leads to its loopback address",
    ),
)


# Debian and its kin give a host's own name such an address in /etc/hosts; nothing else leads there.
_OF_A_NAME = re.compile(
    r"(?i)\bconnect(?:ing|ion)?(?:\(\))? (?:failed )?(?:to|with|at|for)\b.{0,80}\b127\.0\.1\.\d{1,3}\b"
)
_LESS = 0.3  # what is left of causes between hosts
_NAMED_SO = CauseWeight(
    label="loopback-hostname",
    weight=0.8,
    because="a host's own name leads to 127.0.1.1 in /etc/hosts, and its peers connect there",
)


def in_place(events: Sequence[Event], scans: Sequence[LogScan]) -> list[Event]:
    """Return the events with the causes that they can have where they happened.

    Args:
        events: of all logs.
        scans: the logs.
    """
    has_many_hosts = together(scan.setting for scan in scans).is_of_many_hosts
    shared = {
        (event.source, event.line)
        for event in events
        if event.symptom == EXCEPTION and _SHARED.search(event.details.get("path", ""))
    }
    return [
        _of_shared_memory(event, shared)
        or (_of_loopback(event) if has_many_hosts else None)
        or _of_own_name(event)
        or _of_one_host(event)
        for event in events
    ]


def _of_shared_memory(event: Event, shared: Iterable[tuple[str, int]]) -> Event | None:
    """Return an event of a full volume whose traceback ends in shared memory, None for another one."""
    if (event.source, event.line) not in shared:
        return None
    if not any(cause.label == _FULL for cause in event.causes):
        return None
    return replace(event, causes=_OF_SHARED_MEMORY)


def _of_loopback(event: Event) -> Event | None:
    """Return an event in which NCCL seeks a rank at its own loopback address, None for another one."""
    if event.role is Role.HARMLESS or not (
        _OF_PEERS.search(event.text) and _LOOPBACK.search(event.text)
    ):
        return None
    return replace(event, role=Role.CAUSE, causes=_OF_NO_HOST)


def _of_own_name(event: Event) -> Event | None:
    """Return an event in which an address was sought that only a host's own name has, None for another one."""
    if event.role is Role.HARMLESS or not _OF_A_NAME.search(event.text):
        return None
    if BETWEEN_HOSTS.isdisjoint(cause.label for cause in event.causes):
        return None
    others = (
        c.model_copy(update={"weight": min(c.weight, _LESS)}) if c.label in BETWEEN_HOSTS else c
        for c in event.causes
        if c.label != _NAMED_SO.label
    )
    return replace(event, causes=(_NAMED_SO, *others))


def _of_one_host(event: Event) -> Event:
    """Return an event without causes between hosts where its other end is this host, or no port at all."""
    address, port = event.details.get("address", ""), event.details.get("port", "")
    if not (address in _OWN_ADDRESSES or port == NO_PORT or _OWN.search(event.text)):
        return event
    return replace(
        event, causes=tuple(cause for cause in event.causes if cause.label not in BETWEEN_HOSTS)
    )
