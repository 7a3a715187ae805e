"""Peers as witnesses of the addresses that hosts only claim: asked in one more command, and only then."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from remedy.plan import Finding, FindingKind, Fleet
from remedy.probe.seen import SEEN_SECONDS, parse_seen, render_seen
from remedy.text import counted, listed
from remedy.transport import Root, Script

if TYPE_CHECKING:
    from remedy.runs.session import Session

# So many peers look at each claim: one of them may be cut off itself, and all would be n times n questions.
WITNESSES = 3


def witnesses(fleet: Fleet) -> dict[str, tuple[str, ...]]:
    """Return the addresses that each host is asked about: those that the hosts before it claim, in a ring."""
    names = [name for name in fleet.inventory.names if name in fleet.states]
    places = {name: at for at, name in enumerate(names)}
    questions: dict[str, list[str]] = {}
    for host, address in fleet.claimed.items():
        for step in range(1, min(WITNESSES + 1, len(names))):
            peer = names[(places[host] + step) % len(names)]
            questions.setdefault(peer, []).append(address)
    return {name: tuple(addresses) for name, addresses in questions.items()}


def look(session: Session, fleet: Fleet) -> Fleet:
    """Return the fleet with the claimed addresses from which a peer got any answer.

    Where nothing is only claimed, no host is asked anything.
    """
    questions = witnesses(fleet)
    if not questions:
        return fleet
    nonce = secrets.token_hex(8)
    scripts = {
        name: Script(render_seen(addresses, nonce), SEEN_SECONDS, root=Root.PREFERRED)
        for name, addresses in questions.items()
    }
    with session.progress.stage(f"Asking peers about {counted(len(fleet.claimed), 'claim')}"):
        outputs = session.transport.run(scripts)
    answered = (parse_seen(o.stdout, nonce, questions[name]) for name, o in outputs.items())
    return replace(fleet, answering=frozenset[str]().union(*answered))


def findings(fleet: Fleet) -> tuple[Finding, ...]:
    """Return a report for each address that only its host claims, and that nobody has seen."""
    asked: dict[str, list[str]] = {}
    for name, addresses in witnesses(fleet).items() if fleet.unseen else ():
        for address in addresses:
            asked.setdefault(address, []).append(name)
    return tuple(
        _finding(fleet, host, address, asked.get(address, ()))
        for host, address in fleet.unseen.items()
    )


def _finding(fleet: Fleet, host: str, address: str, peers: Sequence[str]) -> Finding:
    return Finding(
        host=host,
        remedy="address",
        kind=FindingKind.REPORT,
        label="",
        title=f"{address}, which it says is its cluster address, is seen by nobody",
        evidence=(f"{fleet.addresses[host].reason}; no answer from there at {listed(peers)}",),
        fix=f"If it is right, give cluster_address of {host} in the inventory; apply without --yes asks.",
    )


def question(unseen: Mapping[str, str]) -> str:
    """Return the question whether hosts are where they say, by name."""
    claims = listed(f"{address} ({host})" for host, address in unseen.items())
    return f"Seen by nobody, and to go into the hosts files and firewalls of others: {claims}. Is that right?"
