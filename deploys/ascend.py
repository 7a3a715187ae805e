"""Ascend clusters: one right rank table on all hosts, and the variables that HCCL and MindSpore need.

Cures: "Init plugin so failed, ret = 1343225860" and EI0004, whose usual cause is a wrong rank table; HCCL
taking the wrong network card of a host; "Retry to lookup the unique id" on large clusters, where
MS_NODE_TIMEOUT is too short; HCCL's ports taken by outgoing connections.

Only hosts with /etc/hccn.conf are looked at. Their device addresses are checked: none twice in the fleet, none
that is loopback. ``rank_table: true`` writes /etc/hccl_rank_table.json (version 1.0, the same bytes on every
host, ranks in the order of the inventory) and has RANK_TABLE_FILE, HCCL_IF_IP and MS_NODE_TIMEOUT set through
the remedy ``environment``. A table that is there is kept up to date. The addresses themselves are never
changed: that is `hccn_tool -i N -ip -s address A netmask M`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from remedy.deploys._once import once_a_fleet
from remedy.edit.rank_table import Server, parse_hccn, rank_table
from remedy.plan import (
    Assessment,
    Change,
    FileAction,
    Finding,
    FindingKind,
    Fleet,
    sha256,
)
from remedy.plan.files import blocker
from remedy.plan.legacy import old_remedy
from remedy.probe import File, HostState
from remedy.spec import SpecSection
from remedy.values import Unknown

NAME = "ascend"
LABEL = "hccl-rank-table"
HCCN = "/etc/hccn.conf"
TABLE = "/etc/hccl_rank_table.json"
BASE_PORT, PORTS = 60000, 32
"""HCCL_IF_BASE_PORT and how many ports HCCL takes from there: 32 since CANN 8.3, 16 before (envref_07_0074)."""
LARGE, HUGE = 128, 1024
"""Devices above which MindSpore's guide asks for MS_NODE_TIMEOUT of 900 s up to 1800 s."""


class AscendSpec(SpecSection):
    """``rank_table``: true writes the table and sets the variables; without it one that is there is kept right.

    ``base_port``: HCCL_IF_BASE_PORT. ``node_timeout``: MS_NODE_TIMEOUT in seconds, "auto" goes by the number of
    devices. ``connect_timeout``: HCCL_CONNECT_TIMEOUT in seconds.
    """

    rank_table: bool | None = None
    base_port: int = Field(default=BASE_PORT, ge=1024, le=65520)
    node_timeout: Literal["auto"] | int = "auto"
    connect_timeout: int | None = Field(default=None, ge=120, le=7200)


@dataclass(frozen=True)
class Table:
    """The whole fleet's devices: the table, or what keeps it from being made, by host."""

    content: bytes
    digest: str
    devices: int
    wrong: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@once_a_fleet
def table(fleet: Fleet) -> Table:
    """Return the rank table of a fleet."""
    wrong: dict[str, list[str]] = defaultdict(list)
    servers = []
    holders: dict[str, list[str]] = defaultdict(list)
    for name in fleet.inventory.names:
        state = fleet.states.get(name)
        address = fleet.addresses[name].address
        file = None if state is None else state.file(HCCN)
        if state is None:
            wrong[name].append(f"it was not read: {fleet.missing.get(name, 'no answer')}")
        elif address is None:
            wrong[name].append(f"it has no cluster address: {fleet.addresses[name].reason}")
        elif isinstance(file, Unknown):
            wrong[name].append(file.reason)
        elif file is None or not file.exists:
            wrong[name].append(f"it has no {HCCN}")
        else:
            devices, faults = parse_hccn(file.content)
            wrong[name] += faults
            servers.append(Server(name, address, devices))
            for _, device_address in devices:
                holders[device_address].append(name)
    for device_address, names in holders.items():
        for name in dict.fromkeys(names) if len(set(names)) > 1 else ():
            others = ", ".join(other for other in dict.fromkeys(names) if other != name)
            wrong[name].append(f"the device address {device_address} is also on {others}")
    count = sum(len(server.devices) for server in servers)
    kept = {name: tuple(faults) for name, faults in wrong.items() if faults}
    content = rank_table(servers)
    return Table(content, sha256(content), count, kept)


def variables(fleet: Fleet, host: HostState, spec: AscendSpec) -> dict[str, str]:
    """Return the variables that jobs on ``host`` need; the remedy ``environment`` writes them.

    HCCL_IF_IP is taken before any choice of an interface by name (CANN docs, envref_07_0075).
    """
    address = fleet.addresses[host.host].address
    if not spec.rank_table or address is None or not _has_devices(host):
        return {}
    whole, found = table(fleet), {"HCCL_IF_IP": address}
    if not whole.wrong:
        found["RANK_TABLE_FILE"] = TABLE
    devices = whole.devices
    seconds = spec.node_timeout
    if seconds == "auto":
        seconds = 1800 if devices > HUGE else 900 if devices > LARGE else 0
    if seconds:
        found["MS_NODE_TIMEOUT"] = str(seconds)
    if spec.base_port != BASE_PORT:
        found["HCCL_IF_BASE_PORT"] = str(spec.base_port)
    if spec.connect_timeout is not None:
        found["HCCL_CONNECT_TIMEOUT"] = str(spec.connect_timeout)
    return found


