"""Rules of nftables as JSON: which packets a rule is about, and whether that is certain."""

from __future__ import annotations

import json

import pytest

from remedy.firewall import spans
from remedy.firewall.packets import ESTABLISHED, EVERYTHING, Flow, arp
from tests.unit.firewall.nftables_bench import (
    BLIND,
    DADDR,
    DPORT,
    FIRST,
    IN,
    LOCAL,
    MISSING,
    OUT,
    SADDR,
    SETS,
    SPORT,
    STATE,
    answer,
    field,
    match,
    meta,
    one,
    read,
)


@pytest.mark.parametrize(
    ("verdict", "action", "target"),
    [
        ({"accept": None}, "accept", ""),
        ({"drop": None}, "drop", ""),
        ({"return": None}, "return", ""),
        ({"reject": {"type": "tcp reset"}}, "drop", ""),
        ({"jump": {"target": "own"}}, "jump", "own"),
        ({"goto": {"target": "own"}}, "goto", "own"),
        ({"fwd": {"dev": "lo"}}, "drop", ""),
        ({"masquerade": None}, "accept", ""),
        ({"redirect": {"port": 23}}, "divert", ""),
        ({"dnat": {"addr": "10.0.0.1"}}, "divert", ""),
    ],
)
def test_what_a_rule_does_with_what_it_matches(verdict: object, action: str, target: str) -> None:
    rule = one(verdict)
    assert (rule.action, rule.target, rule.certain, rule.box) == (action, target, True, EVERYTHING)


@pytest.mark.parametrize(
    "statement",
    [
        {"counter": None}, {"log": {"prefix": "x"}}, {"ct helper": "ftp"},
        {"flow": {"op": "add", "flowtable": "@f"}},
        {"dup": {"addr": "10.0.0.9"}}, {"set": {"op": "add", "elem": SADDR, "set": "@seen"}}, {"last": None},
        {"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": 1400}},
        {"limit": {"rate": 3}}, {"quota": {"val": 1, "val_unit": "bytes"}}, {"ct count": {"val": 1}},
        {"xt": {"type": "match", "name": "comment"}},
    ],
)  # fmt: skip
def test_a_rule_without_a_verdict_does_nothing(statement: object) -> None:
    assert read(statement) == ()


def rewrite(protocol: str, name: str, value: object) -> dict[str, object]:
    return {"mangle": {"key": {"payload": {"protocol": protocol, "field": name}}, "value": value}}


@pytest.mark.parametrize(
    "statement",
    [
        rewrite("ip", "daddr", "192.0.2.1"), rewrite("ip", "ttl", 0),
        rewrite("ether", "daddr", "02:00:00:00:00:09"),
        rewrite("tcp", "dport", 9), rewrite("tcp", "flags", "fin"), rewrite("tcp", "checksum", 1),
        {"mangle": {"key": {"payload": {"base": "th", "offset": 16, "len": 16}}, "value": 9}},
        {"mangle": {"key": meta("pkttype"), "value": "other"}},
        {"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": 40}},
    ],
)  # fmt: skip
def test_packets_that_a_rule_rewrites_need_not_arrive(statement: object) -> None:
    rule = one(statement)
    assert (rule.action, rule.certain) == ("drop", False)
    assert rule.unread[0].endswith(" set")
    assert read(match(meta("iifname"), "docker0"), statement) == ()


@pytest.mark.parametrize(
    "statement",
    [
        rewrite("ip", "dscp", "cs1"), rewrite("ip", "ttl", 64), rewrite("udp", "dport", 9),
        rewrite("ip6", "daddr", "::1"), {"mangle": {"key": meta("priority"), "value": 1}},
    ],
)  # fmt: skip
def test_what_a_rule_rewrites_may_lose_nothing_of_the_cluster(statement: object) -> None:
    assert read(statement) == ()


@pytest.mark.parametrize(
    ("address", "lost"),
    [("192.0.2.1", True), ("10.0.0.1", False), ({"map": {}}, False)],
)
def test_peers_need_not_answer_to_another_source(address: object, lost: bool) -> None:
    rule = one({"snat": {"addr": address}}, flow=OUT)
    assert (rule.action, rule.certain) == (("drop", False) if lost else ("accept", True))
    assert one({"snat": {"addr": address}}).action == "accept"


