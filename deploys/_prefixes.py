"""The length of the cluster network's prefix: the same as peers have it. Not a remedy.

A host with another prefix than its peers takes some of them for hosts beyond a router. Where all have one, /32
and a routed fabric included, that is how the network is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from remedy.deploys._peers import Place, names_of
from remedy.deploys._ways import LOST, NO_ROUTE, Way, ways
from remedy.firewall import spans
from remedy.plan import Fleet
from remedy.plan.fleet import once_a_fleet
from remedy.plan.workbench import Workbench
from remedy.probe import Network, Routing


def note_prefix(bench: Workbench[Any], place: Place, routing: Routing) -> None:
    """Name a prefix that takes peers for far ones, where no route leads to them by the cluster's interface."""
    network = _theirs(bench.fleet, place)
    if network is None:
        return
    far = spans.meet(place.beyond, spans.of_networks([str(network)]))
    lost = [w for w in ways(routing, far, place.address) if w.certain and _is_lost(w, place)]
    if not lost:
        return
    peers = names_of(bench.fleet, spans.merge(span for way in lost for span in way.peers))
    name, right = place.carrier.name, f"{place.address}/{network.prefixlen}"
    routes = [f"route: {way.route.text}" for way in lost if way.route is not None]
    bench.blocked(
        f"{place.address} has the prefix /{place.prefix} here and /{network.prefixlen} on other hosts, so that "
        f"{peers} are not on its network",
        (
            f"ip addr: {place.address}/{place.prefix} on {name}",
            *(routes or ["no route leads to them"]),
        ),
        f"Give it theirs: ip addr add {right} dev {name} && ip addr del {place.address}/{place.prefix} dev "
        f"{name}; and where it is set for the next boot.",
    )


def _theirs(fleet: Fleet, place: Place) -> IPv4Network | None:
    """Return the wider network that most others have the host's address in; None where there is none."""
    own = IPv4Address(place.address)
    known = networks(fleet).items()
    wider = ((n, hosts) for n, hosts in known if own in n and n.prefixlen < place.prefix)
    return max(wider, key=lambda pair: pair[1], default=(None, 0))[0]


def _is_lost(way: Way, place: Place) -> bool:
    """Return whether what goes this way does not leave by the cluster's interface."""
    if way.outcome in (*LOST, NO_ROUTE):
        return True
    interfaces = (*place.rails, place.carrier.name)
    return way.route is not None and way.route.interface not in interfaces


@once_a_fleet
def networks(fleet: Fleet) -> Mapping[IPv4Network, int]:
    """Return the networks of cluster addresses, as the hosts have them, with how many hosts do."""
    known: Counter[IPv4Network] = Counter()
    for name, cluster in fleet.addresses.items():
        state = fleet.states.get(name)
        network = state.network if state is not None else None
        carrier = (
            network.carrier_of(cluster.address)
            if isinstance(network, Network) and cluster.address is not None
            else None
        )
        for address in carrier.addresses if carrier is not None else ():
            if address.address == cluster.address and address.version == 4:
                known[IPv4Interface(f"{address.address}/{address.prefix}").network] += 1
    return known
