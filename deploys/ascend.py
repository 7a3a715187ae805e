"""Ascend clusters: one right rank table on all hosts, and the variables that HCCL and MindSpore need.

Cures: "Init plugin so failed, ret = 1343225860" and EI0004, whose usual cause is a wrong rank table; HCCL
taking the wrong network card of a host; "Retry to lookup the unique id" on large clusters, where
MS_NODE_TIMEOUT is too short; HCCL's ports taken by outgoing connections.

Only hosts with /etc/hccn.conf are checked. Their device addresses are checked: none twice in the fleet, none
that is loopback. ``rank_table: true`` writes /etc/hccl_rank_table.json (version 1.0, the same bytes on every
host, ranks in the order of the inventory) and has RANK_TABLE_FILE, HCCL_IF_IP and MS_NODE_TIMEOUT set through
the remedy ``environment``. A table that is there is kept up to date. The addresses themselves are never
changed: that is `hccn_tool -i N -ip -s address A netmask M`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from remedy.edit.rank_table import Server, parse_hccn, rank_table
from remedy.firewall import spans
from remedy.firewall.ports import RESERVED_KEY, kernel_range, reserved
from remedy.plan import Fleet, FleetBench, Workbench, once_a_fleet, remedy
from remedy.probe import File, HostState
from remedy.spec import SpecSection
from remedy.text import counted
from remedy.values import Fact, Unknown

HCCN = "/etc/hccn.conf"
TABLE = "/etc/hccl_rank_table.json"
BASE_PORT, PORTS = 60000, 32
"""HCCL_IF_BASE_PORT and how many ports HCCL takes from there: 32 since CANN 8.3, 16 before (envref_07_0074)."""
LARGE, HUGE = 128, 1024
"""Devices above which MindSpore's guide asks for MS_NODE_TIMEOUT of 900 s up to 1800 s."""


class AscendSpec(SpecSection):
    """``rank_table``: true writes the table and sets the variables; without it one that is there is kept right.

    ``base_port``: HCCL_IF_BASE_PORT. ``node_timeout``: MS_NODE_TIMEOUT in seconds, "auto" goes by the number of
    devices. ``connect_timeout``: HCCL_CONNECT_TIMEOUT in seconds. ``buffer``: HCCL_BUFFSIZE in MB, which each
    communicator takes twice from the memory of every device.
    """

    rank_table: bool | None = None
    base_port: int = Field(default=BASE_PORT, ge=1024, le=65520)
    node_timeout: Literal["auto"] | Annotated[int, Field(ge=0)] = "auto"
    connect_timeout: int | None = Field(default=None, ge=120, le=7200)
    buffer: int | None = Field(default=None, ge=1, le=16384)


@dataclass(frozen=True)
class RankTable:
    """The whole fleet's devices: the table, or what keeps it from being made, by host."""

    content: bytes
    devices: int
    faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@once_a_fleet
def table(fleet: Fleet) -> RankTable:
    """Return the rank table of a fleet."""
    faults: dict[str, list[str]] = defaultdict(list)
    servers = []
    holders: dict[str, dict[str, None]] = defaultdict(dict)
    for name in fleet.inventory.names:
        address, content = fleet.addresses[name].address, _device_file(fleet, name)
        if isinstance(content, Unknown):
            faults[name].append(content.reason)
        elif address is None:
            faults[name].append(f"it has no cluster address: {fleet.addresses[name].reason}")
        else:
            devices, texts = parse_hccn(content)
            faults[name] += texts
            servers.append(Server(name, address, devices))
            for _, device in devices:
                holders[device][name] = None
    for device, names in holders.items():
        for name in names if len(names) > 1 else ():
            others = ", ".join(peer for peer in names if peer != name)
            faults[name].append(f"the device address {device} is also on {others}")
    count = sum(len(server.devices) for server in servers)
    known = {name: tuple(texts) for name, texts in faults.items() if texts}
    return RankTable(rank_table(servers), count, known)


def _device_file(fleet: Fleet, name: str) -> Fact[bytes]:
    """Return what a host's file of device addresses holds."""
    if name not in fleet.states:
        return Unknown(reason=f"it was not read: {fleet.missing.get(name, 'no answer')}")
    file = fleet.states[name].file(HCCN)
    if isinstance(file, Unknown) or file.exists:
        return file if isinstance(file, Unknown) else file.content
    return Unknown(reason=f"it has no {HCCN}")