def test_what_lets_hosts_through_for_a_while_is_not_certain() -> None:
    expiring = match(SADDR, "@soon-gone")
    rule = one(expiring, {"accept": None})
    assert (rule.action, rule.certain, rule.unread) == (
        "accept",
        False,
        ("a set whose elements expire",),
    )
    assert one(expiring, {"drop": None}).certain
    now, later = read(match(SADDR, "@soon-gone", "!="), {"drop": None})
    assert now.certain
    assert (later.certain, later.box) == (False, EVERYTHING)
    assert one(match(SADDR, "@soon-gone", "!="), {"accept": None}).certain
    entry = [{"elem": {"val": "10.0.0.2", "timeout": 9}}, {"accept": None}]
    assert not one({"vmap": {"key": SADDR, "data": {"set": [entry]}}}).certain


@pytest.mark.parametrize("kind", ["queue", "synproxy", "tproxy"])
def test_what_a_program_decides_is_not_certain(kind: str) -> None:
    rule = one({kind: None})
    assert (rule.action, rule.certain, rule.unread) == ("drop", False, (kind,))


@pytest.mark.parametrize(
    "statement",
    ["odd", {"unread": "of a later version"}, {"xt": None}, {"xt": {"type": "target", "name": "X"}}],
)  # fmt: skip
def test_what_is_not_known_may_be_a_verdict(statement: object) -> None:
    assert (one(statement).action, one(statement).certain) == ("drop", False)
    assert one(statement, {"accept": None}).action == "accept"
    assert one(statement, {"accept": None}).certain is False
    assert read(match(DPORT, 22), statement)[0].box.dports == ((22, 22),)


HOLDS = [
    (field("ip", "protocol"), "tcp"), (field("ip", "protocol"), 6), (meta("l4proto"), {"set": ["udp", "tcp"]}),
    (meta("nfproto"), "ipv4"), (meta("protocol"), "ip"), (field("ether", "type"), "ip"),
    (STATE, "new"), (STATE, ["established", "new"]), ({"ct": {"key": "direction"}}, "original"),
    (meta("iifname"), "eth0"), (meta("iifname"), {"set": ["lo", "eth*"]}), (meta("iif"), "eth0"),
    (meta("mark"), 0), ({"&": [meta("mark"), 0xFF]}, 0), ({"ct": {"key": "mark"}}, 0), (LOCAL, "local"),
    (DADDR, "10.0.0.1"), (DADDR, {"prefix": {"addr": "10.0.0.0", "len": 24}}), (meta("pkttype"), "unicast"),
    ({"&": [field("tcp", "flags"), ["fin", "syn", "rst", "ack"]]}, "syn"),
]  # fmt: skip
FAILS = [
    (field("ip", "protocol"), "udp"), (meta("l4proto"), {"set": ["udp", 17]}), (meta("nfproto"), "ipv6"),
    (meta("protocol"), {"set": ["ip6", "arp"]}), (STATE, ["established", "related"]),
    (meta("iifname"), "lo"), (meta("iifname"), "eth1*"), (meta("iifname"), "eth"), (meta("oifname"), "eth0"),
    (meta("oif"), "eth0"), ({"ct": {"key": "status"}}, "dnat"), (meta("mark"), 1),
    ({"&": [meta("mark"), 0x8000]}, 0x8000), (LOCAL, "broadcast"), (DADDR, "10.0.0.2"), (MISSING, False),
    (meta("pkttype"), {"set": ["broadcast", "multicast"]}), (meta("ibrname"), "br0"),
    ({"&": [field("tcp", "flags"), ["fin", "syn"]]}, ["fin", "syn"]),
]  # fmt: skip
OTHERS = [
    field("udp", "dport"), field("icmp", "type"), field("icmpv6", "type"), field("ip6", "saddr"),
    field("sctp", "dport"), field("dccp", "dport"), field("udplite", "dport"), field("arp", "operation"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), HOLDS)
def test_a_condition_that_holds_for_the_first_packet(left: object, right: object) -> None:
    assert answer(match(left, right)) is True
    assert answer(match(left, right, "!=")) is False


@pytest.mark.parametrize(("left", "right"), FAILS)
def test_a_condition_that_fails_for_the_first_packet(left: object, right: object) -> None:
    assert answer(match(left, right)) is False
    assert answer(match(left, right, "!=")) is True


@pytest.mark.parametrize("left", OTHERS)
@pytest.mark.parametrize("op", ["==", "!="])
def test_a_condition_on_another_protocol_fails_also_where_it_is_negated(
    left: object, op: str
) -> None:
    """`udp dport != 53` is about UDP."""
    assert answer(match(left, 53, op)) is False


