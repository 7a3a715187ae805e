"""The fleet: all host states of one run and the spec, which cross-host decisions look at."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TypeVar

from remedy.inventory import Inventory, Node
from remedy.probe import HostState
from remedy.spec import Spec
from remedy.values import Unknown

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterAddress:
    """The address under which the other hosts reach a host, and why it is that one.

    ``address`` is None when it could not be decided; ``reason`` then says why not.
    """

    address: str | None
    reason: str


@dataclass(frozen=True)
class Fleet:
    """Everything that deciding needs; deciding reads nothing else.

    Args:
        inventory: all hosts, also those that could not be probed.
        states: what the probe found, by host.
        spec: what the user wants.
        missing: hosts without a state, with the reason.
        known_machines: what stands for the machine-id that the last run saw at each host's address.
        known_boots: the boot-id that it saw there.
    """

    inventory: Inventory
    states: Mapping[str, HostState]
    spec: Spec
    missing: Mapping[str, str] = field(default_factory=dict)
    known_machines: Mapping[str, str] = field(default_factory=dict)
    known_boots: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def addresses(self) -> Mapping[str, ClusterAddress]:
        """The cluster address of every host of the inventory."""
        shared = _shared_subnet(self.states)
        return {node.name: self._address(node, shared) for node in self.inventory.nodes}

    @cached_property
    def known_addresses(self) -> tuple[str, ...]:
        """The cluster addresses that are known, in the order of the inventory."""
        return tuple(a.address for a in self.addresses.values() if a.address is not None)

    @property
    def host_by_address(self) -> dict[str, str]:
        """The host of each cluster address that is known."""
        return {a.address: name for name, a in self.addresses.items() if a.address is not None}

    def _address(self, node: Node, shared: ipaddress.IPv4Network | None) -> ClusterAddress:
        if node.cluster_address is not None:
            return ClusterAddress(node.cluster_address, "cluster_address in the inventory")
        local = interface_addresses(self.states.get(node.name))
        if self.spec.cluster.subnet is not None:
            subnet = ipaddress.ip_network(self.spec.cluster.subnet)
            for address in local:
                if address.ip in subnet:
                    return ClusterAddress(
                        str(address.ip), f"in {subnet}, cluster.subnet of the spec"
                    )
            return ClusterAddress(None, f"has no address in {subnet}, cluster.subnet of the spec")
        try:
            ssh = ipaddress.IPv4Address(node.ssh_address)
        except ValueError:
            ssh = None
        # Of a host that could not be read, the ssh address is the best that is known.
        is_local = node.name not in self.states or any(address.ip == ssh for address in local)
        if ssh is not None and not ssh.is_loopback and is_local:
            return ClusterAddress(str(ssh), "the address used for ssh")
        if shared is not None:
            for address in local:
                if address.ip in shared:
                    return ClusterAddress(str(address.ip), f"in {shared}, which all hosts share")
        return ClusterAddress(
            None, "no interface has the ssh address, and no subnet is shared by all"
        )


def interface_addresses(state: HostState | None) -> tuple[ipaddress.IPv4Interface, ...]:
    """Return the IPv4 addresses that other hosts could reach, in interface order."""
    if state is None or isinstance(state.network, Unknown):
        return ()
    addresses = (
        ipaddress.IPv4Interface(f"{address.address}/{address.prefix}")
        for interface in state.network.interfaces
        for address in interface.addresses
        if address.version == 4
    )
    return tuple(a for a in addresses if not a.ip.is_loopback and not a.ip.is_link_local)


def _shared_subnet(states: Mapping[str, HostState]) -> ipaddress.IPv4Network | None:
    """Return the first subnet in which every probed host has an address of its own.

    An address that two hosts have is no way to reach either (every docker0 is 172.17.0.1).
    """
    hosts = list(states.values())
    if not hosts:
        return None
    for candidate in interface_addresses(hosts[0]):
        networks = [
            next((a.ip for a in interface_addresses(host) if a.ip in candidate.network), None)
            for host in hosts
        ]
        if None not in networks and len(set(networks)) == len(hosts):
            return candidate.network
    return None


def once_a_fleet(decide: Callable[[Fleet], T]) -> Callable[[Fleet], T]:
    """Have a pure function of the fleet work once, although the decision about every host asks for it."""

    @wraps(decide)
    def ask(fleet: Fleet) -> T:
        answers = fleet.__dict__.setdefault("_answers", {})
        if decide not in answers:
            answers[decide] = decide(fleet)
        answer: T = answers[decide]
        return answer

    return ask
