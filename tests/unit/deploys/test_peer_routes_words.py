"""What is said of routes and rules to peers, and which commands are run."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.deploys._ways import route_of, rule_of
from remedy.deploys.peer_routes import observation, promise
from remedy.plan import CommandAction
from remedy.probe import (
    Address,
    FibRoute,
    HostState,
    Interface,
    Names,
    Network,
    PolicyRule,
    Routing,
)
from tests.unit.build import record
from tests.unit.deploys.ways_bench import LINK, MAIN, PEER, THIRD, host, routing, rule
from tests.unit.deploys.words_bench import Run, Said, planned, run, said

ACCEPT = 'to accept it, add to peer_routes.accept in remedy.yaml: "{}"'
OWN = "cluster address: 10.0.0.1 on eth0"
SENT = "what this host sends to b"


def a(*routes: str, rules: tuple[PolicyRule, ...] = (MAIN,)) -> HostState:
    return host("a", "10.0.0.1", routing(*routes, rules=rules))


def plain(priority: int, action: str, destination: str) -> PolicyRule:
    text = f"from all to {destination} priority {priority} {action}"
    return rule(priority, action, destination=destination).model_copy(update={"text": text})


def stays(kind: str, title: str, text: str, fix: str, noun: str = "route") -> Said:
    return Said(kind, title, (f"{noun}: {text}", OWN), fix)


UNREACHABLE, BIRD = f"unreachable {PEER} proto boot", f"blackhole {PEER} proto bird"
LEAVES = f"{PEER} dev lo proto boot"
SOURCE = f"{PEER} dev eth0 proto boot src 192.0.2.9"
VIA = f"{PEER} via 10.0.0.99 dev eth0 proto boot"
MANY = f"broadcast {PEER} dev eth0 proto boot"
LOCAL = f"local {PEER} dev lo table local proto boot"
BY_LO = f"{SENT} leaves by lo, and not by eth0, which is in their network"
RULE = plain(9, "blackhole", PEER)
FOR_PORTS = rule(9, "blackhole", conditions=("dport 8000-8090",)).model_copy(
    update={"text": "from all dport 8000-8090 priority 9 blackhole"}
)


@pytest.mark.parametrize(
    ("state", "settings", "expected"),
    [
        (a(LINK, UNREACHABLE), {}, Said("drift", f"a route drops {SENT}", (f"route: {UNREACHABLE}",), "")),
        (a(LINK, UNREACHABLE), {"repair": False}, stays(
            "report", f"a route drops {SENT}", UNREACHABLE,
            f"If nothing needs it: ip -4 route del {UNREACHABLE}; {ACCEPT.format(UNREACHABLE)}",
        )),
        (a(LINK, BIRD), {}, stays(
            "blocked", f"a route drops {SENT}", BIRD,
            f"If nothing needs it: ip -4 route del {BIRD}; {ACCEPT.format(BIRD)}",
        )),
        (a(LINK, LEAVES), {}, Said("drift", BY_LO, (f"route: {LEAVES}",), "")),
        (a(LINK, SOURCE), {}, Said(
            "drift", f"{SENT} has the source 192.0.2.9, which is not in their network", (f"route: {SOURCE}",),
            "",
        )),
        (a(LINK, VIA), {}, stays(
            "unknown", f"{SENT} goes through 10.0.0.99, though they are on the same network", VIA,
            f"If that is right, {ACCEPT.format(VIA)}",
        )),
        (a(LINK, MANY), {}, Said(
            "drift", "a route makes b an address of many hosts (broadcast), so no TCP gets there",
            (f"route: {MANY}",), "",
        )),
        (a(LINK, LOCAL, rules=(rule(0, table="local"), MAIN)), {}, Said(
            "drift", "this host keeps what it sends to b for itself", (f"route: {LOCAL}",), "",
        )),
        (a(LINK, rules=(RULE, MAIN)), {}, Said(
            "drift", f"a routing rule drops {SENT}", (f"routing rule: {RULE.text}",), "",
        )),
        (a(LINK, rules=(FOR_PORTS, MAIN)), {}, stays(
            "unknown", f"a routing rule may drop {SENT},c", FOR_PORTS.text,
            f"If that is right, {ACCEPT.format(FOR_PORTS.text)}", "routing rule",
        )),
        (a(), {}, Said(
            "drift", "the route of the cluster's network is gone",
            ("no route 10.0.0.0/24 on eth0, which has 10.0.0.1",), "",
        )),
        (a(), {"repair": False}, Said(
            "report", "the route of the cluster's network is gone",
            ("no route 10.0.0.0/24 on eth0, which has 10.0.0.1",), f"Add it: ip -4 route add {LINK}",
        )),
        (host("a", "10.0.0.1", routing(), up=False), {}, Said(
            "blocked", "eth0, which has the cluster address, is down, so no peer is reached",
            ("10.0.0.1 is on eth0: state DOWN",), "Take it up: ip link set dev eth0 up",
        )),
    ],
)  # fmt: skip
def test_what_an_operator_reads(state: HostState, settings: dict[str, Any], expected: Said) -> None:
    states = (state, host("b", PEER), host("c", THIRD))
    assert said(planned("peer_routes", *states, **settings)) == [expected]
    if "peer_routes.accept" in expected.fix:
        settings = {**settings, "accept": (expected.fix.split('"')[1],)}
        assert said(planned("peer_routes", *states, **settings)) == []


def far(*routes: str, kind: str = "physical") -> list[HostState]:
    """Return hosts of which b is in another network, and a has one more interface."""
    state = a(LINK, *routes)
    assert isinstance(state.network, Network)
    more = record(Interface, name="x1", kind=kind, up=True, running=True)
    network = state.network.model_copy(update={"interfaces": (*state.network.interfaces, more)})
    return [state.model_copy(update={"network": network}), host("b", "10.7.0.2"), host("c", THIRD)]


def test_a_peer_beyond_a_router() -> None:
    gone = Said(
        "blocked", "there is no route to b", ("ip route shows none", OWN),
        "Add it: ip route add NETWORK via GATEWAY",
    )  # fmt: skip
    assert said(planned("peer_routes", *far())) == [gone]
    lost = "10.7.0.2 dev x1 proto boot"
    assert said(planned("peer_routes", *far(lost, kind="dummy"))) == [
        Said("drift", f"{SENT} goes to x1, which leads nowhere", (f"route: {lost}",), ""),
        gone,
    ]
    for route in (lost, "10.7.0.2 dev eth0 proto boot", "10.7.0.2 dev gone proto boot"):
        assert said(planned("peer_routes", *far(route))) == []


def test_a_table_of_its_own_is_named_with_its_rule() -> None:
    chosen = rule(9, table="7", source="10.0.0.1")
    route = "default dev mgmt table 7 proto static"
    (found,) = said(
        planned(
            "peer_routes", a(LINK, route, rules=(chosen, MAIN)), host("b", PEER), host("c", THIRD)
        )
    )
    assert found == Said(
        "blocked", f"{SENT},c leaves by mgmt, and not by eth0, which is in their network",
        (f"route: {route}", "routing rule: from 10.0.0.1 priority 9", OWN),
        f"If nothing needs it: ip -4 rule del from 10.0.0.1 priority 9; {ACCEPT.format(route)}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("route", "match"),
    [
        (UNREACHABLE, "table main type unreachable exact 10.0.0.2/32"),
        ("blackhole 10.0.0.2/31 proto static", "table main type blackhole exact 10.0.0.2/31"),
        (SOURCE, "table main type unicast exact 10.0.0.2/32 dev eth0"),
        (f"{PEER} via 127.0.0.9 dev lo proto boot metric 5",
         "table main type unicast exact 10.0.0.2/32 dev lo via 127.0.0.9 metric 5"),
    ],
)  # fmt: skip
def test_a_route_is_removed_under_guard(route: str, match: str) -> None:
    state = a(LINK, route)
    plan = planned("peer_routes", state, host("b", PEER), host("c", THIRD))
    assert run(plan) == [
        Run(
            f"remove the route: {route}", "medium", True, "",
            f'if [ -n "$(ip -4 route show {match} 2>/dev/null)" ]; then echo there; else echo absent; fi',
            "there", "absent", f"ip -4 route del {route}", f"ip -4 route add {route}",
        )
    ]  # fmt: skip
    (change,) = plan.for_host("a")
    assert observation(state, change) == "there"
    after = promise(state, change)
    assert observation(after, change) == "absent"
    assert isinstance(change.action, CommandAction)
    assert promise(after, change.model_copy(update={"action": change.action.inverse()})) == state


def test_the_route_of_the_network_comes_back_under_guard() -> None:
    plan = planned("peer_routes", a(), host("b", PEER), host("c", THIRD))
    assert run(plan) == [
        Run(
            f"add the route: {LINK}", "medium", True, "",
            'if [ -n "$(ip -4 route show table main type unicast exact 10.0.0.0/24 dev eth0 2>/dev/null)" ]; '
            "then echo there; else echo absent; fi",
            "absent", "there", f"ip -4 route add {LINK}", f"ip -4 route del {LINK}",
        )
    ]  # fmt: skip
    (change,) = plan.for_host("a")
    after = promise(a(), change)
    assert after.routing == routing(LINK)
    assert (observation(a(), change), observation(after, change)) == ("absent", "there")


def test_a_rule_is_removed_under_guard_and_counted_by_its_priority() -> None:
    other = plain(9, "blackhole", "192.0.2.1")
    state = a(LINK, rules=(RULE, other, MAIN))
    plan = planned("peer_routes", state, host("b", PEER), host("c", THIRD))
    assert run(plan) == [
        Run(
            f"remove the routing rule: {RULE.text}", "medium", True, "",
            "ip -4 rule show | grep -c '^9:'", "2", "1",
            f"ip -4 rule del {RULE.text}", f"ip -4 rule add {RULE.text}",
        )
    ]  # fmt: skip
    (change,) = plan.for_host("a")
    assert observation(state, change) == "2"
    after = promise(state, change)
    assert observation(after, change) == "1"
    assert isinstance(after.routing, Routing)
    assert after.routing.rules == (other, MAIN)


@pytest.mark.parametrize(
    ("prefix", "on_link", "is_missed"), [(24, PEER, True), (30, PEER, True), (31, "10.0.0.0", False)]
)  # fmt: skip
def test_which_networks_have_a_route_of_the_kernels(
    prefix: int, on_link: str, is_missed: bool
) -> None:
    state = a("default dev eth0 proto dhcp")
    assert isinstance(state.network, Network)
    (link,) = state.network.interfaces
    own = Address(address="10.0.0.1", prefix=prefix, scope="global")
    network = state.network.model_copy(
        update={"interfaces": (link.model_copy(update={"addresses": (own,)}),)}
    )
    found = said(
        planned("peer_routes", state.model_copy(update={"network": network}), host("b", on_link))
    )
    assert [f.title for f in found if "is gone" in f.title] == [
        "the route of the cluster's network is gone"
    ] * is_missed
    alone = said(planned("peer_routes", a("default dev eth0"), host("b", "10.9.0.9")))
    assert not [f for f in alone if "is gone" in f.title]


def test_words_of_a_route_and_a_rule_are_read_as_typed() -> None:
    route = route_of(
        [
            "default",
            "via",
            "10.0.0.9",
            "dev",
            "eth0",
            "table",
            "7",
            "proto",
            "static",
            "metric",
            "20",
            "src",
            "10.0.0.1",
        ]
    )
    assert (route.kind, route.destination, route.gateway) == ("unicast", "default", "10.0.0.9")
    assert (route.interface, route.table, route.protocol) == ("eth0", "7", "static")
    assert (route.metric, route.source, route.plain) == (20, "10.0.0.1", True)
    lost = route_of(["blackhole", "10.0.0.0/8"])
    assert (lost.kind, lost.destination, lost.gateway) == ("blackhole", "10.0.0.0/8", "")
    assert (lost.interface, lost.table, lost.protocol, lost.metric, lost.source) == (
        "",
        "main",
        "",
        0,
        "",
    )
    assert (lost.plain, lost.text) == (True, "blackhole 10.0.0.0/8")
    rule = rule_of(["from", "10.0.0.1", "to", "10.0.0.2", "priority", "9", "prohibit"])
    assert rule == PolicyRule(
        priority=9, source="10.0.0.1", destination="10.0.0.2", inverted=False, conditions=(),
        action="prohibit", table="", suppress=-1, plain=True,
        text="from 10.0.0.1 to 10.0.0.2 priority 9 prohibit",
    )  # fmt: skip
    short = rule_of(["priority", "9", "unreachable"])
    assert (short.source, short.destination, short.action) == ("all", "all", "unreachable")


# ---- IPv6

SIX, OWN_SIX = "fd00::2", "fd00::1"


def typed(text: str) -> FibRoute:
    """Return the route of IPv6 that `ip` shows like this."""
    kind, destination = text.split()[:2] if text[:2] != "fd" else ("unicast", text.split()[0])
    name = text.partition("dev ")[2]
    return FibRoute(
        kind=kind, destination=destination, gateway="", interface=name, table="main", protocol="",
        metric=0, source="", plain=True, text=text,
    )  # fmt: skip


def over_ipv6(*routes: str, rules: tuple[PolicyRule, ...] = (MAIN,)) -> list[HostState]:
    """Return hosts that reach each other over IPv6, of which a has these routes."""
    first = a(LINK)
    assert isinstance(first.network, Network)
    assert isinstance(first.routing, Routing)
    (link,) = first.network.interfaces
    own = Address(address=OWN_SIX, prefix=64, scope="global")
    links = (link.model_copy(update={"addresses": (*link.addresses, own)}),)
    beyond = Routing(routes=tuple(map(typed, routes)), rules=rules, neighbours=(), ipsec=())
    update = {
        "network": first.network.model_copy(update={"interfaces": links}),
        "names": record(Names, peers={"b": (SIX,)}),
        "routing": first.routing.model_copy(update={"ipv6": beyond}),
    }
    return [first.model_copy(update=update), host("b", PEER), host("c", THIRD)]


WHY = "over IPv6: b resolves to fd00::2 on a"
NEEDLESS = "If nothing needs it: ip -6 {} del {}; " + ACCEPT


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (over_ipv6(), Said(
            "report", "there is no route to b over IPv6", ("ip -6 route shows none", WHY),
            "Add it: ip -6 route add NETWORK via GATEWAY",
        )),
        (over_ipv6("unreachable fd00::/64 dev lo"), Said(
            "report", f"a route drops {SENT} over IPv6", ("unreachable fd00::/64 dev lo", WHY),
            NEEDLESS.format("route", *["unreachable fd00::/64 dev lo"] * 2),
        )),
        (over_ipv6("local fd00::2 dev lo"), Said(
            "report", f"a route keeps for this host {SENT} over IPv6", ("local fd00::2 dev lo", WHY),
            NEEDLESS.format("route", *["local fd00::2 dev lo"] * 2),
        )),
        (over_ipv6("fd00::/64 dev eth0", rules=(plain(9, "prohibit", SIX), MAIN)), Said(
            "report", f"a rule drops {SENT} over IPv6",
            ("routing rule: from all to fd00::2 priority 9 prohibit", WHY),
            NEEDLESS.format("rule", *["from all to fd00::2 priority 9 prohibit"] * 2),
        )),
        (over_ipv6("fd00::/64 dev eth0", rules=(FOR_PORTS, MAIN)), Said(
            "report", f"a rule may drop {SENT} over IPv6", (f"routing rule: {FOR_PORTS.text}", WHY),
            NEEDLESS.format("rule", FOR_PORTS.text, FOR_PORTS.text),
        )),
    ],
)  # fmt: skip
def test_what_is_said_of_ipv6(states: list[HostState], expected: Said) -> None:
    plan = planned("peer_routes", *states)
    assert said(plan) == [expected]
    assert plan.changes == ()
    if "peer_routes.accept" in expected.fix:
        accept = (expected.fix.split('"')[1],)
        assert said(planned("peer_routes", *states, accept=accept)) == []
    assert said(planned("peer_routes", *over_ipv6("fd00::/64 dev eth0"))) == []