UNKNOWN = [
    (meta("iifname"), "eth0", BLIND), (DADDR, "10.0.0.1", BLIND), (MISSING, False, BLIND),
    (DADDR, "@unheard", IN), (STATE, "@states", IN), (meta("skuid"), 0, IN), (meta("cgroup"), 5, IN),
    (field("ip", "ttl"), 1, IN), (field("ip", "length"), 1, IN), (meta("hour"), "10:00", IN),
    (meta("day"), 1, IN),
    ({"ct": {"key": "mark"}}, 1, Flow("in", connection_marks=True)),
    ({"socket": {"key": "transparent"}}, 1, IN),
    ({"numgen": {"mode": "random", "mod": 100}}, 5, IN),
    ({"ct": {"key": "saddr", "dir": "original"}}, "10.0.0.1", IN),
    ("odd", 1, IN), (SADDR, "@unheard", IN), (SADDR, "no address", IN), (DPORT, "ssh-by-name", IN),
    (DPORT, None, IN), ({"payload": {"base": "nh", "offset": 8, "len": 8}}, 6, IN),
    (field("ether", "saddr"), "x", IN),
    ({"concat": [SADDR, DPORT]}, "@unheard", IN),
    ({"concat": [SADDR, meta("skuid")]}, {"set": [{"concat": ["10.0.0.2", 1]}]}, IN),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "flow"), UNKNOWN)
@pytest.mark.parametrize("op", ["==", "!="])
def test_what_the_rules_alone_cannot_decide_is_not_certain(
    left: object, right: object, flow: Flow, op: str
) -> None:
    assert answer(match(left, right, op), flow=flow) is None
    assert read(match(left, right, op), match(meta("l4proto"), "udp"), {"drop": None}) == ()


@pytest.mark.parametrize(
    "statement",
    [
        {"limit": {"rate": 3}}, {"quota": {"val": 1, "val_unit": "mbytes", "inv": True}},
        {"ct count": {"val": 10, "inv": True}},
        {"meter": {"key": SADDR, "stmt": {"limit": {"rate": 1}}, "name": "m"}},
        {"set": {"op": "update", "elem": SADDR, "set": "@seen", "stmt": [{"limit": {"rate": 1}}]}},
        {"xt": {"type": "match", "name": "hashlimit"}},
        {"mangle": {"key": DADDR, "value": "10.0.0.9"}},
    ],
)  # fmt: skip
def test_a_rate_or_a_count_leaves_a_rule_uncertain(statement: object) -> None:
    rule = one(statement, {"drop": None})
    assert (rule.action, rule.certain) == ("drop", False)
    assert rule.unread
    assert read(match(meta("iifname"), "docker0"), statement, {"drop": None}) == ()


def test_packets_of_a_connection_differ() -> None:
    later = FIRST._replace(state=ESTABLISHED)
    syn = match(field("tcp", "flags"), "syn", "in")
    assert [answer(syn, part) for part in (FIRST, later, later._replace(reply=True))] == [
        True,
        False,
        False,
    ]
    reply = match({"ct": {"key": "direction"}}, "reply")
    assert [answer(reply, part) for part in (FIRST, later._replace(reply=True))] == [False, True]


def test_a_largest_segment_that_no_host_offers_is_about_no_packet() -> None:
    size = {"tcp option": {"name": "maxseg", "field": "size"}}
    opens = FIRST._replace(state=ESTABLISHED, reply=True, opens=True)
    for part in (FIRST, opens):
        assert answer(match(size, {"range": [1, 500]}), part) is False
        assert answer(match(size, 536, "<"), part) is False
        assert answer(match(size, 1460, "!="), part) is None
        assert answer(match(size, {"range": [1, 1459]}), part) is None


def test_of_what_leaves_the_host_the_peer_is_the_destination() -> None:
    assert one(match(DADDR, "10.0.0.2"), {"drop": None}, flow=OUT).box.peers == spans.of_networks(
        ["10.0.0.2"]
    )
    assert read(match(SADDR, "10.0.0.2"), {"drop": None}, flow=OUT) == ()
    assert answer(match(meta("oifname"), "eth0"), flow=OUT) is True
    assert answer(match(LOCAL, "local"), flow=OUT) is False


