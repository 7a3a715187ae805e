"""Ways that look right by their routes alone: the interface itself, several ways of a route, marks, metrics."""

from __future__ import annotations

from typing import Any

import pytest

from remedy.probe import Firewalls, HostState, Interface, Network, PolicyRule, Routing
from remedy.probe.routing import _route
from tests.unit.build import NO_FIREWALL, record
from tests.unit.deploys.ways_bench import LINK, MAIN, PEER, THIRD, host, routing, rule
from tests.unit.deploys.words_bench import Said, planned, said

OWN = "local 10.0.0.1 dev eth0 table local proto kernel scope host src 10.0.0.1"
OTHER = "local 192.0.2.1 dev mgmt table local proto kernel scope host src 192.0.2.1"
FIRST = rule(0, table="local")
MARKED = rule(9, table="7", conditions=("fwmark 0x1",))
LOST = "blackhole default table 7"


def of(state: HostState, **settings: Any) -> list[Said]:
    return said(planned("peer_routes", state, host("b", PEER), host("c", THIRD), **settings))


def with_links(state: HostState, *further: Interface, master: str = "") -> HostState:
    """Return a host with more interfaces, whose cluster interface is a member of one of them."""
    assert isinstance(state.network, Network)
    own = state.network.interfaces[0].model_copy(update={"master": master})
    network = state.network.model_copy(update={"interfaces": (own, *further)})
    return state.model_copy(update={"network": network})


def link(name: str, kind: str = "physical", *, up: bool = True, address: str = "") -> Interface:
    own = with_address(address) if address else ()
    made: Interface = record(
        Interface,
        name=name,
        kind=kind,
        up=up,
        running=up,
        state="UP" if up else "DOWN",
        addresses=own,
    )
    return made


def with_address(address: str) -> tuple[object, ...]:
    network = host("x", address).network
    assert isinstance(network, Network)
    return network.interfaces[0].addresses


# ---- the interface itself


@pytest.mark.parametrize(
    ("above", "kind", "words"),
    [
        (link("br0", "bridge"), "unknown", "is a member of the bridge br0, which takes what peers send"),
        (link("br0", "bridge", up=False), "blocked", "of the bridge br0, so that no peer reaches it"),
        (link("bond0", "bond"), "unknown", "is a member of the bond bond0, which takes what peers send"),
        (link("ovs-system", "openvswitch"), "blocked", "so that no peer reaches it"),
        (link("blue", "vrf"), "unknown", "is in the VRF blue: outside of it no peer is reached"),
    ],
)  # fmt: skip
def test_a_member_hands_on_what_arrives(above: Interface, kind: str, words: str) -> None:
    state = with_links(host("a", "10.0.0.1"), above, master=above.name)
    (found,) = of(state)
    assert found.kind == kind
    assert words in found.title
    assert found.evidence[0] == f"ip link: eth0 master {above.name}"
    assert "ip link set dev eth0 nomaster" in found.fix
    accepted = of(state, accept=(f"eth0 master {above.name}",))
    assert accepted == []


def test_an_address_without_its_route_is_not_the_hosts() -> None:
    state = with_links(
        host("a", "10.0.0.1", routing(LINK, OTHER, rules=(FIRST, MAIN))),
        link("mgmt", address="192.0.2.1"),
    )
    (found,) = of(state)
    assert found.kind == "blocked"
    assert "does not take packets for 10.0.0.1" in found.title
    assert "ip route add local 10.0.0.1 dev eth0 table local" in found.fix
    whole = routing(LINK, OTHER, OWN, rules=(FIRST, MAIN))
    assert of(state.model_copy(update={"routing": whole})) == []


@pytest.mark.parametrize(
    ("first", "names"),
    [
        (rule(1, "blackhole", destination="10.0.0.0/24"), "b,c"),
        (rule(1, "blackhole", conditions=("iif eth0",)), "b,c"),
        (rule(1, "prohibit", source=PEER, conditions=("iif eth0",)), "b"),
        (rule(1, "blackhole", conditions=("iif mgmt",)), ""),
        (rule(1, "blackhole", source="192.0.2.0/24"), ""),
        (rule(1, "blackhole", conditions=("iif eth0", "ipproto udp")), ""),
    ],
)
def test_a_rule_before_the_table_local_takes_what_arrives(first: PolicyRule, names: str) -> None:
    state = host("a", "10.0.0.1", routing(LINK, OWN, rules=(first, rule(2, table="local"), MAIN)))
    titles = [f.title for f in of(state) if "does not take packets" in f.title]
    assert titles == (
        [f"this host does not take packets for 10.0.0.1, its cluster address, from {names}"]
        if names
        else []
    )


# ---- several ways, and what a route does to packets


