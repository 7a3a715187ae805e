"""Hosts with interfaces, files of variables and sessions, as the remedy for the environment sees them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from remedy.deploys.environment import EnvironmentSpec
from remedy.edit.assignments import Dialect, assignments, effective
from remedy.inventory import Inventory, Node
from remedy.plan import FileAction, Finding, FindingKind, Fleet, Plan, make_plan
from remedy.probe import (
    Address,
    File,
    Gpus,
    HostState,
    Interface,
    LoginSession,
    Mention,
    Network,
    PciDevice,
    RdmaPort,
    Route,
)
from tests.unit.build import WHEN, host_state, record, with_section

ENV, NCCL, PROFILE = "/etc/environment", "/etc/nccl.conf", "/etc/profile.d/remedy.sh"
HOME = "/root/.nccl.conf"
MCA = "/etc/openmpi/openmpi-mca-params.conf"
GPU = PciDevice("0000:01:00.0", "10de", "2330", "0302")


def interface(
    name: str, address: str | None, kind: str = "physical", *, up: bool = True
) -> Interface:
    own = (Address(address=address, prefix=24, scope="global"),) if address else ()
    made: Interface = record(
        Interface, name=name, kind=kind, up=up, running=up, addresses=own, mtu=1500
    )
    return made


def host(
    number: int = 1,
    files: Mapping[str, bytes] | None = None,
    *,
    cluster: str = "eno2",
    extra: tuple[Interface, ...] = (),
    first: tuple[Interface, ...] = (),
    mentions: tuple[Mention, ...] = (),
    gpu: bool = False,
    rdma: tuple[RdmaPort, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> HostState:
    """Return a host whose cluster address is on ``cluster``; a file that is not given is not there."""
    address = f"10.0.0.{number}"
    given = files or {}
    known = {
        path: File(path=path, real_path=path, exists=path in given, content=given.get(path, b""))
        for path in (ENV, NCCL, PROFILE, HOME, MCA, "/etc/ucx/ucx.conf")
    }
    lines = given.get(ENV, b"")
    said = effective(assignments(lines, Dialect.PAM), Dialect.PAM)
    interfaces = (*first, interface(cluster, address), interface("docker0", "172.17.0.1", "bridge"))
    return host_state(f"gpu{number:02d}", address, files=known).model_copy(
        update={
            "network": record(
                Network,
                interfaces=(*interfaces, *extra),
                routes=(record(Route, destination="default", interface="eth0"),),
            ),
            "session": record(LoginSession, homes=("/root",), programs={}, present=frozenset()),
            "mentions": mentions,
            "gpus": record(Gpus, pci=(GPU,) if gpu else ()),
            "rdma": rdma,
            "environment": {n: one.value for n, one in said.items()}
            if environment is None
            else environment,
        }
    )


def planned(*states: HostState, spec: EnvironmentSpec | None = None) -> Plan:
    return make_plan(whole(*states, spec=spec), WHEN, only="environment")


def whole(*states: HostState, spec: EnvironmentSpec | None = None) -> Fleet:
    nodes = tuple(
        Node(name=state.host, ssh_address=f"10.0.0.{int(state.host[3:])}") for state in states
    )
    return Fleet(
        Inventory(path=Path("inventory.py"), nodes=nodes),
        {state.host: state for state in states},
        with_section("environment", spec or EnvironmentSpec()),
    )


def content(plan: Plan, path: str, name: str = "gpu01") -> bytes | None:
    """Return what a plan writes into a file; None when it does not touch it."""
    for change in plan.for_host(name):
        assert isinstance(change.action, FileAction)
        if change.action.path == path:
            return b"" if change.action.after is None else plan.contents[change.action.after]
    return None


def kinds(plan: Plan) -> list[FindingKind]:
    return [finding.kind for finding in plan.findings]


def block(*lines: str) -> bytes:
    begin = "# BEGIN remedy (this block is replaced as a whole)"
    return "\n".join([begin, *lines, "# END remedy", ""]).encode()


def port(device: str, layer: str, state: str = "ACTIVE") -> RdmaPort:
    return RdmaPort(device, 1, state, "LinkUp", 400.0, layer, "", (), {})


UCX = "/etc/ucx/ucx.conf"


def findings(
    state: HostState, kind: FindingKind, spec: EnvironmentSpec | None = None
) -> list[Finding]:
    return [f for f in planned(state, spec=spec).findings if f.kind is kind]
