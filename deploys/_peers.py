"""Where a host stands in the cluster's network, and who its peers are. Not a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv4Interface

from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.plan import Fleet
from remedy.plan.fleet import once_a_fleet, once_a_host
from remedy.probe import HostState, Interface, Network
from remedy.text import fold

_spans = lru_cache(maxsize=256)(spans.of_networks)


@dataclass(frozen=True)
class Place:
    """A host in the cluster's network.

    Args:
        address: its cluster address.
        prefix: the length of that network's prefix.
        carrier: the interface that has the address.
        network: all interfaces.
        subnet: the addresses of the cluster's network.
        rails: the interfaces that are in it.
        sources: the host's addresses in it.
        on_link: the peers that are in it.
        beyond: those that are not, so that a router is between.
    """

    address: str
    prefix: int
    carrier: Interface
    network: Network
    subnet: Spans
    rails: frozenset[str]
    sources: frozenset[str]
    on_link: Spans
    beyond: Spans

    @cached_property
    def peers(self) -> Spans:
        """The addresses of all peers."""
        return spans.merge((*self.on_link, *self.beyond))

    @property
    def cidr(self) -> str:
        """The cluster's network as text."""
        return str(IPv4Interface(f"{self.address}/{self.prefix}").network)


@once_a_fleet
def all_addresses(fleet: Fleet) -> Spans:
    """Return the cluster addresses of all hosts."""
    return spans.of_networks(fleet.known_addresses)


@once_a_host
def place_of(fleet: Fleet, host: HostState) -> Place | None:
    """Return where a host stands; None where it has no peers or that is not known."""
    address = fleet.addresses[host.host].address
    if address is None or not isinstance(host.network, Network):
        return None
    carrier = host.network.carrier_of(address)
    if carrier is None:
        return None
    prefix = next(a.prefix for a in carrier.addresses if a.address == address)
    subnet = _spans((f"{address}/{prefix}",))
    peers = spans.minus(all_addresses(fleet), _spans((address,)))
    if not peers:
        return None
    near = [
        (i.name, a.address)
        for i in host.network.interfaces
        for a in i.addresses
        if a.version == 4 and spans.meet(subnet, _spans((a.address,))) and a.prefix <= prefix
    ]
    return Place(
        address=address,
        prefix=prefix,
        carrier=carrier,
        network=host.network,
        subnet=subnet,
        rails=frozenset(name for name, _ in near),
        sources=frozenset(text for _, text in near),
        on_link=spans.meet(peers, subnet),
        beyond=spans.minus(peers, subnet),
    )


def names_of(fleet: Fleet, addresses: Spans) -> str:
    """Return the names of the hosts that have these addresses, folded."""
    names = [
        name
        for name, known in fleet.addresses.items()
        if known.address is not None and is_among(known.address, addresses)
    ]
    return fold(names)


def is_among(address: str, addresses: Spans) -> bool:
    """Return whether an address is one of these."""
    number = int(IPv4Address(address))
    return any(low <= number <= high for low, high in addresses)
