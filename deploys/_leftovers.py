"""What the remedies for leftovers of past jobs share: whose they are, how old, and who could still use them."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from dataclasses import dataclass

from remedy.plan import Change, Command, CommandAction, command
from remedy.probe import Clock, HostState, Identity, LoginSession

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
    marks = session.present if isinstance(session, LoginSession) else frozenset()
    if "/run/systemd/system" in marks:
        return ""
    kind = host.identity.virtualization if isinstance(host.identity, Identity) else ""
    if kind in _APPLICATION_CONTAINERS or marks & _CONTAINER_MARKS:
        return (
            "this is a container, and the processes of others that share its memory cannot be seen"
        )
    return ""


def moment(epoch: int) -> str:
    """Return an epoch second as people read it, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(epoch))


NONE = "none"


@dataclass(frozen=True)
class Doomed:
    """An object that goes: its number, a test in sh that it is a leftover, and sh text that ends it."""

    number: int
    test: str
    end: str


def ending(
    word: str, doomed: Sequence[Doomed], library: str, does: str, first: str = "", last: str = ""
) -> Command:
    """Return the command that ends leftovers, each only if it still is one.

    ``observe`` prints all numbers as long as any of the objects is a leftover: one that is used by now is none.

    Args:
        word: what the objects are.
        doomed: the objects.
        library: sh functions that their tests need.
        does: what the command does, in a sentence.
        first: sh text before the first is ended.
        last: sh text after the last.
    """
    before = " ".join([word, *(str(item.number) for item in doomed)])
    some = " || ".join(f"{{ {item.test}; }}" for item in doomed)
    lines = (f"if {item.test}; then {item.end}; fi" for item in doomed)
    return {
        "observe": f"{library}if {some}; then {command(['echo', before])}; else echo {NONE}; fi",
        "before": before,
        "after": NONE,
        "do": library + "\n".join(line for line in (first, *lines, last) if line),
        "undo": "",
        "does": does,
    }


def numbers(change: Change) -> Set[int]:
    """Return the numbers of the objects that a change ends."""
    assert isinstance(change.action, CommandAction)
    return {int(word) for word in change.action.before.split()[1:]}


def shown(change: Change, present: Set[int]) -> str:
    """Return what ``observe`` of an ``ending`` prints where the objects of these numbers are there."""
    assert isinstance(change.action, CommandAction)
    return change.action.before if numbers(change) & present else NONE
