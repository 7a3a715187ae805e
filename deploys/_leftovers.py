"""What the remedies for leftovers of past jobs share: whose they are, how old, and who could still use them."""

from __future__ import annotations

import time

from remedy.plan import Finding, FindingKind
from remedy.probe import Clock, HostState, Identity, Session
from remedy.probe.state import NOT_PROBED
from remedy.values import Unknown

FIRST_USER = 1000
"""The first id of a person's account (login.defs(5), UID_MIN)."""
SERVICE_USERS = range(61184, 65535)
"""Ids that systemd gives to services for their lifetime, and nobody (systemd's UIDS-GIDS.md)."""

_APPLICATION_CONTAINERS = frozenset(("docker", "podman", "rkt", "pouch", "container-other"))
_CONTAINER_MARKS = frozenset(("/.dockerenv", "/run/.containerenv"))


def is_service(uid: int) -> bool:
    """Return whether ``uid`` is that of a daemon's account; root is not counted, because jobs run as root."""
    return 0 < uid < FIRST_USER or uid in SERVICE_USERS


def now(host: HostState) -> int | None:
    """Return the host's own time in epoch seconds; None when it is not known."""
    return host.clock.epoch_ns // 10**9 if isinstance(host.clock, Clock) else None


def booted_at(host: HostState) -> int | None:
    """Return the epoch second in which the host was booted; None when it is not known."""
    if isinstance(host.identity, Identity) and host.identity.booted_at:
        return host.identity.booted_at
    return None


def shared_with(host: HostState) -> str:
    """Return why processes that cannot be seen may use what is on this host; "" when all can be seen.

    A container that runs one application has its own process ids, while its memory may be that of the machine
    (``--ipc=host``) or of the other containers of its pod. One that boots its own systemd has both to itself.
    """
    session = host.session
    marks = session.present if isinstance(session, Session) else frozenset()
    if "/run/systemd/system" in marks:
        return ""
    kind = host.identity.virtualization if isinstance(host.identity, Identity) else ""
    if kind in _APPLICATION_CONTAINERS or marks & _CONTAINER_MARKS:
        return (
            "this is a container, and the processes of others that share its memory cannot be seen"
        )
    return ""


def unread(fact: object) -> bool:
    """Return whether something that the probe looked at could not be found out."""
    return isinstance(fact, Unknown) and fact != NOT_PROBED


def unknown(host: HostState, remedy: str, title: str, reason: str) -> Finding:
    """Return the finding that leftovers could not be looked for."""
    return Finding(
        host=host.host,
        remedy=remedy,
        kind=FindingKind.UNKNOWN,
        label="stale-shm",
        title=title,
        evidence=(reason,),
    )


def moment(epoch: int) -> str:
    """Return an epoch second as people read it, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(epoch))
