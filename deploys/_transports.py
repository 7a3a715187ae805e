"""Variables by which UCX and HCCL choose a network device: whether a value can work here, and what can.

UCX_NET_DEVICES lists devices by their exact names, ``mlx5_0:1`` for a port of RDMA or the interface for TCP, or
says ``all``; ``^`` in front excludes (UCX docs/source/faq.md). HCCL_SOCKET_IFNAME has NCCL's syntax: prefixes,
``=`` for exact names, ``^`` to exclude (CANN, environment variables of HCCL).
"""

from __future__ import annotations

from remedy.deploys import _interfaces as nic
from remedy.probe import HostState, Interface, Network, RdmaPort
from remedy.values import Unknown

UCX_DEVICES = "UCX_NET_DEVICES"
HCCL_IFNAME = "HCCL_SOCKET_IFNAME"
NAMES = (UCX_DEVICES, HCCL_IFNAME)


def fault_of(
    name: str, value: str, host: HostState, carrier: Interface, *, strict: bool
) -> str | None:
    """Return why one of ``NAMES`` cannot work on a host; None when it can, or that is not known.

    Args:
        name: the variable.
        value: what it is set to.
        host: what the probe found.
        carrier: the interface with the cluster address.
        strict: whether another interface that peers could reach is wrong too: the user named the network.
    """
    network = host.network
    if isinstance(network, Unknown):
        return None
    if name == HCCL_IFNAME:
        return nic.wrong_interfaces(value, network, carrier, exact=False, strict=strict)
    if isinstance(host.rdma, Unknown):
        return None
    return _wrong_devices(value, network, host.rdma, carrier)


def _wrong_devices(
    value: str, network: Network, ports: tuple[RdmaPort, ...], carrier: Interface
) -> str | None:
    if value.startswith("^") or "*" in value or value.strip() in ("", "all"):
        return None
    words = {word.strip() for word in value.split(",")} - {""}
    devices = {port.device for port in ports} | {f"{port.device}:{port.port}" for port in ports}
    if words & (devices | {carrier.name}):
        return None
    interfaces = [i for i in network.interfaces if i.name in words]
    if not interfaces:
        return f"no device here is called {' or '.join(sorted(words))}"
    names = ", ".join(i.name for i in interfaces)
    astray = all(nic.internal(i, network) or i.kind == "loopback" for i in interfaces)
    return f"{names} does not leave this host" if astray else None


def value_for(name: str, host: HostState, carrier: Interface) -> str | None:
    """Return the value that names the cluster's interface; None where remedy does not choose.

    Where RDMA is in use, a single interface would keep UCX from it.
    """
    if name == HCCL_IFNAME:
        return f"={carrier.name}"
    return None if nic.active_ports(host) else carrier.name
