"""Addresses that only the host itself says are its own: which of them can be so.

What a host says of its interfaces ends in the hosts files and the firewalls of all others, where neither the
inventory gives its cluster address nor ssh reached it. So such a claim has to be plausible: an address that a
host can have (RFC 6890 lists those that none has), in a network no larger than networks are, and nobody else's.
What is plausible is not true yet: peers say whether anything answers there (``remedy/runs/sight.py``).
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from remedy.inventory import Inventory
from remedy.probe import HostState
from remedy.values import Unknown

# 10.0.0.0/8 is the largest network that organisations have for themselves (RFC 1918).
SHORTEST_PREFIX = 8
# For documents only (RFC 5737), and for no use any more (RFC 1122, RFC 7526).
NOBODYS = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "192.88.99.0/24"),
    )
)
Claims = Mapping[str, tuple[ipaddress.IPv4Interface, ...]]


# The fleet as a whole and several remedies ask for those of each host.
_interface = lru_cache(maxsize=1 << 16)(ipaddress.IPv4Interface)


def interface_addresses(state: HostState | None) -> tuple[ipaddress.IPv4Interface, ...]:
    """Return the IPv4 addresses that other hosts could reach, in interface order."""
    if state is None or isinstance(state.network, Unknown):
        return ()
    addresses = (
        _interface(f"{address.address}/{address.prefix}")
        for interface in state.network.interfaces
        for address in interface.addresses
        if address.version == 4
    )
    return tuple(a for a in addresses if not a.ip.is_loopback and not a.ip.is_link_local)


def plausible_claims(states: Mapping[str, HostState], inventory: Inventory) -> Claims:
    """Return for each host the addresses that it says are its own, and that can be, in interface order.

    An address that two hosts have is no way to reach either (every docker0 is 172.17.0.1), nor is one that the
    inventory gives another host.
    """
    claims = {name: interface_addresses(state) for name, state in states.items()}
    holders = Counter(ip for addresses in claims.values() for ip in {a.ip for a in addresses})
    owners = _owners(inventory)
    return {
        name: tuple(
            address
            for address in addresses
            if not implausible(address)
            and holders[address.ip] == 1
            and owners.get(address.ip, name) == name
        )
        for name, addresses in claims.items()
    }


def implausible(address: ipaddress.IPv4Interface) -> str:
    """Return why no host has this address; "" where one can have it."""
    ip, network = address.ip, address.network
    if network.prefixlen < SHORTEST_PREFIX:
        return f"{address} would be in a network larger than any"
    if ip.is_multicast or ip.is_reserved or ip.is_loopback or any(ip in n for n in NOBODYS):
        return f"{ip} is no address of a host (RFC 6890)"
    if network.prefixlen < 31 and ip in (network.network_address, network.broadcast_address):
        return f"{ip} is the address of the network {network} itself, or its broadcast"
    return ""


def why_not(claims: Iterable[ipaddress.IPv4Interface]) -> str:
    """Return in words which claims of a host cannot be so; "" where there is no such claim."""
    reasons = [reason for address in claims if (reason := implausible(address))]
    return f"; {reasons[0]}, so what it says is not used" if reasons else ""


def shared_network(states: Mapping[str, HostState], claims: Claims) -> ipaddress.IPv4Network | None:
    """Return the first network in which every probed host has an address of its own.

    More than half of the hosts have to call it by that prefix: one alone could make it as wide as it likes. A
    host that has nothing plausible to say is not asked.
    """
    voters = [n for n in states if claims[n] or isinstance(states[n].network, Unknown)]
    stated = Counter(
        network for name in voters for network in {address.network for address in claims[name]}
    )
    usual = [network for network, count in stated.items() if 2 * count > len(voters)]
    # By the length of a prefix, the networks in which each host has an address: one host may claim thousands.
    inside = {
        length: Counter(
            network
            for name in voters
            for network in {int(address.ip) >> (32 - length) for address in claims[name]}
        )
        for length in {network.prefixlen for network in usual}
    }
    every = {
        network
        for network in usual
        if inside[network.prefixlen][int(network.network_address) >> (32 - network.prefixlen)]
        == len(voters)
    }
    stated_in_order = (address.network for name in voters for address in claims[name])
    return next((network for network in stated_in_order if network in every), None)


def _owners(inventory: Inventory) -> dict[ipaddress.IPv4Address, str]:
    """Return the host to which the inventory gives an address, as cluster or ssh address."""
    owners: dict[ipaddress.IPv4Address, str] = {}
    shared: set[ipaddress.IPv4Address] = set()
    for node in inventory.nodes:
        for text in {node.cluster_address, node.ssh_address} - {None}:
            try:
                ip = ipaddress.IPv4Address(str(text))
            except ValueError:
                continue
            if owners.setdefault(ip, node.name) != node.name:
                shared.add(ip)  # ports of one address, forwarded to several hosts
    return {ip: name for ip, name in owners.items() if ip not in shared}