def several(*interfaces: str) -> Routing:
    text = " ".join(f"nexthop dev {name} weight 1" for name in interfaces)
    route = routing(LINK).routes[0].model_copy(
        update={"destination": PEER, "interface": "", "plain": False, "text": f"{PEER} proto boot {text}"}
    )  # fmt: skip
    usual = routing(LINK)
    return usual.model_copy(update={"routes": (*usual.routes, route)})


def test_a_part_of_the_packets_is_lost_where_one_way_of_several_is_wrong() -> None:
    state = with_links(host("a", "10.0.0.1", several("eth0", "mgmt")), link("mgmt"))
    (found,) = of(state)
    assert found.kind == "blocked"
    assert found.title.startswith("a part of what this host sends to b leaves by mgmt")
    assert "nexthop dev mgmt" in found.evidence[0]
    both = with_links(
        host("a", "10.0.0.1", several("eth0", "eth1")), link("eth1", address="10.0.0.101")
    )
    assert of(both) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"encap": "mpls", "dst_labels": "16"}, "a route wraps what this host sends to b (mpls)"),
        ({"metrics": [{"mtu": 600}]}, "a route cuts what this host sends to b into packets of 600 bytes"),
    ],
)  # fmt: skip
def test_what_a_route_does_to_packets_is_not_passed_over(
    more: dict[str, object], words: str
) -> None:
    route = _route({"dst": PEER, "dev": "eth0", "protocol": "boot", **more})
    usual = routing(LINK)
    state = host("a", "10.0.0.1", usual.model_copy(update={"routes": (*usual.routes, route)}))
    assert isinstance(state.network, Network)
    wide = state.network.interfaces[0].model_copy(update={"mtu": 1500})
    network = state.network.model_copy(update={"interfaces": (wide,)})
    (found,) = of(state.model_copy(update={"network": network}))
    assert found.kind == "unknown"
    assert words in found.title


# ---- marks


def marking(text: str) -> Firewalls:
    return NO_FIREWALL.model_copy(update={"iptables": text})


MANGLE = "*mangle\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n{}\nCOMMIT\n"
MARKS = MANGLE.format("-A OUTPUT -d 10.0.0.0/24 -p tcp -j MARK --set-xmark 0x1/0xffffffff")


@pytest.mark.parametrize(
    ("rules", "is_named"),
    [
        (MARKS, True),
        (MANGLE.format("-A OUTPUT -d 192.0.2.0/24 -p tcp -j MARK --set-xmark 0x1/0xffffffff"), False),
        (MANGLE.format("-A PREROUTING -p tcp -j MARK --set-xmark 0x1/0xffffffff"), False),
        (MANGLE.format("-A OUTPUT -p tcp -j MARK --set-xmark 0x2/0xffffffff"), False),
        (MANGLE.format("-A OUTPUT -p tcp -m tcp --dport 443 -j MARK --set-xmark 0x1/0xffffffff"), False),
        ("", False),
    ],
)  # fmt: skip
def test_a_rule_for_a_mark_counts_where_packets_get_that_mark(rules: str, is_named: bool) -> None:
    state = host("a", "10.0.0.1", routing(LINK, LOST, rules=(MARKED, MAIN)))
    found = of(state.model_copy(update={"firewalls": marking(rules)}))
    assert [f.kind for f in found] == (["unknown"] if is_named else [])
    if is_named:
        assert "of packets with the mark 0x1" in found[0].title
        assert found[0].evidence[0] == f"route: {LOST}"


def test_a_rule_for_packets_without_a_mark_is_for_those_of_jobs() -> None:
    unmarked = rule(9, "blackhole", conditions=("fwmark 0x0/0xff",))
    (found, *_) = of(host("a", "10.0.0.1", routing(LINK, rules=(unmarked, MAIN))))
    assert found.kind == "blocked"
    assert "drops what this host sends to b,c" in found.title


# ---- the source


CLOSED = "*filter\n:INPUT ACCEPT\n-A INPUT -s 192.0.2.1 -j DROP\nCOMMIT\n"


@pytest.mark.parametrize(("rules", "kind"), [("", "report"), (CLOSED, "blocked")])
def test_a_host_that_connects_from_another_address_is_named(rules: str, kind: str) -> None:
    other = "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.99"
    state = host("a", "10.0.0.1", routing(other))
    assert isinstance(state.network, Network)
    own = state.network.interfaces[0]
    addresses = (*own.addresses, *with_address("10.0.0.99"))
    network = state.network.model_copy(
        update={"interfaces": (own.model_copy(update={"addresses": addresses}),)}
    )
    walled = host("b", PEER).model_copy(update={"firewalls": marking(rules)})
    changed = state.model_copy(update={"network": network})
    (found,) = said(planned("peer_routes", changed, walled))
    assert found.kind == kind
    assert found.title.startswith("this host connects from 10.0.0.99, and not from 10.0.0.1")
    assert found.evidence[0] == f"route: {other}"
    assert "ip route change 10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1" in found.fix
