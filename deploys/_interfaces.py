"""Which network interface a communication library takes, and whether that is one that peers can reach.

Not a remedy: what several of them have to know. Facts: NCCL src/misc/socket.cc (selection), PyTorch
ProcessGroupGloo.cpp and gloo/transport/tcp/device.cc (exact names).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from remedy.plan import Fleet
from remedy.probe import HostState, Interface, Network, RdmaPort
from remedy.values import Unknown

# Link types that lead nowhere outside the host unless a physical member or a route says otherwise.
INTERNAL_KINDS = frozenset(
    ("loopback", "bridge", "veth", "dummy", "tun", "vxlan", "geneve", "wireguard", "ifb", "virtual")
)


def cluster_interface(fleet: Fleet, host: HostState) -> Interface | Unknown:
    """Return the interface that has the host's cluster address, or why it is not known."""
    mine = fleet.addresses[host.host]
    if mine.address is None:
        return Unknown(reason=mine.reason)
    if isinstance(host.network, Unknown):
        return host.network
    interface = host.network.carrier_of(mine.address)
    return interface or Unknown(reason=f"no interface has the cluster address {mine.address}")


def cluster_subnet(fleet: Fleet, host: HostState) -> str | None:
    """Return the network of the cluster address (CIDR): the one word that is the same on every host."""
    interface = cluster_interface(fleet, host)
    if isinstance(interface, Unknown):
        return None
    for address in interface.addresses:
        if address.address == fleet.addresses[host.host].address:
            return str(ipaddress.ip_interface(f"{address.address}/{address.prefix}").network)
    return None


def named_by_user(fleet: Fleet, host: HostState) -> bool:
    """Return whether the user said which network carries the training, rather than a default."""
    return (
        fleet.spec.cluster.subnet is not None
        or fleet.inventory.node(host.host).cluster_address is not None
    )


def usable(network: Network) -> tuple[Interface, ...]:
    """Return the interfaces that NCCL looks at: up, running, with an address; in the kernel's order."""
    return tuple(i for i in network.interfaces if i.up and i.running and i.ipv4)


def internal(interface: Interface, network: Network) -> bool:
    """Return whether an interface reaches nothing but this host: docker0, virbr0, a container's bridge."""
    if interface.kind not in INTERNAL_KINDS:
        return False
    if any(
        member.master == interface.name and member.kind not in INTERNAL_KINDS
        for member in network.interfaces
    ):
        return False  # a bridge over a real card
    return not any(
        route.destination == "default" and route.interface == interface.name
        for route in network.routes
    )


def nccl_selects(value: str, interfaces: Sequence[Interface]) -> tuple[Interface, ...]:
    """Return what a value of NCCL_SOCKET_IFNAME selects: prefixes; "=": exact names; "^": all others."""
    exclude = value.startswith("^")
    exact = value[exclude:].startswith("=")
    words = [word.partition(":")[0] for word in value[exclude + exact :].split(",") if word]

    def named(interface: Interface) -> bool:
        return any(
            interface.name == word if exact else interface.name.startswith(word) for word in words
        )

    return tuple(i for i in interfaces if named(i) is not exclude)


def nccl_by_itself(interfaces: Sequence[Interface]) -> tuple[Interface, ...]:
    """Return what NCCL takes where nothing is set: the first class of names that is there at all."""

    def of(*prefixes: str) -> tuple[Interface, ...]:
        return tuple(i for i in interfaces if i.name.startswith(prefixes))

    others = tuple(i for i in interfaces if not i.name.startswith(("docker", "lo", "virbr")))
    return of("ib") or others or of("docker") or of("lo") or of("virbr")


def wrong_interfaces(
    value: str, network: Network, carrier: Interface, *, exact: bool, strict: bool
) -> str | None:
    """Return why a setting cannot work, None when it can.

    Args:
        value: what is set.
        network: the host's.
        carrier: the interface with the cluster address.
        exact: whether it takes names only (gloo, tensorpipe), not NCCL's prefixes, "=" and "^".
        strict: whether another interface that peers could reach is wrong too: the user named the network.
    """
    candidates = usable(network)
    if exact:
        if fault := _wrong_names(value, network, candidates):
            return fault
        selected = tuple(i for i in candidates if i.name in _words(value))
    else:
        selected = nccl_selects(value, candidates)
        if not selected:
            return "no interface here that is up and has an address matches it"
    if carrier.name in (i.name for i in selected):
        return None
    if all(internal(i, network) for i in selected):
        return f"{', '.join(i.name for i in selected)} does not leave this host"
    return f"the cluster address is on {carrier.name}" if strict else None


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.split(",")]


def _wrong_names(value: str, network: Network, candidates: Sequence[Interface]) -> str | None:
    """Return why a list of exact names cannot work; None when it can."""
    if value[:1] in ("=", "^"):
        return f"{value[0]!r} is NCCL's syntax; here it must be an exact name"
    for name in _words(value):
        if network.interface(name) is None:
            return f"there is no interface {name!r} here"
        if name not in (interface.name for interface in candidates):
            return f"{name} is down or has no IPv4 address"
    return None


def active_ports(host: HostState) -> tuple[RdmaPort, ...]:
    """Return the RDMA ports that carry traffic; () where there are none or it is not known."""
    if isinstance(host.rdma, Unknown):
        return ()
    return tuple(port for port in host.rdma if port.state == "ACTIVE")


def one_layer(ports: Sequence[RdmaPort]) -> tuple[RdmaPort, ...]:
    """Return the ports of one link layer: InfiniBand where there is any, else Ethernet (RoCE)."""
    infiniband = tuple(port for port in ports if port.link_layer == "InfiniBand")
    return infiniband or tuple(ports)


def has_gpu(host: HostState) -> bool:
    """Return whether the host has a GPU that NCCL would use."""
    return not isinstance(host.gpus, Unknown) and any(d.is_gpu for d in host.gpus.pci)
