"""What can be moved between the ranks at most: the physical limit that a bandwidth is shown beside. Pure.

Between hosts it is what the wires of a host carry, and no more than what joins its GPUs where several take
part; inside a single host it is the latter alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from remedy.probe import HostState
from remedy.values import Unknown
from remedy.verify.allreduce.plan import RankHost
from remedy.verify.verdict import Backend

# Link types whose speed is that of a wire; a veth claims 10 Gb/s whatever the machine can do.
WIRES = ("physical", "bond", "vlan")
# What can go over RDMA ports; gloo and MCCL use sockets, of one card.
OVER_RDMA: frozenset[Backend | str] = frozenset(("nccl", "mpi", "hccl"))


def limits(
    states: Mapping[str, HostState], hosts: Sequence[RankHost], backend: Backend | str
) -> dict[str, float | None]:
    """Work out what each host can carry in one direction, in GB/s; None where it is not known.

    Args:
        states: what was found, by host name.
        hosts: those that take part; one alone uses no wires.
        backend: what sums.
    """
    return {host.name: _limit(states[host.name], host, backend, len(hosts) == 1) for host in hosts}


def wires(state: HostState, address: str, backend: Backend | str) -> float | None:
    """Add up a host's wires, in GB/s: its active RDMA ports, else the card with its address."""
    if backend in OVER_RDMA and not isinstance(state.rdma, Unknown):
        active = [port.rate for port in state.rdma if port.state == "ACTIVE"]
        if active:
            return sum(active) / 8
    if isinstance(state.network, Unknown):
        return None
    for interface in state.network.interfaces:
        held = address in (entry.address for entry in interface.addresses)
        if held and interface.kind in WIRES and interface.speed:
            return interface.speed / 8000
    return None


def nvlinks(state: HostState) -> Mapping[int, float]:
    """Return what the NVLinks of each GPU carry, in GB/s; empty where there are none, or it is not known."""
    links = None if isinstance(state.gpus, Unknown) else state.gpus.links
    if links is None or isinstance(links, Unknown) or len(links) < 2 or not any(links.values()):
        return {}
    return links


def _limit(state: HostState, host: RankHost, backend: Backend | str, alone: bool) -> float | None:
    # By the best GPU of the host: a broken NVLink must not lower what a share of this asks for.
    joined = max(nvlinks(state).values(), default=None) if host.ranks > 1 else None
    joined = joined if backend == "nccl" else None
    if alone:
        return joined
    outside = wires(state, host.address, backend)
    return outside if outside is None or joined is None else min(outside, joined)