def reserved_ports(fleet: Fleet) -> range:
    """Return the ports that HCCL listens on, to be kept from outgoing connections; empty without Ascend hosts.

    For remedies that reserve or open ports: CANN asks for net.ipv4.ip_local_reserved_ports.
    """
    if not any(_has_devices(state) for state in fleet.states.values()):
        return range(0)
    base = fleet.spec.section(NAME, AscendSpec).base_port
    return range(base, min(base + PORTS, 65536))


def assess(fleet: Fleet, host: HostState, spec: AscendSpec) -> Assessment:
    """Decide whether the host's device addresses can be right, and what its rank table shall be."""
    current = host.file(TABLE)
    if not _has_devices(host):
        if spec.rank_table:
            title = f"a rank table is asked for, and this host has no {HCCN}"
            fix = "Set the addresses with hccn_tool, or leave the host out of the inventory."
            return Assessment((_finding(host, FindingKind.BLOCKED, title, (), fix),))
        return Assessment()
    whole = table(fleet)
    findings = []
    if own := whole.wrong.get(host.host):
        findings.append(
            _finding(
                host,
                FindingKind.BLOCKED,
                f"{HCCN} cannot be right",
                own,
                "Correct it with hccn_tool -i N -ip -s address ADDRESS netmask MASK.",
            )
        )
    kept = spec.rank_table is None and isinstance(current, File) and current.exists
    if not (spec.rank_table or kept):
        return Assessment(tuple(findings))
    if isinstance(current, Unknown):
        unread = _finding(
            host, FindingKind.UNKNOWN, f"{TABLE} could not be read", (current.reason,)
        )
        return Assessment((*findings, unread))
    if whole.wrong:
        if not own:
            evidence = tuple(f"{name}: {faults[0]}" for name, faults in whole.wrong.items())[:8]
            title = "the rank table cannot be made, because it needs every host"
            findings.append(_finding(host, FindingKind.BLOCKED, title, evidence))
        return Assessment(tuple(findings))
    if current.content == whole.content:
        return Assessment(tuple(findings))
    title = (
        f"{TABLE} is not the table of this inventory" if current.exists else f"there is no {TABLE}"
    )
    findings.append(_finding(host, FindingKind.DRIFT, title))
    if blocked := blocker(current, NAME):
        return Assessment((*findings, blocked.on(host.host, LABEL)))
    change = Change(
        id="",
        host=host.host,
        remedy=NAME,
        title=f"write {TABLE}: {whole.devices} devices on {len(fleet.inventory.names)} hosts",
        reason=title,
        label=LABEL,
        disrupts="running jobs keep the table they were started with",
        action=FileAction(
            path=TABLE,
            real_path=current.real_path,
            before=sha256(current.content) if current.exists else None,
            after=whole.digest,
        ),
    )
    blobs = {sha256(current.content): current.content, whole.digest: whole.content}
    return Assessment(tuple(findings), (change,), blobs)


def assess_fleet(fleet: Fleet, _spec: AscendSpec) -> tuple[Finding, ...]:
    """Report hosts with other numbers of devices than the rest, and ports of HCCL that are not kept free."""
    ports = reserved_ports(fleet)
    if not ports:
        return ()
    counts: dict[int, list[str]] = defaultdict(list)
    open_ = []
    for name, state in fleet.states.items():
        file = state.file(HCCN)
        if isinstance(file, File) and file.exists:
            counts[len(parse_hccn(file.content)[0])].append(name)
            if not _kept_free(state, ports):
                open_.append(name)
    findings = []
    if len(counts) > 1:
        lines = tuple(f"{count} devices: {', '.join(names)}" for count, names in counts.items())
        findings.append(_report("hosts have different numbers of Ascend devices", lines, ""))
    if open_:
        findings.append(
            _report(
                f"outgoing connections may take HCCL's ports {ports.start}-{ports.stop - 1}",
                (f"not in net.ipv4.ip_local_reserved_ports: {', '.join(open_)}",),
                "Reserve them (section port_range of remedy.yaml), and open them to the peers.",
            )
        )
    return tuple(findings)


def _kept_free(host: HostState, ports: range) -> bool:
    """Return whether no outgoing connection can take the ports; also where that is not known."""
    if isinstance(host.sysctls, Unknown):
        return True
    local = host.sysctls.live.get("net.ipv4.ip_local_port_range", "").split()
    if len(local) != 2 or ports.stop <= int(local[0]) or ports.start > int(local[1]):
        return True
    spans = host.sysctls.live.get("net.ipv4.ip_local_reserved_ports", "").split(",")
    reserved: set[int] = set()
    for span in filter(None, spans):
        first, _, last = span.partition("-")
        reserved |= set(range(int(first), int(last or first) + 1))
    return set(ports) <= reserved


def _has_devices(host: HostState) -> bool:
    file = host.file(HCCN)
    return isinstance(file, File) and file.exists


def _report(title: str, evidence: tuple[str, ...], fix: str) -> Finding:
    return Finding(
        host=None,
        remedy=NAME,
        kind=FindingKind.REPORT,
        label=LABEL,
        title=title,
        evidence=evidence,
        fix=fix,
    )


def _finding(
    host: HostState, kind: FindingKind, title: str, evidence: tuple[str, ...] = (), fix: str = ""
) -> Finding:
    return _report(title, evidence, fix).model_copy(update={"host": host.host, "kind": kind})


old_remedy(
    name=NAME,
    title="Ascend rank table",
    text=__doc__,
    cures=(LABEL, "hccl-timeout"),
    spec=AscendSpec,
    assess=assess,
    assess_fleet=assess_fleet,
    order=55,
    reads=(TABLE,),
)
