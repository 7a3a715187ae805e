"""Rules and tables looked up as the kernel does, and what is said of the ways to peers."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.deploys._ways import NO_ROUTE, Way, ways
from remedy.deploys.ipsec import policy_of
from remedy.firewall import spans
from remedy.plan import FindingKind, make_plan
from remedy.probe import (
    Discipline,
    Neighbour,
    Queueing,
    Routing,
    TrafficFilter,
)
from tests.unit.build import WHEN, fleet
from tests.unit.deploys.ways_bench import LINK, MAIN, PEER, THIRD, host, plan, routing, rule, said


def way(of: Routing, peer: str = PEER, source: str | None = "10.0.0.1") -> Way:
    """Return the one way to a peer."""
    (only,) = ways(of, spans.of_networks([peer]), source)
    return only


def outcome(of: Routing, peer: str = PEER, source: str | None = "10.0.0.1") -> str:
    found = way(of, peer, source)
    return found.route.interface if found.outcome == "unicast" and found.route else found.outcome


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (routing(LINK), "eth0"),
        (routing(), NO_ROUTE),
        (routing(LINK, f"unreachable {PEER} proto boot"), "unreachable"),
        (routing(LINK, "blackhole 10.0.0.0/30 proto boot"), "blackhole"),
        (routing(LINK, "prohibit 10.0.0.0/16 proto boot"), "eth0"),
        (routing(LINK, f"{PEER} dev docker0 proto boot"), "docker0"),
        (routing(LINK, f"local {PEER} dev lo table local", rules=(rule(0, table="local"), MAIN)), "local"),
        (routing("default dev eth1 metric 20", "default dev eth0 metric 10"), "eth0"),
        (routing(LINK, rules=(rule(9, "prohibit", destination=PEER), MAIN)), "prohibit"),
        (routing(LINK, rules=(rule(9, "prohibit", destination=THIRD), MAIN)), "eth0"),
        (routing(LINK, "default dev eth1 table 7", rules=(rule(9, table="7"), MAIN)), "eth1"),
        (routing(LINK, "throw 10.0.0.0/8 table 7", rules=(rule(9, table="7"), MAIN)), "eth0"),
        (routing(LINK, f"throw {PEER} proto boot"), NO_ROUTE),
        (routing(LINK, "default dev wg0 table 7", rules=(rule(8, suppress=0), rule(9, table="7"))), "eth0"),
        (routing("default dev eth1", rules=(rule(8, suppress=0),)), NO_ROUTE),
        (routing(LINK, rules=(rule(5, goto=32766), rule(9, "blackhole"), MAIN)), "eth0"),
        (routing(LINK, rules=(rule(9, "blackhole", conditions=("iif eth3",)), MAIN)), "eth0"),
        (routing(LINK, rules=(rule(9, "blackhole", conditions=("iif lo",)), MAIN)), "blackhole"),
        (routing(LINK, rules=(rule(9, "blackhole", conditions=("fwmark 0x1",)), MAIN)), "eth0"),
        (
            routing(LINK, rules=(rule(9, "blackhole", conditions=("fwmark 0x1",), inverted=True), MAIN)),
            "blackhole",
        ),
        (routing(LINK, rules=(rule(9, "blackhole", conditions=("ipproto udp",)), MAIN)), "eth0"),
    ],
)  # fmt: skip
def test_the_kernel_would_go_this_way(of: Routing, expected: str) -> None:
    assert outcome(of) == expected


def test_where_there_is_no_way_the_route_that_left_it_to_other_tables_is_named() -> None:
    of = routing(LINK, f"throw {PEER} proto boot")
    two = spans.of_networks([PEER, THIRD])
    found = ways(of, two, "10.0.0.1")
    assert [(way.outcome, way.route and way.route.kind) for way in found] == [
        ("unicast", "unicast"),
        (NO_ROUTE, "throw"),
    ]
    without = routing(rules=(MAIN,))
    assert [way.route for way in ways(without, two, "10.0.0.1")] == [None]


def test_a_rule_by_source_is_for_bound_sockets_only() -> None:
    of = routing(LINK, rules=(rule(9, "unreachable", source="10.0.0.1"), MAIN))
    assert outcome(of) == "unreachable"
    assert outcome(of, source=None) == "eth0"


def test_a_rule_for_some_ports_leaves_both_ways_open() -> None:
    of = routing(LINK, rules=(rule(9, "blackhole", conditions=("dport 8000-8090",)), MAIN))
    found = ways(of, spans.of_networks([PEER]), "10.0.0.1")
    assert [(w.outcome, w.certain) for w in found] == [("blackhole", False), ("unicast", True)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["unreachable", "throw", ""]), st.integers(0, 31), st.integers(28, 32)
        ),
        max_size=6,
    )
)
def test_together_they_go_where_each_goes_alone(routes: list[tuple[str, int, int]]) -> None:
    texts = [
        f"{kind} {IPv4Address(0x0A000000 + (at & -(1 << 32 - size)))}/{size} {'' if kind else f'dev d{at}'}"
        for kind, at, size in routes
    ]
    of = routing(LINK, *dict.fromkeys(" ".join(text.split()) for text in texts))
    peers = spans.of_networks(["10.0.0.0/27"])
    together = {
        number: (w.outcome, w.route.destination if w.route else "")
        for w in ways(of, peers, None)
        for low, high in w.peers
        for number in range(low, high + 1)
    }
    assert len(together) == 32
    for number, ending in together.items():
        alone = way(of, str(IPv4Address(number)), None)
        assert ending == (alone.outcome, alone.route.destination if alone.route else "")


# ---- what is said of a host


def test_a_healthy_host_has_nothing_to_say() -> None:
    for remedy in ("peer_routes", "neighbours", "ipsec", "traffic_control"):
        assert said(plan(remedy, host("a", "10.0.0.1"))) == []


@pytest.mark.parametrize(
    ("routes", "kind", "words"),
    [
        ((LINK, f"unreachable {PEER} proto boot"), "drift", "a route drops what this host sends to b"),
        ((LINK, f"unreachable {PEER} proto bird"), "blocked", "a route drops what this host sends to b"),
        ((LINK, f"broadcast {PEER} dev eth0 proto boot"), "drift", "a route makes b an address of many hosts"),
        ((LINK, "blackhole 10.0.0.0/25 proto static"), "drift", "drops what this host sends to b,c"),
        ((LINK, f"{PEER} dev lo proto boot"), "drift", "to b leaves by lo, and not by eth0"),
        ((LINK, f"{PEER} dev eth0 proto boot src 192.0.2.9"), "drift", "has the source 192.0.2.9"),
        ((LINK, f"{PEER} via 10.0.0.99 dev eth0 proto boot"), "unknown", "goes through 10.0.0.99"),
        (("default via 10.0.0.99 dev eth0 proto dhcp",), "drift", "the route of the cluster's network is gone"),
        ((), "drift", "the route of the cluster's network is gone"),
    ],
)  # fmt: skip
def test_a_route_that_loses_peers_is_named(routes: tuple[str, ...], kind: str, words: str) -> None:
    of = plan("peer_routes", host("a", "10.0.0.1", routing(*routes)))
    first = said(of)[0]
    assert first[0] == kind
    assert words in first[1]
    assert bool(of.changes) is (kind == "drift")
    assert all(change.guarded and change.reversible for change in of.changes)


def test_an_interface_that_is_down_is_said_before_its_routes() -> None:
    ((kind, title),) = said(plan("peer_routes", host("a", "10.0.0.1", routing(), up=False)))
    assert kind == FindingKind.BLOCKED.value
    assert title == "eth0, which has the cluster address, is down, so no peer is reached"


def test_a_table_without_the_peers_is_named_with_its_rule() -> None:
    of = routing(
        LINK,
        "default dev mgmt table 7 proto static",
        rules=(rule(9, table="7", source="10.0.0.1"), MAIN),
    )
    found = plan("peer_routes", host("a", "10.0.0.1", of)).findings
    assert [f.kind for f in found] == [FindingKind.BLOCKED]
    assert found[0].evidence[1] == "routing rule: from 10.0.0.1 priority 9"
    assert "ip -4 rule del from 10.0.0.1 priority 9" in found[0].fix


@pytest.mark.parametrize(
    ("mac", "state", "expected"),
    [
        ("02:00:00:00:00:02", "PERMANENT", []),
        ("02:00:00:00:00:99", "PERMANENT", ["drift"]),
        ("02:00:00:00:00:99", "NOARP", ["drift"]),
        ("", "FAILED", ["report"]),
    ],
)
def test_entries_are_held_against_what_the_peer_has(
    mac: str, state: str, expected: list[str]
) -> None:
    entry = Neighbour(address=PEER, mac=mac, interface="eth0", state=state)
    of = routing(LINK).model_copy(update={"neighbours": (entry,)})
    assert [kind for kind, _ in said(plan("neighbours", host("a", "10.0.0.1", of)))] == expected


def test_an_entry_of_a_peer_that_was_not_read_is_unknown() -> None:
    entry = Neighbour(
        address="10.0.0.200", mac="02:00:00:00:00:99", interface="eth0", state="PERMANENT"
    )
    of = routing(LINK).model_copy(update={"neighbours": (entry,)})
    first = host("a", "10.0.0.1", of)
    found = make_plan(fleet(first, absent=("gone",)), WHEN, only="neighbours").findings
    assert [(f.kind, f.title) for f in found] == [
        (
            FindingKind.UNKNOWN,
            "the hardware address of gone is fixed here, and whether it is right is not known",
        )
    ]


def test_an_interface_that_does_not_answer_is_switched_on() -> None:
    of = plan("neighbours", host("a", "10.0.0.1", arp=False))
    assert [change.action.do for change in of.changes] == ["ip link set dev eth0 arp on"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("src 10.0.0.2/32 dst 10.0.0.1/32 dir in action block priority 0 ptype main", ["drift"]),
        ("src 10.0.0.1/32 dst 10.0.0.2/32 dir out action block priority 0 ptype main", ["drift"]),
        ("src 10.0.0.0/24 dst 10.0.0.0/24 dir in action block priority 0 ptype main", ["blocked"]),
        ("src 10.0.0.9/32 dst 10.0.0.1/32 dir in action block priority 0 ptype main", []),
        ("src 10.0.0.2/32 dst 10.0.0.1/32 dir fwd action block priority 0 ptype main", []),
    ],
)
def test_policies_of_ipsec_are_judged_by_their_ends(text: str, expected: list[str]) -> None:
    of = routing(LINK).model_copy(update={"ipsec": (policy_of(text),)})
    assert [kind for kind, _ in said(plan("ipsec", host("a", "10.0.0.1", of)))] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qdisc fq_codel 0: dev eth0 root", []),
        ("qdisc netem 8001: dev eth0 root limit 1000 loss 10%", ["drift"]),
        ("qdisc netem 8001: dev eth0 parent 1:1 limit 1000 loss 10%", ["blocked"]),
        ("qdisc netem 8001: dev eth9 root limit 1000 loss 10%", []),
        ("qdisc tbf 8001: dev eth0 root rate 1Mbit burst 32Kb lat 400ms", ["blocked"]),
        ("qdisc tbf 8001: dev eth0 root rate 10Gbit burst 32Kb lat 400ms", []),
        ("qdisc htb 8: dev eth0 root r2q 10 default 0x10", ["unknown"]),
        ("qdisc newest 8: dev eth0 root", ["unknown"]),
    ],
)
def test_disciplines_are_judged_by_what_they_lose(text: str, expected: list[str]) -> None:
    words = text.split()
    place = "root" if "root" in words else "parent 1:1"
    one = Discipline(interface=words[4], kind=words[1], place=place, text=text)
    queueing = Queueing(disciplines=(one,), filters=())
    first = host("a", "10.0.0.1", queueing=queueing)
    assert [kind for kind, _ in said(plan("traffic_control", first))] == expected


U32 = "filter protocol ip pref 49152 u32 chain 0 fh 800::800 order 2048 terminal flowid not_in_hw"
FLOWER = "filter protocol ip pref 3 flower chain 0 handle 0x1"
DROP = "action order 1: gact action drop"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((U32, "match 0a000002/ffffffff at 12", DROP), ["blocked"]),
        ((U32, "match 0a000009/ffffffff at 12", DROP), []),
        ((U32, "match 0a000000/ffffff00 at 12", DROP), ["blocked"]),
        ((U32, "match 00000000/00000000 at 0", DROP), ["blocked"]),
        ((U32, "match 00060000/00ff0000 at 8", DROP), ["blocked"]),
        ((U32, "match 00110000/00ff0000 at 8", DROP), []),
        ((U32, "match 00005000/0000ffff at 20", DROP), ["unknown"]),
        ((U32, "match 0a000002/ffffffff at 12", "action order 1: gact action pass"), []),
        ((U32, "action order 1: mirred (Egress Redirect to device ifb0) stolen"), ["unknown"]),
        ((FLOWER, "eth_type ipv4", "src_ip 10.0.0.3", "not_in_hw", DROP), ["blocked"]),
        ((FLOWER, "eth_type ipv4", "src_ip 10.1.0.0/16", DROP), []),
        ((FLOWER, "eth_type ipv4", "ip_proto tcp", "dst_port 22", DROP), ["unknown"]),
        ((FLOWER, "eth_type ipv4", "ip_proto udp", DROP), []),
        (("filter protocol all pref 1 matchall chain 0 handle 0x1", DROP), ["blocked"]),
        (("filter protocol ipv6 pref 1 matchall chain 0 handle 0x1", DROP), []),
        (
            (U32, "match 00000000/00000000 at 0", "police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop"),
            ["blocked"],
        ),
        (("filter protocol all pref 1 bpf chain 0 handle 0x1 prog direct-action",), ["unknown"]),
    ],
)  # fmt: skip
def test_filters_are_judged_by_what_they_match(lines: tuple[str, ...], expected: list[str]) -> None:
    one = TrafficFilter(interface="eth0", direction="ingress", text=lines)
    queueing = Queueing(disciplines=(), filters=(one,))
    first = host("a", "10.0.0.1", queueing=queueing)
    assert [kind for kind, _ in said(plan("traffic_control", first))] == expected


def test_a_program_of_the_driver_is_unknown() -> None:
    ((kind, title),) = said(plan("traffic_control", host("a", "10.0.0.1", xdp="filter")))
    assert kind == "unknown"
    assert "an eBPF program decides about each packet that eth0 gets" in title
