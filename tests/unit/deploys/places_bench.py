"""Hosts with lines that set variables in files of every kind."""

from __future__ import annotations

from remedy.deploys.environment import EnvironmentSpec
from remedy.plan import Finding, FindingKind, Fleet, make_plan
from remedy.probe import (
    Address,
    File,
    HostState,
    Interface,
    LoginSession,
    Mention,
    Network,
    RdmaPort,
    ServiceVariable,
)
from tests.unit.build import WHEN, fleet, host_state, record, with_section

HOME = "/home/trainer"


def host(
    *lines: tuple[str, str],
    session: str = "",
    services: tuple[ServiceVariable, ...] = (),
    rdma: tuple[RdmaPort, ...] = (),
) -> HostState:
    """Return a host whose cluster interface is eno2, with these lines found in files."""
    contents = {"/etc/environment": session.encode()}
    files = {
        path: File(
            path=path, real_path=path, exists=path in contents, content=contents.get(path, b"")
        )
        for path in ("/etc/environment", "/etc/nccl.conf", "/etc/profile.d/remedy.sh")
    }
    address = Address(address="10.0.0.1", prefix=24, scope="global")
    network = record(
        Network,
        interfaces=(
            record(Interface, name="eno2", up=True, running=True, kind="", addresses=(address,)),
        ),
    )
    mentions = tuple(
        Mention(path=path, line=at, text=text) for at, (path, text) in enumerate(lines, 1)
    )
    return host_state("a", "10.0.0.1", files=files).model_copy(
        update={
            "network": network,
            "mentions": mentions,
            "session": record(LoginSession, homes=(HOME,)),
            "service_environments": services,
            "environment": {},
            "rdma": rdma,
        }
    )


def findings(
    state: HostState, *kinds: FindingKind, spec: EnvironmentSpec | None = None
) -> list[Finding]:
    found: Fleet = fleet(state, spec=with_section("environment", spec or EnvironmentSpec()))
    plan = make_plan(found, WHEN, only="environment")
    return [f for f in plan.findings if f.kind in kinds]
