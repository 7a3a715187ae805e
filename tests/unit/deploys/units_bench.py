"""Hosts with lines in files of units, and what is said of them."""

from __future__ import annotations

from remedy.deploys.unit_network import UnitNetworkSpec
from remedy.plan import Finding, make_plan
from remedy.probe import HostState, Kernel, Mention, Unit
from tests.unit.build import WHEN, fleet, host_state, record, with_section

ETC, RUN, USR = "/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"
SERVICES = ("slurmd.service", "kubelet.service")


def host(*lines: tuple[str, str]) -> HostState:
    """Return a host with slurmd whose files of units have these lines."""
    units = {n: Unit(name=n, load="loaded", active="active", enabled="enabled") for n in SERVICES}
    mentions = tuple(
        Mention(path=path, line=number, text=text) for number, (path, text) in enumerate(lines, 1)
    )
    return host_state("a", "10.0.0.1").model_copy(update={"mentions": mentions, "units": units})


def said(*lines: tuple[str, str], accept: tuple[str, ...] = (), memory: int = 0) -> list[Finding]:
    spec = with_section("unit_network", UnitNetworkSpec(accept=accept))
    state = host(*lines)
    if memory:
        state = state.model_copy(update={"kernel": record(Kernel, memory=memory)})
    hosts = fleet(state, host_state("b", "10.0.0.2"), host_state("c", "10.0.0.3"), spec=spec)
    plan = make_plan(hosts, WHEN, only="unit_network")
    assert plan.changes == ()
    return [finding for finding in plan.findings if finding.host == "a"]
