"""The fleet: all host states of one run and the spec, which cross-host decisions look at."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TypeVar

from remedy.inventory import Inventory, Node
from remedy.plan.choice import EVERY, Choice
from remedy.plan.claimed import (
    Claims,
    interface_addresses,
    plausible_claims,
    shared_network,
    why_not,
)
from remedy.probe import HostState
from remedy.spec import Spec

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterAddress:
    """The address under which the other hosts reach a host, and why it is that one.

    Args:
        address: None when it could not be decided.
        reason: why it is that one, or why it could not be decided.
        claimed: whether only the host itself says that it is its own.
    """

    address: str | None
    reason: str
    claimed: bool = False


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
        answering: the addresses from which a peer got an answer, of those that only their host claims.
        choice: the remedies that decide.
    """

    inventory: Inventory
    states: Mapping[str, HostState]
    spec: Spec
    missing: Mapping[str, str] = field(default_factory=dict)
    known_machines: Mapping[str, str] = field(default_factory=dict)
    known_boots: Mapping[str, str] = field(default_factory=dict)
    answering: frozenset[str] = frozenset()
    choice: Choice = EVERY

    @cached_property
    def addresses(self) -> Mapping[str, ClusterAddress]:
        """The cluster address of every host of the inventory."""
        claims = plausible_claims(self.states, self.inventory)
        shared = shared_network(self.states, claims)
        return {node.name: self._address(node, claims, shared) for node in self.inventory.nodes}

    @property
    def own_addresses(self) -> dict[str, tuple[str, ...]]:
        """For each host its cluster address, "" where it is not known, and the one by which ssh goes."""
        return {
            node.name: (self.addresses[node.name].address or "", node.ssh_address or "")
            for node in self.inventory.nodes
        }

    @cached_property
    def claimed(self) -> Mapping[str, str]:
        """The cluster address of each host of which only the host itself says that it is its own."""
        return {
            name: known.address
            for name, known in self.addresses.items()
            if known.claimed and known.address is not None
        }

    @cached_property
    def unseen(self) -> Mapping[str, str]:
        """Those of ``claimed`` from which no peer got an answer; a host without peers misleads nobody."""
        if len(self.states) < 2:
            return {}
        return {
            name: address for name, address in self.claimed.items() if address not in self.answering
        }

    @cached_property
    def known_addresses(self) -> tuple[str, ...]:
        """The cluster addresses that are known, in the order of the inventory."""
        return tuple(a.address for a in self.addresses.values() if a.address is not None)

    @cached_property
    def host_by_address(self) -> dict[str, str]:
        """The host of each cluster address that is known."""
        return {a.address: name for name, a in self.addresses.items() if a.address is not None}

    def _address(
        self, node: Node, claims: Claims, shared: ipaddress.IPv4Network | None
    ) -> ClusterAddress:
        if node.cluster_address is not None:
            return ClusterAddress(node.cluster_address, "cluster_address in the inventory")
        local = interface_addresses(self.states.get(node.name))
        plausible = claims.get(node.name, ())
        if self.spec.cluster.subnet is not None:
            subnet = ipaddress.ip_network(self.spec.cluster.subnet)
            for address in plausible:
                if address.ip in subnet:
                    return ClusterAddress(
                        str(address.ip),
                        f"in {subnet}, cluster.subnet of the spec",
                        claimed=str(address.ip) != node.ssh_address,
                    )
            reason = f"has no address of its own in {subnet}, cluster.subnet of the spec"
            return ClusterAddress(None, f"{reason}{why_not(local)}")
        try:
            ssh = ipaddress.IPv4Address(node.ssh_address)
        except ValueError:
            ssh = None
        # Of a host that could not be read, the ssh address is the best that is known.
        is_local = node.name not in self.states or any(address.ip == ssh for address in local)
        if ssh is not None and not ssh.is_loopback and is_local:
            return ClusterAddress(str(ssh), "the address used for ssh")
        if shared is not None:
            for address in plausible:
                if address.ip in shared:
                    return ClusterAddress(
                        str(address.ip), f"in {shared}, which all hosts share", claimed=True
                    )
        reason = "no interface has the ssh address, and no subnet is shared by all"
        if ":" in (node.ssh_address or ""):
            reason = "ssh goes over IPv6, a cluster's addresses are IPv4, and they share no subnet of IPv4"
        return ClusterAddress(None, f"{reason}{why_not(local)}")


def once_a_host(decide: Callable[[Fleet, HostState], T]) -> Callable[[Fleet, HostState], T]:
    """Have a pure function work once for a host that several remedies ask about, one after the other."""
    last: list[tuple[Fleet, HostState, T]] = []

    @wraps(decide)
    def ask(fleet: Fleet, host: HostState) -> T:
        for known_fleet, known_host, answer in tuple(last):
            if known_fleet is fleet and known_host is host:
                return answer
        answer = decide(fleet, host)
        last[:] = [(fleet, host, answer)]
        return answer

    return ask


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
