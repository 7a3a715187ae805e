"""Variables by which UCX and HCCL choose a network device: whether a value can work here, and what can.

UCX_NET_DEVICES lists devices by their exact names, ``mlx5_0:1`` for a port of RDMA or the interface for TCP, or
says ``all``; ``^`` in front excludes (UCX docs/source/faq.md). HCCL_SOCKET_IFNAME has NCCL's syntax: prefixes,
``=`` for exact names, ``^`` to exclude (CANN, environment variables of HCCL).

Others choose kinds of transports, and leave none between hosts: OMPI_MCA_btl and UCX_TLS without TCP where
there is no RDMA, NCCL_NET=IB there, NCCL_IB_HCA with devices that the host does not have,
NCCL_SOCKET_FAMILY=AF_INET6 where the interface has no such address (NCCL env.rst; Open MPI's FAQ on tuning; UCX
faq.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from remedy.deploys import _interfaces as nic
from remedy.probe import HostState, Interface, Network, RdmaPort
from remedy.values import Unknown

UCX_DEVICES = "UCX_NET_DEVICES"
HCCL_IFNAME = "HCCL_SOCKET_IFNAME"
NAMES = (UCX_DEVICES, HCCL_IFNAME)
WAYS = ("OMPI_MCA_btl", "UCX_TLS", "NCCL_NET", "NCCL_IB_HCA", "NCCL_SOCKET_FAMILY")
"""What may leave no way to other hosts."""
# Of UCX and Open MPI the transports that stay within a host.
_INSIDE = frozenset(
    ("self", "sm", "shm", "mm", "posix", "sysv", "xpmem", "cma", "knem", "vader", "loopback")
)
_OF_GPUS = frozenset(
    ("cuda", "cuda_copy", "cuda_ipc", "gdr_copy", "rocm", "rocm_copy", "rocm_ipc", "smcuda")
)


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


def no_way(name: str, value: str, host: HostState, carrier: Interface) -> str | None:
    """Return why one of ``WAYS`` leaves no way to other hosts; None where one is left, or that is not known."""
    if name == "NCCL_SOCKET_FAMILY":
        lacks = value.upper() == "AF_INET6" and not any(a.version == 6 for a in carrier.addresses)
        return f"{carrier.name} has no address of IPv6" if lacks else None
    if isinstance(host.rdma, Unknown):
        return None
    active = nic.active_ports(host)
    if name == "NCCL_NET":
        return "no RDMA port is active here" if value.upper() == "IB" and not active else None
    if name == "NCCL_IB_HCA":
        return _no_device(value, active) if active else None
    return _no_transport(value, active)


def _no_transport(value: str, active: Sequence[RdmaPort]) -> str | None:
    """Return why a list of Open MPI's or UCX's transports has none that leaves the host."""
    words = {word.strip().lower() for word in value.lstrip("^").split(",")} - {""}
    if value.startswith("^"):
        lacks = "tcp" in words and not active
        return "it leaves TCP out, and no RDMA port is active here" if lacks else None
    inside = bool(words) and words <= _INSIDE | _OF_GPUS
    return "none of these transports leaves the host" if inside else None


def _no_device(value: str, active: Sequence[RdmaPort]) -> str | None:
    """Return that NCCL finds none of the devices that it is told of, and goes on over sockets."""
    exact, names = value.startswith(("=", "^=")), value.lstrip("^=").split(",")
    known = [(port.device, f"{port.device}:{port.port}") for port in active]

    def fits(word: str, both: tuple[str, str]) -> bool:
        device, _, port = word.partition(":")
        named = both[0] == device if exact else both[0].startswith(device)
        return named and (not port or both[1].endswith(f":{port}"))

    chosen = [
        both for both in known if any(fits(word.strip(), both) for word in names if word.strip())
    ]
    if value.startswith("^"):
        return (
            "it leaves out all RDMA ports that are active here"
            if len(chosen) == len(known)
            else None
        )
    return None if chosen else f"no active RDMA port here is called {' or '.join(names)}"


def value_for(name: str, host: HostState, carrier: Interface) -> str | None:
    """Return the value that names the cluster's interface; None where remedy does not choose.

    Where RDMA is in use, a single interface would keep UCX from it.
    """
    if name == HCCL_IFNAME:
        return f"={carrier.name}"
    return None if nic.active_ports(host) else carrier.name
