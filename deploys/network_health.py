"""The cluster network: interfaces that are not alike on all hosts, or drop what peers send.

Finds: an MTU that is not the same everywhere, so that small messages pass and large ones hang without a
message; one of the cluster interface or of the loopback interface that is too small for anything; a link that
is slower than those of its peers, which all of them then wait for; strict reverse path filtering (rp_filter)
where another interface has an address of the cluster's network with another prefix (32, say), so that what
comes in by one and would be answered by the other is dropped, or where the way back to peers beyond a router
leads by another interface. Where both have the same prefix, the remedy `rails` acts. So is named a loopback
interface that is down or without 127.0.0.1, and a host that sends nothing on (net.ipv4.ip_forward) though
others have routes to its containers.

How it is measured: `ip address` and /sys/class/net/*/speed of the interface that has the cluster address, and
net.ipv4.conf.*.rp_filter, of which the larger of the interface's and of "all" counts. That large packets pass
is not proved by equal numbers, since a switch between the hosts may know another: `remedy verify` sends the
next hosts packets of full size that must not be cut, as `ping -M do` does, and says on which way they are lost.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from remedy.deploys._mtu import note_small_mtu
from remedy.deploys._peers import names_of, place_of
from remedy.deploys._walls_beside import note_forwarding
from remedy.deploys._ways import ways
from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.plan import Fleet, FleetBench, Workbench, remedy
from remedy.plan.compare import differences, groups
from remedy.probe import HostState, Interface, Network, Routing, Sysctls
from remedy.spec import SpecSection
from remedy.text import fold, is_number

STRICT = 1
LOCALHOST = "127.0.0.1"
# The headers of IPv4 and ICMP: what a ping of a full packet does not carry as data (RFC 791, RFC 792).
PING_HEADERS = 28


class NetworkHealthSpec(SpecSection):
    """``compare``: whether the cluster interfaces of all hosts must be alike."""

    compare: bool = True


def cluster_interface(fleet: Fleet, host: HostState) -> Interface | None:
    """Return the interface that carries the host's cluster address; None where that is not known."""
    address = fleet.addresses[host.host].address
    if address is None or not isinstance(host.network, Network):
        return None
    return host.network.carrier_of(address)


@remedy(
    "Cluster network",
    NetworkHealthSpec,
    finds=("mtu-mismatch", "wrong-interface", "network-unreachable"),
    order=90,
)
def network_health(bench: Workbench[NetworkHealthSpec]) -> None:
    """Look for a filter that drops what peers send, where there are two ways to the cluster's network."""
    network = bench.known(bench.host.network)
    _note_loopback(bench, network)
    note_forwarding(bench)
    local = cluster_interface(bench.fleet, bench.host)
    if local is None:
        return
    note_small_mtu(bench, local, "mtu-mismatch")
    _note_asymmetry(bench)
    beside = list(_beside(network, local, str(bench.fleet.addresses[bench.host.host].address)))
    if not beside:
        return
    sysctls = bench.known(bench.host.sysctls)
    strict = [interface.name for interface in (local, *beside) if _is_strict(sysctls, interface)]
    if strict:
        bench.report(
            "strict reverse path filtering, and two interfaces have addresses of the cluster's network",
            (f"{name}: rp_filter {STRICT} (the larger of it and all)" for name in strict),
            "Set net.ipv4.conf.all.rp_filter = 2 (loose) in /etc/sysctl.d. Or, if the interface is in the "
            "cluster's network, give its address the same prefix: the remedy rails then acts.",
            label="network-unreachable",
        )


def _note_loopback(bench: Workbench[NetworkHealthSpec], network: Network) -> None:
    """Name a loopback interface by which processes of one host do not reach each other."""
    for interface in network.interfaces:
        if interface.kind != "loopback" or not interface.state:
            continue
        state = "up" if interface.up else "down"
        shown = f"{interface.name}: {state}, {' '.join(interface.ipv4) or 'no address'}"
        if not interface.up:
            what, words = "is down", f"ip link set dev {interface.name} up"
        elif LOCALHOST not in interface.ipv4:
            what, words = (
                f"does not have {LOCALHOST}",
                f"ip addr add {LOCALHOST}/8 dev {interface.name}",
            )
        else:
            note_small_mtu(bench, interface, "network-unreachable")
            continue
        bench.blocked(
            f"{interface.name} {what}: processes of this host do not reach each other",
            shown,
            f"Set it right: {words}",
            label="network-unreachable",
        )


