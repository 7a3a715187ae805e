"""Marks that a host's own rules give to what it sends to peers, by which routing rules choose. Not a remedy.

A packet that leaves is routed once more where a chain that can change its way has changed its mark: table
mangle of iptables, chains of the type route of nftables (Linux net/ipv4/netfilter/iptable_mangle.c,
net/netfilter/nft_chain_route.c).
"""

from __future__ import annotations

from remedy.deploys._packets import path_of
from remedy.deploys._peers import Place
from remedy.firewall.hooks import Gate, gates
from remedy.firewall.spans import Spans
from remedy.firewall.traffic import Traffic
from remedy.firewall.walls import rules_in_force
from remedy.probe import HostState, Routing
from remedy.values import Unknown

_TRAINING: Spans = ((1024, 65535),)
"""Ports of which training uses some."""


def marks_of(host: HostState, place: Place, routing: Routing) -> tuple[int | None, ...]:
    """Return the marks that packets to peers get before they are routed again; None: one that is not known.

    Args:
        host: the host.
        place: its place in the cluster's network.
        routing: its own; where no rule asks for a mark, none matters.
    """
    asked = any(word.startswith("fwmark ") for rule in routing.rules for word in rule.conditions)
    if not asked or isinstance(host.firewalls, Unknown):
        return ()
    traffic = Traffic(place.peers, *[_TRAINING] * 4)
    path = path_of(host, place.address, place.peers)
    passed = gates(rules_in_force(host.firewalls), traffic, path)
    marks = {part.mark for gate in passed if _reroutes(gate) for part in gate.judgement.passed}
    return tuple(sorted(marks - {0}, key=lambda mark: -1 if mark is None else mark))


def _reroutes(gate: Gate) -> bool:
    """Return whether a packet is routed once more behind a base chain that has changed its mark."""
    if gate.way != "out" or gate.arp:
        return False
    if gate.chain is not None:
        return gate.chain.kind == "route"
    return gate.place == "mangle OUTPUT"
