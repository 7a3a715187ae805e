"""What loses peers on the way where hosts of the cluster talk over IPv6. Not a remedy: it is named, no more."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from ipaddress import IPv6Address
from typing import Any

from remedy.deploys._ipv6 import Ipv6Peers, ipv6_peers, note
from remedy.deploys._ways import LOST, NO_ROUTE, Way, ways
from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.plan import Fleet, Workbench, once_a_fleet
from remedy.probe import FibRoute, Neighbour, Network, Routing
from remedy.text import fold

UNBOUND = "::"
FIXED = ("PERMANENT", "NOARP")


def note_routes_of_ipv6(bench: Workbench[Any], accepted: Collection[str]) -> None:
    """Name routes and rules that lose packets of IPv6 to peers.

    Args:
        bench: with the host.
        accepted: routes and rules that are right, by their text.
    """
    known = ipv6_peers(bench.fleet)
    peers, own = known.of_peers(bench.host.host), known.address_of(bench.host)
    if not peers or own is None:
        return
    routing = bench.host.routing
    if not isinstance(routing, Routing) or routing.ipv6 is None:
        return
    noted = set()
    for source in (own, UNBOUND):
        for way in ways(routing.ipv6, peers, source):
            text = _text(way)
            if _is_lost(way) and text not in accepted and text not in noted:
                noted.add(text)
                _note_lost(bench, known, way, text)


def _is_lost(way: Way) -> bool:
    return way.outcome in (*LOST, NO_ROUTE, "local")


def _text(way: Way) -> str:
    culprit = way.route or way.rule
    return culprit.text if culprit is not None else "ip -6 route shows none"


def _note_lost(bench: Workbench[Any], known: Ipv6Peers, way: Way, text: str) -> None:
    names = _names(known, way.peers)
    if way.outcome == NO_ROUTE and way.route is None:
        note(
            bench,
            f"there is no route to {names}",
            (text,),
            "Add it: ip -6 route add NETWORK via GATEWAY",
        )
        return
    kind = "route" if way.route is not None else "rule"
    verb = "drops" if way.certain else "may drop"
    if way.outcome == "local":
        verb = "keeps for this host"
    if way.outcome == NO_ROUTE:
        verb = "drops (throw: no other table has a way)"
    fix = (
        f"If nothing needs it: ip -6 {kind} del {shlex.join(text.split())}; "
        f'to accept it, add to peer_routes.accept in remedy.yaml: "{text}"'
    )
    shown = text if isinstance(way.route, FibRoute) else f"routing rule: {text}"
    note(bench, f"a {kind} {verb} what this host sends to {names}", (shown,), fix)


def _names(known: Ipv6Peers, addresses: Spans) -> str:
    """Return the names of the hosts that have one of these addresses, folded."""
    return fold(
        name
        for name, own in known.addresses.items()
        if any(spans.holds(addresses, int(IPv6Address(address))) for address in own)
    )


def shown(entry: Neighbour) -> str:
    """Return an entry as findings show it."""
    return f"{entry.address} lladdr {entry.mac} {entry.state}"


def note_neighbours_of_ipv6(bench: Workbench[Any], accepted: Collection[str]) -> None:
    """Name entries that send packets of IPv6 for a peer to a hardware address that it does not have.

    Args:
        bench: with the host.
        accepted: entries that are right, as findings show them.
    """
    known = ipv6_peers(bench.fleet)
    routing = bench.host.routing
    if not known.addresses or not isinstance(routing, Routing) or routing.ipv6 is None:
        return
    peers = _hardware(bench.fleet)
    for entry in routing.ipv6.neighbours:
        mac, name = peers.get(entry.address, ("", ""))
        if (
            name == bench.host.host
            or entry.state not in FIXED
            or not mac
            or shown(entry) in accepted
        ):
            continue
        if mac.lower() != entry.mac.lower():
            fix = f"Remove it: ip neigh del {entry.address} dev {shlex.quote(entry.interface)}"
            evidence = (f"ip neigh: {shown(entry)}", f"{name} itself has {mac}")
            title = f"this host sends what is for {name} to a hardware address that {name} does not have,"
            note(bench, title, evidence, fix)


@once_a_fleet
def _hardware(fleet: Fleet) -> Mapping[str, tuple[str, str]]:
    """Return the hardware address and the host of each address."""
    hardware = {}
    for name, addresses in ipv6_peers(fleet).addresses.items():
        state = fleet.states.get(name)
        if state is None or not isinstance(state.network, Network):
            continue
        for address in addresses:
            carrier = state.network.carrier_of(address)
            if carrier is not None:
                hardware[address] = (carrier.mac, name)
    return hardware
