"""Rules of nftables as JSON: which new connections of a peer a rule is about, and whether that is certain."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remedy.firewall import spans
from remedy.firewall.nftables_rules import base_chains, chains, read_rule
from remedy.firewall.step import Path
from remedy.firewall.traffic import Chain, Rule, Traffic, dropped_by
from remedy.probe import NftChain, NftRule, NftRuleset, NftSet

WAY = Path("eth0", "10.0.0.1")
BLIND = Path()
LAST = 2**32 - 1
SETS = {"peers": json.dumps({"elem": ["10.0.0.2", {"prefix": {"addr": "10.1.0.0", "len": 16}}]})}


def field(protocol: str, name: str) -> dict[str, Any]:
    return {"payload": {"protocol": protocol, "field": name}}


def meta(key: str) -> dict[str, Any]:
    return {"meta": {"key": key}}


def match(left: object, right: object, op: str = "==") -> dict[str, Any]:
    return {"match": {"op": op, "left": left, "right": right}}


SADDR, DADDR, DPORT = field("ip", "saddr"), field("ip", "daddr"), field("tcp", "dport")
STATE = {"ct": {"key": "state"}}
LOCAL = {"fib": {"result": "type", "flags": ["daddr"]}}


def read(*statements: object, path: Path = WAY) -> list[Rule]:
    return read_rule(NftRule(1, "", json.dumps(statements)), SETS, path)


def one(*statements: object, path: Path = WAY) -> Rule:
    (rule,) = read(*statements, path=path)
    return rule


@pytest.mark.parametrize(
    ("verdict", "action", "target"),
    [
        ({"accept": None}, "accept", ""),
        ({"drop": None}, "drop", ""),
        ({"return": None}, "return", ""),
        ({"reject": {"type": "tcp reset"}}, "drop", ""),
        ({"jump": {"target": "own"}}, "jump", "own"),
        ({"goto": {"target": "own"}}, "goto", "own"),
    ],
)
def test_what_a_rule_does_with_what_it_matches(verdict: object, action: str, target: str) -> None:
    rule = one(verdict)
    assert (rule.action, rule.target, rule.certain) == (action, target, True)
    assert (rule.sources, rule.ports) == (None, None)


def test_a_rule_without_a_verdict_is_none() -> None:
    assert read({"counter": None}, {"log": {"prefix": "x"}}) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (field("ip", "protocol"), "tcp"),
        (field("ip", "protocol"), 6),
        (meta("l4proto"), {"set": ["udp", "tcp"]}),
        (meta("nfproto"), "ipv4"),
        (meta("protocol"), "ip"),
        (STATE, "new"),
        (STATE, ["established", "new"]),
        (meta("iifname"), "eth0"),
        (meta("iifname"), {"set": ["lo", "eth*"]}),
        (meta("iif"), "eth0"),
        (meta("mark"), 0),
        (LOCAL, "local"),
        (DADDR, "10.0.0.1"),
        (DADDR, {"prefix": {"addr": "10.0.0.0", "len": 24}}),
    ],
)
def test_a_condition_that_holds_for_a_new_connection(left: object, right: object) -> None:
    assert one(match(left, right), {"drop": None}).certain
    assert one(match(left, right, "in"), {"drop": None}).certain
    # Of its negation nothing is left.
    assert read(match(left, right, "!="), {"drop": None}) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (field("ip", "protocol"), "udp"),
        (meta("l4proto"), {"set": ["udp", 17]}),
        (meta("nfproto"), "ipv6"),
        (meta("protocol"), {"set": ["ip6", "arp"]}),
        (STATE, ["established", "related"]),
        (meta("iifname"), "lo"),
        (meta("iifname"), "eth1*"),
        (meta("iifname"), "eth"),
        (meta("oifname"), "eth0"),
        (meta("oif"), "eth0"),
        ({"ct": {"key": "status"}}, "dnat"),
        (meta("mark"), 1),
        (LOCAL, "broadcast"),
        (DADDR, "10.0.0.2"),
        (field("udp", "dport"), 53),
        (field("icmp", "type"), "echo-request"),
        (field("icmpv6", "type"), "nd-router-advert"),
        (field("ip6", "saddr"), "fe80::1"),
        (field("sctp", "dport"), 1),
        (field("dccp", "dport"), 1),
        (field("udplite", "dport"), 1),
    ],
)
def test_a_condition_that_fails_for_a_new_connection(left: object, right: object) -> None:
    assert read(match(left, right), {"drop": None}) == []
    assert one(match(left, right, "!="), {"drop": None}).certain


@pytest.mark.parametrize(
    ("left", "right", "path"),
    [
        (meta("iifname"), "eth0", Path(None, "10.0.0.1")),
        (DADDR, "10.0.0.1", Path("eth0", None)),
        (DADDR, "@unheard", WAY),
        (STATE, "@states", WAY),
        (meta("skuid"), 0, WAY),
        (field("tcp", "flags"), "syn", WAY),
        (field("ip", "ttl"), 1, WAY),
        ({"ct": {"key": "mark"}}, 1, WAY),
        ({"fib": {"result": "oif", "flags": ["saddr"]}}, False, WAY),
        ({"socket": {"key": "transparent"}}, 1, WAY),
        ("odd", 1, WAY),
        (SADDR, "@unheard", WAY),
        (SADDR, "no address", WAY),
        (DPORT, "ssh-by-name", WAY),
        (DPORT, None, WAY),
    ],
)
@pytest.mark.parametrize("op", ["==", "!="])
def test_what_the_rules_alone_cannot_decide_is_not_certain(
    left: object, right: object, path: Path, op: str
) -> None:
    rule = one(match(left, right, op), {"accept": None}, path=path)
    assert (rule.certain, rule.sources, rule.ports) == (False, None, None)


@pytest.mark.parametrize("op", ["<", ">="])
def test_a_comparison_of_ports_is_not_certain(op: str) -> None:
    assert one(match(DPORT, 1024, op), {"accept": None}).certain is False


@pytest.mark.parametrize("statement", [{"limit": {"rate": 3}}, {"xt": None}, {"meter": {}}, "odd"])
def test_statements_that_nobody_knows_make_a_rule_uncertain(statement: object) -> None:
    assert one(statement, match(DPORT, 22), {"accept": None}).certain is False


@pytest.mark.parametrize("name", ["counter", "log", "mangle", "notrack", "quota"])
def test_statements_that_only_note_leave_it_certain(name: str) -> None:
    assert one({name: None}, {"accept": None}).certain


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
    ],
)
def test_sources_are_read_in_every_form(right: object, sources: list[str]) -> None:
    found = spans.of_networks(sources)
    assert one(match(SADDR, right), {"accept": None}).sources == found
    others = one(match(SADDR, right, "!="), {"accept": None}).sources
    assert others == spans.minus(spans.ALL_ADDRESSES, found)


def test_ports_are_read_in_every_form() -> None:
    right = {"set": [22, {"range": [8000, 8010]}]}
    assert one(match(DPORT, right), {"accept": None}).ports == ((22, 22), (8000, 8010))
    assert one(match(field("th", "dport"), 22), {"accept": None}).ports == ((22, 22),)
    assert one(match(DPORT, {"range": [1, 65535]}, "!="), {"accept": None}).ports == ((0, 0),)


def test_of_several_matches_all_must_hold() -> None:
    rule = one(
        match(SADDR, {"prefix": {"addr": "10.0.0.0", "len": 29}}),
        match(SADDR, "10.0.0.1", "!="),
        match(SADDR, {"range": ["10.0.0.0", "10.0.0.2"]}),
        match(DPORT, {"range": [1, 9]}),
        match(DPORT, {"range": [5, 20]}),
        {"accept": None},
    )
    assert rule.sources == spans.of_networks(["10.0.0.0", "10.0.0.2"])
    assert rule.ports == ((5, 9),)


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
        ),
    )
    assert [(r.action, r.target, r.ports, r.certain) for r in found] == [
        ("accept", "", ((22, 22),), True),
        ("jump", "own", ((90, 100),), True),
        ("drop", "", ((80, 80),), True),
        ("pass", "", ((81, 81),), True),
    ]


def test_a_verdict_map_of_sources_or_of_states() -> None:
    by_source = one(vmap(SADDR, ["10.0.0.2", {"goto": {"target": "x"}}]))
    assert (by_source.action, by_source.target) == ("goto", "x")
    assert by_source.sources == spans.of_networks(["10.0.0.2"])
    states = read(vmap(STATE, ["established", {"accept": None}], ["new", {"drop": None}]))
    assert [(r.action, r.certain) for r in states] == [("drop", True)]
    unsure = one(vmap(meta("iifname"), ["eth0", {"accept": None}]), path=BLIND)
    assert unsure.certain is False
    both = one(
        match(SADDR, {"prefix": {"addr": "10.0.0.0", "len": 24}}),
        vmap(SADDR, [{"prefix": {"addr": "10.0.0.0", "len": 8}}, {"drop": None}]),
    )
    assert both.sources == spans.of_networks(["10.0.0.0/24"])


def test_a_verdict_map_by_name_is_looked_up_and_odd_entries_are_passed_over() -> None:
    sets = {"ports": json.dumps({"elem": [[22, {"accept": None}], "odd", [1, 2, 3]]})}
    rule = NftRule(1, "", json.dumps([vmap(DPORT, data="@ports")]))
    (found,) = read_rule(rule, sets, WAY)
    assert (found.action, found.ports) == ("accept", ((22, 22),))
    assert read_rule(rule, {}, WAY) == []


def test_an_uncertain_rule_stays_so_in_its_verdict_map() -> None:
    assert one({"limit": {"rate": 1}}, vmap(STATE, ["new", {"drop": None}])).certain is False


def test_a_long_rule_is_quoted_in_short_and_a_short_one_whole() -> None:
    short = [match(DPORT, 22), {"accept": None}]
    assert json.dumps(short) in one(*short).words
    addresses = {"set": [f"10.0.0.{n}" for n in range(99)]}
    long = one(match(SADDR, addresses), {"accept": None}).words
    assert len(long) < 200
    assert long.endswith("...")


# --- whole rulesets ----------------------------------------------------------------------------------------


def chain(
    table: str,
    name: str,
    *expressions: object,
    family: str = "inet",
    hook: str = "",
    policy: str = "",
) -> NftChain:
    rules = tuple(NftRule(n, "", json.dumps(e)) for n, e in enumerate(expressions, 1))
    return NftChain(family, table, name, hook, 0, policy, rules)


def ruleset(*found: NftChain, sets: tuple[NftSet, ...] = ()) -> NftRuleset:
    return NftRuleset(tables=(), chains=found, sets=sets)


def test_a_set_belongs_to_its_table_alone() -> None:
    """Two tables may have a set of one name; what the other one holds says nothing."""

    def named(family: str, table: str, address: str) -> NftSet:
        return NftSet(family, table, "peers", json.dumps({"elem": [address]}))

    allow = [match(SADDR, "@peers"), {"accept": None}]
    mine = chain("mine", "input", allow, hook="input", policy="drop")
    sets = (
        named("inet", "mine", "10.0.0.2"),
        named("inet", "other", "10.0.0.3"),
        named("ip", "mine", "10.0.0.4"),
    )
    for ordered in (sets, sets[::-1]):
        found = chains(ruleset(mine, sets=ordered), "inet", "mine", WAY)
        assert found["input"].rules[0].sources == spans.of_networks(["10.0.0.2"])
    (rule,) = chains(ruleset(mine, sets=sets[1:]), "inet", "mine", WAY)["input"].rules
    assert rule.certain is False


def test_chains_are_those_of_one_table_with_the_policy_of_their_hook() -> None:
    whole = ruleset(
        chain("t", "input", [{"accept": None}], hook="input", policy="drop"),
        chain("t", "open", hook="input"),
        chain("t", "own", [{"jump": {"target": "x"}}]),
        chain("t", "input", [{"drop": None}], family="ip", hook="input"),
        chain("u", "input", [{"drop": None}], hook="input"),
    )
    found = chains(whole, "inet", "t", WAY)
    assert {name: c.policy for name, c in found.items()} == {
        "input": "drop",
        "open": "accept",
        "own": "",
    }
    assert [rule.action for rule in found["input"].rules] == ["accept"]
    assert isinstance(found["own"], Chain)


def test_what_a_packet_for_this_host_has_to_pass() -> None:
    whole = ruleset(
        *(
            chain("t", f"{family}-{hook}", family=family, hook=hook)
            for family in ("inet", "ip", "ip6", "arp", "bridge", "netdev")
            for hook in ("input", "prerouting", "forward", "output", "postrouting", "ingress", "")
        )
    )
    assert [c.name for c in base_chains(whole)] == [
        "inet-input", "inet-prerouting", "ip-input", "ip-prerouting",
    ]  # fmt: skip


def test_a_whole_table_is_judged_with_its_sets() -> None:
    peers = NftSet("inet", "t", "peers", json.dumps({"elem": ["10.0.0.2"]}))
    table = ruleset(
        chain(
            "t", "input", [match(SADDR, "@peers"), {"accept": None}], hook="input", policy="drop"
        ),
        sets=(peers,),
    )
    traffic = Traffic(spans.of_networks(["10.0.0.2", "10.0.0.3"]), ((29500, 29500),))
    found = dropped_by(chains(table, "inet", "t", WAY), "input", traffic)
    assert found.sources == spans.of_networks(["10.0.0.3"])
