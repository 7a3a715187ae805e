"""Over which addresses of IPv6 hosts of the cluster talk, and what keeps those apart. Not a remedy.

The cluster addresses are IPv4. Over IPv6 a host reaches another where a name leads there (see ``_resolution``),
where NCCL is told to (NCCL_SOCKET_FAMILY), and where the inventory has nothing but an address of IPv6. On other
fleets nothing is said of IPv6.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from remedy.deploys.hosts_file import HostsFileSpec
from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.plan import Fleet, Workbench
from remedy.plan.fleet import once_a_fleet
from remedy.probe import HostState, Names, Network, Resolved
from remedy.text import listed

FAMILY = "NCCL_SOCKET_FAMILY"
# A name, and the addresses that it resolves to.
_Answer: TypeAlias = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Ipv6Peers:
    """The addresses of IPv6 over which hosts are reached.

    Args:
        addresses: of each host, in no order.
        used: why it is known that hosts talk over them; "" where they only could.
        possible: why they could.
    """

    addresses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    used: str = ""
    possible: str = ""

    @property
    def why(self) -> str:
        """Why they matter, for evidence."""
        return self.used or self.possible

    def of_peers(self, host: str) -> Spans:
        """Return the addresses of all others."""
        own = self.addresses.get(host, frozenset())
        alone = [a for a in own if self._holders[a] == 1]
        return spans.minus(self._every, spans.of_networks(alone)) if alone else self._every

    @cached_property
    def _holders(self) -> Counter[str]:
        """How many hosts have each address."""
        return Counter(address for known in self.addresses.values() for address in known)

    @cached_property
    def _every(self) -> Spans:
        return spans.of_networks(self._holders)

    def address_of(self, host: HostState) -> str | None:
        """Return the address by which the others reach a host, else one from which it reaches them."""
        if not isinstance(host.network, Network):
            return None
        every = [a.address for i in host.network.interfaces for a in i.addresses]
        known = self.addresses.get(host.host, frozenset())
        usable = sorted(filter(_is_reachable, every), key=lambda address: address not in known)
        return usable[0] if usable else None


@once_a_fleet
def ipv6_peers(fleet: Fleet) -> Ipv6Peers:
    """Return over which addresses of IPv6 the hosts of a fleet are reached."""
    addresses: dict[str, set[str]] = {}
    used = possible = ""
    repaired = fleet.spec.section("hosts_file", HostsFileSpec).manage
    for host, address, why, decides in _reached(fleet):
        addresses.setdefault(host, set()).add(address)
        if decides == "now" or (decides == "name" and not repaired):
            used = used or why
        possible = possible or why
    return Ipv6Peers({name: frozenset(known) for name, known in addresses.items()}, used, possible)


def _reached(fleet: Fleet) -> Iterator[tuple[str, str, str, str]]:
    """Yield a host, an address of its, why it is reached there, and what decides that it is.

    The last is "now" where nothing else could, "name" where a name leads there before all, "" where it is one
    address among others.
    """
    names = {name.lower(): name for name in fleet.inventory.names}
    answered = _Answered()
    carriers: list[tuple[str, str]] | None = None
    for state in fleet.states.values():
        for asked, answers in answered.by(state):
            why = f"{asked} resolves to {listed(answers)} on {state.host}"
            for address in filter(_is_reachable, answers):
                decides = "name" if ":" in answers[0] else ""
                if asked.lower() in names:
                    yield names[asked.lower()], address, why, decides
        if _is_told(state):
            why = f"{FAMILY}=AF_INET6 in the environment of {state.host}"
            known = (
                list(_of_carriers(fleet)) if carriers is None else []
            )  # the first says it for all
            carriers = carriers or known
            for name, address in known:
                yield name, address, why, "now"
    for node in fleet.inventory.nodes:
        address = node.ssh_address.partition("%")[0]
        if fleet.addresses[node.name].address is None and _is_reachable(address):
            yield node.name, address, f"{node.name} has {address} in the inventory alone", "now"


class _Answered:
    """The answers of hosts, host after host: what many hosts answer alike is said by the first of them."""

    def __init__(self) -> None:
        # By table those of its answers that no host had for its own yet; with the table, which keeps its id.
        self._left: dict[int, tuple[object, list[_Answer]]] = {}

    def by(self, state: HostState) -> Iterator[_Answer]:
        """Yield each name that an address of IPv6 is among the answers to; the own name, too."""
        if not isinstance(state.names, Names):
            return
        peers = state.names.peers
        if isinstance(peers, Resolved):
            yield from self._first(peers.alike, peers.otherwise)
            yield from _with_ipv6(peers.otherwise)
        else:
            yield from self._first(peers, {})
        local = state.names.local
        if isinstance(local, tuple) and ":" in "".join(local):
            yield state.host, local

    def _first(
        self, table: Mapping[str, tuple[str, ...]], otherwise: Mapping[str, object]
    ) -> Sequence[_Answer]:
        _, remaining = self._left.get(id(table)) or (table, _with_ipv6(table))
        self._left[id(table)] = (table, [pair for pair in remaining if pair[0] in otherwise])
        return [pair for pair in remaining if pair[0] not in otherwise]


def _with_ipv6(peers: Mapping[str, tuple[str, ...]]) -> list[_Answer]:
    return [(name, answers) for name, answers in peers.items() if ":" in "".join(answers)]


def _is_told(state: HostState) -> bool:
    environment = state.environment
    return isinstance(environment, Mapping) and environment.get(FAMILY) == "AF_INET6"


def _of_carriers(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield the addresses of IPv6 of each interface that has a cluster address."""
    for name, state in fleet.states.items():
        local = fleet.addresses[name].address
        network = state.network
        carrier = network.carrier_of(local) if isinstance(network, Network) and local else None
        for address in carrier.addresses if carrier else ():
            if _is_reachable(address.address):
                yield name, address.address


def _is_reachable(text: str) -> bool:
    """Return whether a text is an address of IPv6 that is of one host alone, wherever it is used."""
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address.ipv4_mapped
    )


def note(bench: Workbench[Any], title: str, evidence: tuple[str, ...], fix: str) -> None:
    """Say what keeps hosts apart over IPv6: it is wrong where they talk over it, else worth knowing."""
    peers = ipv6_peers(bench.fleet)
    say = bench.blocked if peers.used else bench.report
    say(f"{title} over IPv6", (*evidence, f"over IPv6: {peers.why}"), fix)
