"""Hosts with several interfaces in one network."""

from __future__ import annotations

from remedy.deploys.rails import FILE, SETTINGS, RailsSpec
from remedy.plan import Plan, make_plan
from remedy.probe import File, Interface, Network, Sysctls
from remedy.probe.network import Address, RoutingRule
from tests.unit.build import WHEN, fleet, host_state, record, with_section


def rail(name: str, address: str, *, prefix: int = 24, running: bool = True) -> Interface:
    local = Address(address=address, prefix=prefix, scope="global")
    rail: Interface = record(Interface, name=name, up=True, running=running, addresses=(local,))
    return rail


def settings(**values: str) -> dict[str, str]:
    """Return the kernel's defaults for two rails, and these; ``all_rp_filter`` is that of "all"."""
    names = {f"{name}_{what}": "0" for name in ("all", "a", "b") for what in SETTINGS} | values
    return {f"net.ipv4.conf.{name.replace('_', '.', 1)}": value for name, value in names.items()}


def plan_of(
    *rails: Interface,
    live: dict[str, str],
    rules: tuple[str, ...] = (),
    spec: RailsSpec | None = None,
) -> Plan:
    network = Network(
        interfaces=rails or (rail("a", "10.0.0.1"), rail("b", "10.0.0.2")),
        routes=(),
        rules=tuple(RoutingRule(source=source, table="7") for source in rules),
    )
    facts = {"network": network, "sysctls": Sysctls(live=live, persisted=(), unread=())}
    file = File(path=FILE.path, real_path=FILE.path, exists=False)
    state = host_state("gpu01", "10.0.0.1", files={FILE.path: file}).model_copy(update=facts)
    hosts = fleet(state, spec=with_section("rails", spec or RailsSpec()))
    return make_plan(hosts, WHEN, only="rails")
