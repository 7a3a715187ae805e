"""Hosts with routes, neighbours and disciplines beside two peers, and what is said of them."""

from __future__ import annotations

from remedy.deploys._ways import route_of
from remedy.plan import Plan, make_plan
from remedy.probe import (
    HostState,
    Network,
    PolicyRule,
    Queueing,
    Routing,
)
from tests.unit.build import WHEN, fleet, host_state

LINK = "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1"
PEER, THIRD = "10.0.0.2", "10.0.0.3"


def rule(
    priority: int,
    action: str = "lookup",
    table: str = "main",
    *,
    source: str = "all",
    destination: str = "all",
    conditions: tuple[str, ...] = (),
    suppress: int = -1,
    inverted: bool = False,
    goto: int = 0,
) -> PolicyRule:
    """Return a rule; its text has what the look-up reads of it."""
    text = f"goto {goto} priority {priority}" if goto else f"from {source} priority {priority}"
    return PolicyRule(
        priority=priority, source=source, destination=destination, inverted=inverted,
        conditions=conditions, action="goto" if goto else action, table=table if action == "lookup" else "",
        suppress=suppress, plain=not (conditions or inverted or goto), text=text,
    )  # fmt: skip


MAIN = rule(32766)


def routing(*routes: str, rules: tuple[PolicyRule, ...] = (MAIN,)) -> Routing:
    """Return the routing of a host with these routes."""
    return Routing(
        routes=tuple(route_of(text.split()) for text in routes),
        rules=rules,
        neighbours=(),
        ipsec=(),
    )


def host(
    name: str,
    address: str,
    of: Routing | None = None,
    *,
    arp: bool = True,
    up: bool = True,
    xdp: str = "",
    queueing: Queueing | None = None,
) -> HostState:
    """Return a host with a MAC address, a network and routes."""
    state = host_state(name, address)
    assert isinstance(state.network, Network)
    update = {
        "kind": "physical", "mac": f"02:00:00:00:00:0{address[-1]}", "up": up, "running": up, "arp": arp,
        "xdp": xdp, "discipline": "fq_codel", "state": "UP" if up else "DOWN",
    }  # fmt: skip
    interface = state.network.interfaces[0].model_copy(update=update)
    network = state.network.model_copy(update={"interfaces": (interface,)})
    usual = routing(f"10.0.0.0/24 dev eth0 proto kernel scope link src {address}")
    return state.model_copy(
        update={
            "network": network,
            "routing": of or usual,
            "queueing": queueing or Queueing(disciplines=(), filters=()),
        }
    )


def plan(remedy: str, first: HostState) -> Plan:
    """Return the plan of one remedy for a host with two peers."""
    states = (first, host("b", PEER), host("c", THIRD))
    return make_plan(fleet(*states), WHEN, only=remedy)


def said(of: Plan) -> list[tuple[str, str]]:
    return [(f.kind.value, f.title) for f in of.findings if f.host in ("a", None)]
