"""RDMA ports: InfiniBand and RoCE that are down, mixed, slower than on the peers, or of no use to GPUs.

Finds: a port that is up on other hosts and down on this one ("Call to ibv_modify_qp failed", completion error
12); InfiniBand and Ethernet ports in one host or one fleet, of which NCCL may pick different ones on either
side; a port with a lower rate; the module nvidia_peermem not loaded, so that every byte goes through the
memory of the host.

How it is measured: /sys/class/infiniband/*/ports/*, the loaded modules and the kind of NVIDIA driver. A port
that is down on every host is taken for unused and not reported. Whether GPUs really send directly is seen in
NCCL's own log ("GDRDMA"), which verification has on machines with GPUs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from remedy.plan import Assessment, Finder, Finding, Fleet
from remedy.plan.compare import differences
from remedy.plan.legacy import old_remedy
from remedy.probe import Gpus, HostState, Kernel, RdmaPort
from remedy.spec import SpecSection

NAME = "rdma_health"
_finding = Finder(NAME)
ACTIVE = "ACTIVE"
PEERMEM = frozenset(("nvidia_peermem", "nv_peer_mem"))


class RdmaHealthSpec(SpecSection):
    """``compare``: whether the RDMA ports of all hosts shall be alike."""

    compare: bool = True


def ports(state: HostState) -> tuple[RdmaPort, ...]:
    """Return the host's RDMA ports, none where they are not known."""
    return state.rdma if isinstance(state.rdma, tuple) else ()


def assess_fleet(fleet: Fleet, spec: RdmaHealthSpec) -> tuple[Finding, ...]:
    """Compare the ports of all hosts."""
    if not spec.compare:
        return ()
    return (*_down(fleet), *_layers(fleet), *_rates(fleet))


def _down(fleet: Fleet) -> Iterator[Finding]:
    used = {
        (port.device, port.port)
        for state in fleet.states.values()
        for port in ports(state)
        if port.state == ACTIVE
    }
    for state in fleet.states.values():
        own = ports(state)
        none_is_up = not any(port.state == ACTIVE for port in own)
        down = [p for p in own if p.state != ACTIVE and (none_is_up or (p.device, p.port) in used)]
        if down:
            yield _finding.report(
                state,
                f"{len(down)} RDMA ports are not active",
                "ib-link-fault",
                tuple(f"{p.device} port {p.port}: {p.state}, {p.physical_state}" for p in down),
                "Look at the cable and the switch: ibstat, mlxlink -d DEVICE; INIT without a subnet manager "
                "stays INIT.",
            )


def _layers(fleet: Fleet) -> Iterator[Finding]:
    layers = {
        host: " and ".join(sorted({p.link_layer for p in ports(state) if p.state == ACTIVE}))
        for host, state in fleet.states.items()
    }
    known = {host: layer for host, layer in layers.items() if layer}
    evidence = differences(known)
    mixed = [host for host, layer in known.items() if " and " in layer]
    if not evidence and mixed:
        evidence = (f"{known[mixed[0]]}: every host",)
    if evidence:
        yield _finding.report(
            None,
            "InfiniBand and Ethernet (RoCE) ports are mixed",
            "ib-roce-mixed",
            evidence,
            "Name the devices of one kind in NCCL_IB_HCA on every host, exactly: NCCL_IB_HCA==mlx5_0,mlx5_1",
        )


def _rates(fleet: Fleet) -> Iterator[Finding]:
    rates: dict[str, dict[str, str]] = defaultdict(dict)
    for host, state in fleet.states.items():
        for port in ports(state):
            if port.state == ACTIVE:
                where = f"{port.device} port {port.port}"
                rates[where][host] = f"{where} {port.rate:g} Gb/s"
    for where, by_host in rates.items():
        evidence = differences(by_host)
        if evidence:
            yield _finding.report(
                None,
                f"{where} differs in rate between the hosts",
                "ib-link-fault",
                evidence,
                "A port that came up slower has a bad cable or a switch port set so: mlxlink -d DEVICE",
            )


def assess(_fleet: Fleet, host: HostState, _spec: RdmaHealthSpec) -> Assessment:
    """Look for GPUs that cannot give their memory to an RDMA port."""
    if not isinstance(host.gpus, Gpus) or not host.gpus.driver or host.gpus.open_kernel:
        return Assessment()
    active = [port for port in ports(host) if port.state == ACTIVE]
    if not active or not isinstance(host.kernel, Kernel) or host.kernel.modules & PEERMEM:
        return Assessment()
    finding = _finding.report(
        host,
        "nvidia_peermem is not loaded, so RDMA cannot reach the memory of the GPUs",
        "gdr-peermem",
        (
            f"{len(active)} active RDMA ports, driver {host.gpus.driver} without open kernel modules",
        ),
        "modprobe nvidia_peermem, and put that name into a file of /etc/modules-load.d. With the open kernel "
        "modules DMA-BUF does the same.",
    )
    return Assessment((finding,))


old_remedy(
    name=NAME,
    title="RDMA ports",
    text=__doc__,
    cures=(),
    finds=("ib-link-fault", "ib-roce-mixed", "gdr-peermem"),
    spec=RdmaHealthSpec,
    assess=assess,
    assess_fleet=assess_fleet,
    order=90,
)
