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

from remedy.plan import Fleet, FleetBench, Workbench, once_a_fleet, remedy
from remedy.plan.compare import differences
from remedy.probe import Gpus, HostState, Kernel, RdmaPort
from remedy.spec import SpecSection
from remedy.text import counted

ACTIVE = "ACTIVE"
PEERMEM = frozenset(("nvidia_peermem", "nv_peer_mem"))


class RdmaHealthSpec(SpecSection):
    """``compare``: whether the RDMA ports of all hosts must be alike."""

    compare: bool = True


def ports(state: HostState, *, active: bool = False) -> tuple[RdmaPort, ...]:
    """Return the host's RDMA ports, or the active ones alone; none where they are not known."""
    every = state.rdma if isinstance(state.rdma, tuple) else ()
    return tuple(port for port in every if not active or port.state == ACTIVE)


@once_a_fleet
def in_use(fleet: Fleet) -> frozenset[tuple[str, int]]:
    """Return device and number of the ports that are active on any host."""
    return frozenset(
        (port.device, port.port)
        for state in fleet.states.values()
        for port in ports(state, active=True)
    )


@remedy(
    "RDMA ports", RdmaHealthSpec, finds=("ib-link-fault", "ib-roce-mixed", "gdr-peermem"), order=90
)
def rdma_health(bench: Workbench[RdmaHealthSpec]) -> None:
    """Look for ports that are down, and for GPUs that cannot give their memory to a port."""
    host, gpus = bench.host, bench.host.gpus
    active = ports(host, active=True)
    used = in_use(bench.fleet)
    down = [
        port
        for port in ports(host)
        if port.state != ACTIVE and (not active or (port.device, port.port) in used)
    ]
    if down and bench.settings.compare:
        bench.report(
            f"{counted(len(down), 'RDMA port')} not active",
            (f"{p.device} port {p.port}: {p.state}, {p.physical_state}" for p in down),
            "Check the cable and the switch: ibstat, mlxlink -d DEVICE; INIT without a subnet manager "
            "stays INIT.",
        )
    if not isinstance(gpus, Gpus) or not gpus.driver or gpus.open_kernel:
        return
    if active and isinstance(host.kernel, Kernel) and not host.kernel.modules & PEERMEM:
        bench.report(
            "nvidia_peermem is not loaded, so RDMA cannot reach the memory of the GPUs",
            f"{counted(len(active), 'active RDMA port')}, driver {gpus.driver} without open kernel modules",
            "Run modprobe nvidia_peermem, and put that name into a file of /etc/modules-load.d. With the open "
            "kernel modules DMA-BUF does the same.",
            label="gdr-peermem",
        )


@rdma_health.fleetwide
def compare(bench: FleetBench[RdmaHealthSpec]) -> None:
    """Compare the active ports of all hosts."""
    if not bench.settings.compare:
        return
    states = bench.fleet.states
    layers = {
        host: " and ".join(sorted({port.link_layer for port in ports(state, active=True)}))
        for host, state in states.items()
    }
    layers = {host: layer for host, layer in layers.items() if layer}
    mixed = [layer for layer in layers.values() if " and " in layer]
    evidence = differences(layers)
    if evidence or mixed:
        bench.report(
            "InfiniBand and Ethernet (RoCE) ports are mixed",
            evidence or f"{mixed[0]}: every host",
            "Name the devices of one kind in NCCL_IB_HCA on every host, exactly: NCCL_IB_HCA==mlx5_0,mlx5_1",
            label="ib-roce-mixed",
        )
    rates: dict[str, dict[str, str]] = defaultdict(dict)
    for host, state in states.items():
        for port in ports(state, active=True):
            name = f"{port.device} port {port.port}"
            rates[name][host] = f"{name} {port.rate:g} Gb/s"
    for name, rate_by_host in rates.items():
        if evidence := differences(rate_by_host):
            bench.report(
                f"{name} differs in rate between the hosts",
                evidence,
                "A port that came up slower has a bad cable or a switch port set so: mlxlink -d DEVICE",
            )
