"""Which packets pass between a host and its peers, and their way through the host."""

from __future__ import annotations

import re
from collections.abc import Set

from remedy.firewall import spans
from remedy.firewall.hooks import Path
from remedy.firewall.ports import kernel_range
from remedy.firewall.spans import Spans
from remedy.plan import Fleet
from remedy.plan.fleet import once_a_fleet
from remedy.probe import HostState, Interface, Network, Queueing, Sysctls

_MARKS = re.compile(r"\bskbedit\b.*\bmark \S")
UNPRIVILEGED = (1024, 65535)
"""Ports from which a host may connect whose own range is not known."""

DEFAULT_RULES = 3
"""Of policy routing: local, main, default (ip-rule(8))."""


def client_ports(host: HostState) -> Spans:
    """Return the ports from which a host connects."""
    known = kernel_range(host.sysctls) if isinstance(host.sysctls, Sysctls) else None
    return (known or UNPRIVILEGED,)


@once_a_fleet
def all_client_ports(fleet: Fleet) -> Spans:
    """Return the ports from which any host of the fleet connects."""
    ports = [span for host in fleet.states.values() for span in client_ports(host)]
    unread = len(fleet.states) < len(fleet.inventory.names)
    return spans.merge([*ports, UNPRIVILEGED] if unread else ports)


def path_of(host: HostState, address: str | None, peers: Spans) -> Path:
    """Return how packets of the cluster get into a host and out of it.

    Args:
        host: the host.
        address: its cluster address; None where it is not known.
        peers: the addresses of the others.
    """
    network = host.network
    carrier = network.carrier_of(address) if isinstance(network, Network) and address else None
    if not isinstance(network, Network) or carrier is None or address is None:
        return Path(None, address)
    below = [i.name for i in network.interfaces if i.master == carrier.name]
    base = carrier.name.partition(".")[0]
    if carrier.kind == "vlan" and network.interface(base) is not None:
        below.append(base)
    return Path(
        carrier.name,
        address,
        tuple(below),
        carrier.kind == "bridge",
        _symmetric(network, carrier, address, peers),
        _marks_what_comes(host, {carrier.name, *below}),
    )


def _marks_what_comes(host: HostState, names: Set[str]) -> bool:
    """Return whether a filter of traffic control gives marks to what comes in by one of some interfaces."""
    filters = host.queueing.filters if isinstance(host.queueing, Queueing) else ()
    return any(
        each.interface in names
        and each.direction == "ingress"
        and _MARKS.search(" ".join(each.text))
        for each in filters
    )


def _symmetric(network: Network, carrier: Interface, address: str, peers: Spans) -> bool | None:
    """Return True where each peer is in the network of the carrier, and of no other interface; else None."""
    if len(network.rules) > DEFAULT_RULES:
        return None
    near: Spans = ()
    for interface in network.interfaces:
        for known in interface.addresses:
            if (known.version == 6) != (":" in address):
                continue
            span = spans.of_networks([f"{known.address}/{known.prefix}"])
            if known.address == address and interface.name == carrier.name:
                near = span
            elif interface.name != carrier.name and spans.meet(peers, span):
                return None
    return True if spans.meet(peers, near) == peers else None