def test_of_arp_only_its_own_fields_are_read() -> None:
    flow = arp(IN)
    assert answer(match(field("ether", "type"), "arp"), flow=flow) is True
    assert answer(match(SADDR, "10.0.0.2", "!="), flow=flow) is False
    asked = one(match(field("arp", "saddr ip"), "10.0.0.2"), {"drop": None}, flow=flow)
    assert asked.box.peers == spans.of_networks(["10.0.0.2"])
    request = match(field("arp", "operation"), "request")
    assert [answer(request, FIRST._replace(state=s), flow) for s in ("request", "reply")] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("right", "sources"),
    [
        ("10.0.0.2", ["10.0.0.2"]),
        ({"prefix": {"addr": "10.0.0.0", "len": 30}}, ["10.0.0.0/30"]),
        ({"range": ["10.0.0.4", "10.0.0.7"]}, ["10.0.0.4/30"]),
        (
            {"set": ["10.0.0.2", {"elem": {"val": "10.0.0.9", "timeout": 5}}]},
            ["10.0.0.2", "10.0.0.9"],
        ),
        ("@peers", ["10.0.0.2", "10.1.0.0/16"]),
        ({"set": "@peers"}, ["10.0.0.2", "10.1.0.0/16"]),
    ],
)
def test_sources_are_read_in_every_form(right: object, sources: list[str]) -> None:
    found = spans.of_networks(sources)
    assert one(match(SADDR, right), {"accept": None}).box.peers == found
    others = one(match(SADDR, right, "!="), {"accept": None}).box.peers
    assert others == spans.minus(spans.ALL_ADDRESSES, found)


def test_ports_are_read_in_every_form() -> None:
    right = {"set": [22, {"range": [8000, 8010]}]}
    assert one(match(DPORT, right), {"accept": None}).box.dports == ((22, 22), (8000, 8010))
    assert one(match(SPORT, right), {"accept": None}).box.sports == ((22, 22), (8000, 8010))
    assert one(match(field("th", "dport"), 22), {"accept": None}).box.dports == ((22, 22),)
    assert one(match(DPORT, 1024, "<"), {"accept": None}).box.dports == ((0, 1023),)
    assert one(match(DPORT, 1024, "<="), {"accept": None}).box.dports == ((0, 1024),)
    assert one(match(DPORT, 1024, ">"), {"accept": None}).box.dports == ((1025, 65535),)
    assert one(match(DPORT, 1024, ">="), {"accept": None}).box.dports == ((1024, 65535),)


def test_of_several_matches_all_must_hold() -> None:
    rule = one(
        match(SADDR, {"prefix": {"addr": "10.0.0.0", "len": 29}}),
        match(SADDR, "10.0.0.1", "!="),
        match(SADDR, {"range": ["10.0.0.0", "10.0.0.2"]}),
        match(DPORT, {"range": [1, 9]}),
        match(DPORT, {"range": [5, 20]}),
        {"accept": None},
    )
    assert rule.box.peers == spans.of_networks(["10.0.0.0", "10.0.0.2"])
    assert rule.box.dports == ((5, 9),)


@pytest.mark.parametrize("right", ["@pairs", json.loads(SETS["pairs"])["elem"]])
def test_concatenated_values_are_read_pair_by_pair(right: object) -> None:
    written = right if isinstance(right, str) else {"set": right}
    found = read(match({"concat": [SADDR, DPORT]}, written), {"drop": None})
    assert [(rule.box.peers, rule.box.dports) for rule in found] == [
        (spans.of_networks(["10.0.0.2"]), ((22, 22),)),
        (spans.of_networks(["10.0.0.3"]), ((80, 90),)),
    ]
    negated = one(match({"concat": [SADDR, DPORT]}, written, "!="), {"drop": None})
    assert [box.dports for box in negated.unless] == [((22, 22),), ((80, 90),)]


def test_a_set_that_rules_fill_says_nothing_of_the_next_packet() -> None:
    found = read(match(SADDR, "@seen"), {"drop": None})
    assert [(rule.certain, rule.box.peers) for rule in found] == [
        (True, spans.of_networks(["10.0.0.7"])),
        (False, None),
    ]


def test_marks_are_given_as_the_kernel_gives_them() -> None:
    def change(value: object, before: int) -> int | None:
        keep, flip = one(
            {"mangle": {"key": meta("mark"), "value": value}}, {"return": None}
        ).mark or (0, None)
        return None if flip is None else (before & keep) ^ flip

    mark = meta("mark")
    assert change(5, 0x70) == 5
    assert change({"|": [mark, 0x10]}, 0x61) == 0x71
    assert change({"|": [mark, 0x10]}, 0x71) == 0x71
    assert change({"&": [mark, 0x0F]}, 0x71) == 0x1
    assert change({"^": [mark, 0x01]}, 0x71) == 0x70
    assert change({"|": [{"&": [mark, 0xF0]}, 0x2]}, 0x71) == 0x72
    assert change({"ct": {"key": "mark"}}, 0x71) is None


def test_notrack_takes_packets_out_of_tracking() -> None:
    assert one({"notrack": None}).untracks