def variables(fleet: Fleet, host: HostState, spec: AscendSpec) -> dict[str, str]:
    """Return the variables that jobs on ``host`` need; the remedy ``environment`` writes them.

    HCCL_IF_IP is taken before any choice of an interface by name (CANN docs, envref_07_0075).
    """
    address = fleet.addresses[host.host].address
    if not spec.rank_table or address is None or not _has_devices(host):
        return {}
    whole, values = table(fleet), {"HCCL_IF_IP": address}
    if not whole.faults:
        values["RANK_TABLE_FILE"] = TABLE
    devices = whole.devices
    seconds = spec.node_timeout
    if seconds == "auto":
        seconds = 1800 if devices > HUGE else 900 if devices > LARGE else 0
    if seconds:
        values["MS_NODE_TIMEOUT"] = str(seconds)
    if spec.base_port != BASE_PORT:
        values["HCCL_IF_BASE_PORT"] = str(spec.base_port)
    if spec.connect_timeout is not None:
        values["HCCL_CONNECT_TIMEOUT"] = str(spec.connect_timeout)
    return values


def buffer(host: HostState, spec: AscendSpec) -> dict[str, str]:
    """Return HCCL_BUFFSIZE where the spec gives it, with or without a rank table."""
    return (
        {"HCCL_BUFFSIZE": str(spec.buffer)}
        if spec.buffer is not None and _has_devices(host)
        else {}
    )


def reserved_ports(fleet: Fleet) -> range:
    """Return the ports that HCCL listens on, to be kept from outgoing connections; empty without Ascend hosts.

    For remedies that reserve or open ports: CANN asks for net.ipv4.ip_local_reserved_ports.
    """
    if not any(_has_devices(state) for state in fleet.states.values()):
        return range(0)
    base = fleet.spec.section("ascend", AscendSpec).base_port
    return range(base, min(base + PORTS, 65536))


@remedy(
    "Ascend rank table",
    AscendSpec,
    cures=("hccl-rank-table", "hccl-timeout"),
    order=55,
    reads=(TABLE,),
)
def ascend(bench: Workbench[AscendSpec]) -> None:
    """Decide whether the host's device addresses can be right, and what its rank table has to be."""
    choice = bench.settings.rank_table
    if not _has_devices(bench.host):
        if choice:
            title = f"a rank table is asked for, and this host has no {HCCN}"
            fix = "Set the addresses with hccn_tool, or leave the host out of the inventory."
            bench.blocked(title, fix=fix)
        return
    whole = table(bench.fleet)
    faults = whole.faults.get(bench.host.host)
    if faults:
        fix = "Correct it with hccn_tool -i N -ip -s address ADDRESS netmask MASK."
        bench.blocked(f"{HCCN} cannot be right", faults, fix)
    current = bench.host.file(TABLE)
    is_there = isinstance(current, File) and current.exists
    if not (choice or (choice is None and is_there)):
        return
    current = bench.file(TABLE)
    if whole.faults:
        if not faults:
            evidence = [f"{name}: {others[0]}" for name, others in whole.faults.items()][:8]
            bench.blocked("the rank table cannot be made, because it needs every host", evidence)
        return
    if current.content == whole.content:
        return
    title = f"{TABLE} is not the table of this inventory" if is_there else f"there is no {TABLE}"
    hosts = counted(len(bench.fleet.inventory.names), "host")
    bench.write(
        TABLE,
        whole.content,
        f"write {TABLE}: {counted(whole.devices, 'device')} on {hosts}",
        because=bench.drift(title),
        disrupts="running jobs keep the table they were started with",
    )


@ascend.fleetwide
def compare(bench: FleetBench[AscendSpec]) -> None:
    """Report hosts with other numbers of devices than the rest, and ports of HCCL that are not kept free."""
    ports = reserved_ports(bench.fleet)
    counts: dict[int, list[str]] = defaultdict(list)
    unreserved = []
    for name, state in bench.fleet.states.items():
        file = state.file(HCCN)
        if isinstance(file, File) and file.exists:
            counts[len(parse_hccn(file.content)[0])].append(name)
            if not _kept_free(state, ports):
                unreserved.append(name)
    if len(counts) > 1:
        lines = (
            f"{counted(count, 'device')}: {', '.join(names)}" for count, names in counts.items()
        )
        bench.report("hosts have different numbers of Ascend devices", lines)
    if unreserved:
        bench.report(
            f"outgoing connections may take HCCL's ports {ports.start}-{ports.stop - 1}",
            f"not in net.ipv4.ip_local_reserved_ports: {', '.join(unreserved)}",
            "Reserve them (section port_range of remedy.yaml), and open them to the peers.",
        )


def _kept_free(host: HostState, ports: range) -> bool:
    """Return whether no outgoing connection can take the ports; also where that is not known."""
    if isinstance(host.sysctls, Unknown):
        return True
    local = kernel_range(host.sysctls)
    if local is None or ports.stop <= local[0] or ports.start > local[1]:
        return True
    kept = reserved(host.sysctls.live.get(RESERVED_KEY, ""))
    return not spans.minus(((ports.start, ports.stop - 1),), kept)


def _has_devices(host: HostState) -> bool:
    file = host.file(HCCN)
    return isinstance(file, File) and file.exists
