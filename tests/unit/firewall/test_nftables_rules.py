"""Rules of nftables as JSON: which packets a rule is about, whether that is certain, and how it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remedy.firewall import spans
from remedy.firewall.nftables_rules import chains, read_rule
from remedy.firewall.nftables_text import LONGEST, rule_text
from remedy.firewall.packets import ESTABLISHED, EVERYTHING, NEW, Flow, Part, arp, check
from remedy.firewall.reading import narrow
from remedy.firewall.traffic import Chain, Rule
from remedy.probe import NftChain, NftRule, NftRuleset, NftSet

RECORDED = json.loads(
    (Path(__file__).parents[1] / "data/nftables/rules.json").read_text(encoding="utf-8")
)
"""Rules of nft 1.0.6, each as ``nft -s list`` and ``nft -s -j list`` print it."""

ADDRESS = spans.of_networks(["10.0.0.1"])[0][0]
IN = Flow("in", ("eth0",), ADDRESS, symmetric=True)
OUT = Flow("out", ("eth0",), ADDRESS, symmetric=True)
BLIND = Flow("in")
FIRST = Part(spans.ALL_ADDRESSES, spans.ALL_PORTS, spans.ALL_PORTS, NEW)
SETS = {
    "peers": json.dumps({"elem": ["10.0.0.2", {"prefix": {"addr": "10.1.0.0", "len": 16}}]}),
    "pairs": json.dumps(
        {"elem": [{"concat": ["10.0.0.2", 22]}, {"concat": ["10.0.0.3", {"range": [80, 90]}]}]}
    ),
    "seen": json.dumps({"flags": ["dynamic", "timeout"], "elem": ["10.0.0.7"]}),
    "soon-gone": json.dumps({"elem": [{"elem": {"val": "10.0.0.2", "expires": True}}]}),
    "ports": json.dumps({"elem": [[22, {"accept": None}], [23, {"drop": None}]]}),
}  # fmt: skip


def field(protocol: str, name: str) -> dict[str, Any]:
    return {"payload": {"protocol": protocol, "field": name}}


def meta(key: str) -> dict[str, Any]:
    return {"meta": {"key": key}}


def match(left: object, right: object, op: str = "==") -> dict[str, Any]:
    return {"match": {"op": op, "left": left, "right": right}}


SADDR, DADDR = field("ip", "saddr"), field("ip", "daddr")
SPORT, DPORT = field("tcp", "sport"), field("tcp", "dport")
STATE = {"ct": {"key": "state"}}
LOCAL = {"fib": {"result": "type", "flags": ["daddr"]}}
MISSING = {"fib": {"result": "oif", "flags": ["saddr", "iif"]}}


def read(*statements: object, flow: Flow = IN) -> tuple[Rule, ...]:
    rules = read_rule(NftRule(1, "", json.dumps(statements)), SETS, "inet filter input")
    return narrow(rules, flow, EVERYTHING, "").rules


def one(*statements: object, flow: Flow = IN) -> Rule:
    (rule,) = read(*statements, flow=flow)
    return rule


def answer(condition: object, part: Part = FIRST, flow: Flow = IN) -> bool | None:
    """Return whether a match holds for the packets of a part; None: that is not known."""
    found = read(condition, {"drop": None}, flow=flow)
    if not found:
        return False
    ((only),) = found
    answers = [check(each, part) for each in only.checks]
    if False in answers:
        return False
    return True if only.certain and None not in answers else None


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


def vmap(key: object, *entries: object, data: object = None) -> dict[str, Any]:
    return {"vmap": {"key": key, "data": data or {"set": list(entries)}}}


def test_a_verdict_map_is_a_rule_for_each_entry_that_can_match() -> None:
    found = read(
        match(DPORT, {"range": [1, 100]}),
        vmap(
            DPORT,
            [22, {"accept": None}],
            [{"range": [90, 200]}, {"jump": {"target": "own"}}],
            [80, {"reject": None}],
            [81, {"continue": None}],
            [300, {"drop": None}],
        ),
    )
    assert [(r.action, r.target, r.box.dports, r.certain) for r in found] == [
        ("accept", "", ((22, 22),), True),
        ("jump", "own", ((90, 100),), True),
        ("drop", "", ((80, 80),), True),
    ]


def test_a_verdict_map_of_sources_of_states_and_of_pairs() -> None:
    by_source = one(vmap(SADDR, ["10.0.0.2", {"goto": {"target": "x"}}]))
    assert (by_source.action, by_source.target) == ("goto", "x")
    assert by_source.box.peers == spans.of_networks(["10.0.0.2"])
    states = read(vmap(STATE, ["established", {"accept": None}], ["new", {"drop": None}]))
    assert [[check(c, FIRST) for c in rule.checks] for rule in states] == [[False], [True]]
    assert one(vmap(meta("iifname"), ["eth0", {"accept": None}]), flow=BLIND).certain is False
    services = vmap(
        {"concat": [DADDR, meta("l4proto"), field("th", "dport")]},
        [{"concat": ["10.96.0.1", "tcp", 443]}, {"drop": None}],
        [{"concat": ["10.0.0.1", "tcp", 30001]}, {"drop": None}],
    )
    assert [rule.box.dports for rule in read(services)] == [((30001, 30001),)]


def test_a_verdict_map_by_name_is_looked_up_and_what_is_odd_in_it_is_a_doubt() -> None:
    found = read(vmap(DPORT, data="@ports"))
    assert [(rule.action, rule.box.dports) for rule in found] == [
        ("accept", ((22, 22),)),
        ("drop", ((23, 23),)),
    ]
    assert [r.certain for r in read(vmap(DPORT, data="@unheard"))] == [False]
    assert [r.certain for r in read(vmap(DPORT, "odd", [1, 2, 3]))] == [False, False]
    assert one({"limit": {"rate": 1}}, vmap(DPORT, [22, {"drop": None}])).certain is False
    random = one(vmap({"numgen": {"mode": "random", "mod": 2}}, [0, {"drop": None}]))
    assert random.certain is False


# --- words -------------------------------------------------------------------------------------------------

SHOWN_AS_JSON = ("ip dscp set 0x04", 'iifname . tcp dport { "eth0" . 22 } accept')
"""What nft writes in a form that its JSON does not tell: names that are quoted, numbers of their own base."""


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["text"])
def test_a_rule_is_shown_as_nft_shows_it(recorded: dict[str, Any]) -> None:
    text = rule_text(json.dumps(recorded["expr"]), recorded["comment"])
    if recorded["text"] in SHOWN_AS_JSON:
        assert text.split()[0] == recorded["text"].split()[0]
    else:
        assert text == recorded["text"]


def test_a_rule_is_named_with_its_chain_and_a_long_one_with_a_digest() -> None:
    assert one(match(DPORT, 22), {"accept": None}).words == "inet filter input: tcp dport 22 accept"
    addresses = [f"10.0.0.{n}" for n in range(200)]
    long = one(match(SADDR, {"set": addresses}), {"accept": None}).words
    other = one(match(SADDR, {"set": [*addresses, "10.9.9.9"]}), {"accept": None}).words
    assert len(long) < LONGEST + 60
    assert long != other


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
odd_statements = st.one_of(
    json_values,
    st.dictionaries(
        st.sampled_from(
            [
                "match",
                "vmap",
                "limit",
                "set",
                "meter",
                "mangle",
                "reject",
                "log",
                "queue",
                "xt",
                "jump",
                "dnat",
                "quota",
                "ct count",
                "drop",
                "unread",
            ]
        ),
        st.one_of(
            json_values,
            st.fixed_dictionaries({"left": json_values, "op": json_values, "right": json_values}),
            st.fixed_dictionaries({"key": json_values, "data": json_values, "target": json_values}),
        ),
        min_size=1,
        max_size=1,
    ),
)


@given(st.lists(odd_statements, max_size=3), st.text(max_size=8))
def test_no_statement_of_a_host_can_break_the_reader(
    statements: list[object], comment: str
) -> None:
    rules = read_rule(NftRule(1, comment, json.dumps(statements)), SETS, "inet t c")
    for rule in rules:
        assert rule.words.isprintable()
        narrow([rule], IN, EVERYTHING, "")


# --- whole rulesets ----------------------------------------------------------------------------------------


def chain(
    table: str, name: str, *expressions: object, hook: str = "", policy: str = ""
) -> NftChain:
    rules = tuple(NftRule(n, "", json.dumps(e)) for n, e in enumerate(expressions, 1))
    return NftChain("inet", table, name, hook, 0, policy, rules)


def test_a_set_belongs_to_its_table_alone() -> None:
    """Two tables may have a set of one name; what the other one holds says nothing."""

    def named(family: str, table: str, address: str) -> NftSet:
        return NftSet(family, table, "peers", json.dumps({"elem": [address]}))

    mine = chain(
        "mine", "input", [match(SADDR, "@peers"), {"accept": None}], hook="input", policy="drop"
    )
    sets = (
        named("inet", "mine", "10.0.0.2"),
        named("inet", "other", "10.0.0.3"),
        named("ip", "mine", "10.0.0.4"),
    )
    for ordered in (sets, sets[::-1]):
        ruleset = NftRuleset(tables=(), chains=(mine,), sets=ordered)
        found = chains(ruleset, "inet", "mine", IN, EVERYTHING)
        assert found["input"].rules[0].box.peers == spans.of_networks(["10.0.0.2"])
    ruleset = NftRuleset(tables=(), chains=(mine,), sets=sets[1:])
    (rule,) = chains(ruleset, "inet", "mine", IN, EVERYTHING)["input"].rules
    assert rule.certain is False


def test_chains_are_those_of_one_table_with_the_policy_of_their_hook() -> None:
    whole = NftRuleset(
        tables=(),
        chains=(
            chain("t", "input", [{"accept": None}], hook="input", policy="drop"),
            chain("t", "open", hook="input"),
            chain("t", "own", [{"jump": {"target": "x"}}]),
            chain("u", "input", [{"drop": None}], hook="input"),
        ),
        sets=(),
    )
    found = chains(whole, "inet", "t", IN, EVERYTHING)
    assert {name: found[name].policy for name in found} == {
        "input": "drop",
        "open": "accept",
        "own": "",
    }
    assert [rule.action for rule in found["input"].rules] == ["accept"]
    assert isinstance(found["own"], Chain)