def _is_strict(sysctls: Sysctls, interface: Interface) -> bool:
    """Return whether what an interface gets has to come the way that an answer would go (ip-sysctl.rst)."""
    name = interface.name.replace(".", "/")
    keys = ("net.ipv4.conf.all.rp_filter", f"net.ipv4.conf.{name}.rp_filter")
    values = [int(sysctls.live[key]) for key in keys if is_number(sysctls.live.get(key, ""))]
    return bool(values) and max(values) == STRICT


def _note_asymmetry(bench: Workbench[NetworkHealthSpec]) -> None:
    """Name peers beyond a router whose packets strict filtering drops, since the way back leads elsewhere."""
    place, routing, sysctls = (
        place_of(bench.fleet, bench.host),
        bench.host.routing,
        bench.host.sysctls,
    )
    if place is None or not isinstance(routing, Routing) or not isinstance(sysctls, Sysctls):
        return
    if not _is_strict(sysctls, place.carrier):
        return
    by_others: dict[str, Spans] = {}
    for way in ways(routing, place.beyond, place.address):
        route = way.route
        is_astray = route is not None and route.interface not in ("", *place.rails)
        if route is not None and is_astray and way.certain:
            by_others[route.text] = spans.merge((*by_others.get(route.text, ()), *way.peers))
    for text, peers in by_others.items():
        bench.blocked(
            f"strict reverse path filtering of {place.carrier.name} drops what comes from "
            f"{names_of(bench.fleet, peers)}: the way back leads by another interface",
            (
                f"{place.carrier.name}: rp_filter {STRICT} (the larger of it and all)",
                f"route: {text}",
            ),
            f"Have the way back lead by {place.carrier.name} (ip route, or a rule for what is from "
            f"{place.address}), or set net.ipv4.conf.{place.carrier.name}.rp_filter = 2 (loose)",
            label="network-unreachable",
        )


def _beside(network: Network, local: Interface, address: str) -> Iterator[Interface]:
    """Yield the other interfaces that have an address of the network of ``address``, with another prefix.

    Those with the same prefix are in that network: they are rails, which ``rails`` judges.
    """
    prefix = next(a.prefix for a in local.addresses if a.address == address)
    subnet = ipaddress.ip_network(f"{address}/{prefix}", strict=False)
    for interface in network.interfaces:
        if interface.name != local.name and any(
            ipaddress.ip_address(neighbour.address) in subnet and neighbour.prefix != prefix
            for neighbour in interface.addresses
        ):
            yield interface


@network_health.fleetwide
def compare(bench: FleetBench[NetworkHealthSpec]) -> None:
    """Compare the cluster interfaces of all hosts."""
    if not bench.settings.compare:
        return
    states = bench.fleet.states.items()
    carriers = {host: cluster_interface(bench.fleet, state) for host, state in states}
    interfaces = {host: carrier for host, carrier in carriers.items() if carrier is not None}
    if lines := differences({host: f"mtu {i.mtu}" for host, i in interfaces.items()}):
        largest = max(interface.mtu for interface in interfaces.values())
        bench.report(
            "the MTU of the cluster interfaces differs",
            (*lines, *_names(interfaces, [i.mtu for i in interfaces.values()])),
            "Set one MTU on all of them and on the switch, in the network configuration too (netplan, "
            "NetworkManager, ifupdown). `remedy verify` proves it, and by hand, from each host: "
            f"ping -M do -s {largest - PING_HEADERS} PEER",
        )
    speeds = {host: i.speed for host, i in interfaces.items() if i.speed is not None}
    if lines := differences({host: f"{speed} Mb/s" for host, speed in speeds.items()}):
        bench.report(
            "the cluster interfaces differ in speed",
            (*lines, *_names(interfaces, [speeds.get(host) for host in interfaces])),
            "Check that it is the right interface (cluster.subnet in remedy.yaml). If so, check the cable "
            "and the port of the switch: ethtool INTERFACE",
            label="wrong-interface",
        )


def _names(interfaces: dict[str, Interface], values: list[int | None]) -> Iterator[str]:
    """Yield the names of the interfaces of those hosts that are not like most."""
    value_by_host = dict(zip(interfaces, values, strict=True))
    usual = groups({host: str(value) for host, value in value_by_host.items()})[0][0]
    odd = {
        host: interfaces[host].name for host, value in value_by_host.items() if str(value) != usual
    }
    for name, hosts in groups(odd):
        yield f"interface {name}: {fold(hosts)}"
