"""The cluster network: interfaces that are not alike on all hosts, or drop what peers send.

Finds: an MTU that is not the same everywhere, so that small messages pass and large ones hang without a word;
a link that is slower than those of its peers, which all of them then wait for; strict reverse path filtering
(rp_filter) where a host has two interfaces in the cluster's network, so that what comes in by one and would
be answered by the other is dropped.

How it is measured: `ip address` and /sys/class/net/*/speed of the interface that has the cluster address, and
net.ipv4.conf.*.rp_filter, of which the larger of the interface's and of "all" counts. That large packets pass
is not proved by equal numbers, since a switch between the hosts may know another: `remedy verify` sends the
next hosts packets of full size that must not be cut, as `ping -M do` does, and says on which way they are lost.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from remedy.plan import Assessment, Finder, Finding, Fleet
from remedy.plan.compare import differences, groups
from remedy.plan.legacy import old_remedy
from remedy.probe import HostState, Interface, Network, Sysctls
from remedy.spec import SpecSection
from remedy.text import fold

NAME = "network_health"
_finding = Finder(NAME)
STRICT = 1
# The headers of IPv4 and ICMP: what a ping of a full packet does not carry as data (RFC 791, RFC 792).
PING_HEADERS = 28


class NetworkHealthSpec(SpecSection):
    """``compare``: whether the cluster interfaces of all hosts shall be alike."""

    compare: bool = True


def cluster_interface(fleet: Fleet, host: HostState) -> Interface | None:
    """Return the interface that carries the host's cluster address; None where that is not known."""
    address = fleet.addresses[host.host].address
    if address is None or not isinstance(host.network, Network):
        return None
    return host.network.carrier_of(address)


def assess_fleet(fleet: Fleet, spec: NetworkHealthSpec) -> tuple[Finding, ...]:
    """Compare the cluster interfaces of all hosts."""
    if not spec.compare:
        return ()
    found = {host: cluster_interface(fleet, state) for host, state in fleet.states.items()}
    known = {host: interface for host, interface in found.items() if interface is not None}
    return (*_mtu(known), *_speed(known))


def _mtu(interfaces: dict[str, Interface]) -> Iterator[Finding]:
    lines = differences({host: f"mtu {i.mtu}" for host, i in interfaces.items()})
    if lines:
        largest = max(interface.mtu for interface in interfaces.values())
        yield _finding.report(
            None,
            "the MTU of the cluster interfaces differs",
            "mtu-mismatch",
            (*lines, *_names(interfaces, [i.mtu for i in interfaces.values()])),
            "Set one MTU on all of them and on the switch, in the network configuration too (netplan, "
            "NetworkManager, ifupdown). `remedy verify` proves it, and by hand, from each host: "
            f"ping -M do -s {largest - PING_HEADERS} PEER",
        )


def _speed(interfaces: dict[str, Interface]) -> Iterator[Finding]:
    speeds = {host: i.speed for host, i in interfaces.items() if i.speed is not None}
    fastest = max(speeds.values(), default=0)
    slow = {host: speed for host, speed in speeds.items() if speed < fastest}
    if slow:
        yield _finding.report(
            None,
            "the cluster interfaces differ in speed",
            "wrong-interface",
            (
                *differences({host: f"{speed} Mb/s" for host, speed in speeds.items()}),
                *_names(interfaces, [speeds.get(host) for host in interfaces]),
            ),
            "Is it the interface that was meant (cluster.subnet in remedy.yaml)? If so, look at the cable "
            "and the port of the switch: ethtool INTERFACE",
        )


def _names(interfaces: dict[str, Interface], values: list[int | None]) -> Iterator[str]:
    """Yield the names of the interfaces of those hosts that are not like most."""
    own = dict(zip(interfaces, values, strict=True))
    usual = groups({host: str(value) for host, value in own.items()})[0][0]
    odd = {host: interfaces[host].name for host, value in own.items() if str(value) != usual}
    for name, hosts in groups(odd):
        yield f"interface {name}: {fold(hosts)}"


def assess(fleet: Fleet, host: HostState, _spec: NetworkHealthSpec) -> Assessment:
    """Look for a filter that drops what peers send, where there are two ways to the cluster's network."""
    mine = cluster_interface(fleet, host)
    if mine is None or not isinstance(host.network, Network):
        return Assessment()
    beside = list(_beside(host.network, mine, str(fleet.addresses[host.host].address)))
    if not beside or not isinstance(host.sysctls, Sysctls):
        return Assessment()
    live = host.sysctls.live
    strict = []
    for interface in (mine, *beside):
        name = interface.name.replace(".", "/")
        keys = ("net.ipv4.conf.all.rp_filter", f"net.ipv4.conf.{name}.rp_filter")
        values = [int(live[key]) for key in keys if live.get(key, "").isdigit()]
        if values and max(values) == STRICT:
            strict.append(interface.name)
    if not strict:
        return Assessment()
    return Assessment(
        (
            _finding.report(
                host,
                "strict reverse path filtering with two interfaces in the cluster's network",
                "network-unreachable",
                tuple(f"{name}: rp_filter {STRICT} (the larger of it and all)" for name in strict),
                "Set net.ipv4.conf.all.rp_filter = 2 (loose) in /etc/sysctl.d, and arp_ignore = 1 and "
                "arp_announce = 2, so that each address answers by its own interface.",
            ),
        )
    )


def _beside(network: Network, mine: Interface, address: str) -> Iterator[Interface]:
    """Yield the other interfaces that have an address in the network of ``address``."""
    prefix = next(a.prefix for a in mine.addresses if a.address == address)
    subnet = ipaddress.ip_network(f"{address}/{prefix}", strict=False)
    for interface in network.interfaces:
        if interface.name != mine.name and any(
            ipaddress.ip_address(own) in subnet for own in interface.ipv4
        ):
            yield interface


old_remedy(
    name=NAME,
    title="Cluster network",
    text=__doc__,
    cures=(),
    finds=("mtu-mismatch", "wrong-interface", "network-unreachable"),
    spec=NetworkHealthSpec,
    assess=assess,
    assess_fleet=assess_fleet,
    order=90,
)
