"""Statements of nftables that are no verdicts: what they leave certain, and in which words they are named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remedy.firewall import spans
from remedy.firewall.nftables_rules import EXPIRES, marks_connections, place, read_rule
from remedy.firewall.packets import Condition, Either
from remedy.firewall.reading import ReadRule
from remedy.probe import NftChain, NftRule, NftRuleset

DPORT = {"payload": {"protocol": "tcp", "field": "dport"}}
SADDR = {"payload": {"protocol": "ip", "field": "saddr"}}
MARK, CT_MARK = {"meta": {"key": "mark"}}, {"ct": {"key": "mark"}}
TWO = spans.of_networks(["10.0.0.2"])
ACCEPT, DROP = {"accept": None}, {"drop": None}
SETS = {
    "filled": json.dumps({"flags": ["dynamic"], "elem": ["10.0.0.2"]}),
    "leaving": json.dumps({"elem": [{"elem": {"val": "10.0.0.2", "expires": 5}}]}),
    "verdicts": json.dumps({"elem": [["10.0.0.2", ACCEPT]]}),
}


def read(*statements: object) -> tuple[ReadRule, ...]:
    return read_rule(NftRule(1, "", json.dumps(statements)), SETS)


def one(*statements: object) -> ReadRule:
    (rule,) = read(*statements)
    return rule


def match(left: object, right: object, op: str = "==") -> dict[str, Any]:
    return {"match": {"op": op, "left": left, "right": right}}


def field(protocol: str, name: str) -> dict[str, Any]:
    return {"payload": {"protocol": protocol, "field": name}}


@pytest.mark.parametrize(
    ("statement", "unread", "is_open"),
    [
        ({"limit": {"rate": 1}}, ("limit",), False),
        ({"quota": {"val": 1}}, ("quota",), False),
        ({"ct count": {"val": 1}}, ("ct count",), False),
        ({"meter": {"name": "m"}}, ("meter",), False),
        ({"meter": {"stmt": {"limit": {"rate": 1}}}}, ("limit",), False),
        ({"set": {"stmt": [{"limit": {}}, {"quota": {}}]}}, ("limit", "quota"), False),
        ({"set": {"stmt": ["counter"]}}, ("counter",), False),
        ({"frobnicate": 1}, ("frobnicate",), True),
        ("frobnicate", ("frobnicate",), True),
        (5, ("something",), True),
        ({"a": 1, "b": 2}, ("something",), True),
        ({"xt": {"type": "match", "name": "limit"}}, ("limit",), False),
        ({"xt": {"type": "target", "name": "NFLOG"}}, ("NFLOG",), True),
        ({"xt": {"type": "match"}}, ("an extension",), False),
        ({"xt": None}, ("an extension",), True),
        ({"set": {"op": "add"}}, (), False),
        ({"counter": None}, (), False),
    ],
)  # fmt: skip
def test_a_statement_that_is_not_read_is_named_and_may_be_a_verdict(
    statement: object, unread: tuple[str, ...], is_open: bool
) -> None:
    assert one(statement, DROP).unread == unread
    assert one(statement, ACCEPT).unread == unread
    ending = one(statement)
    assert (ending.action, ending.unread) == ("drop" if is_open else "pass", unread)
    twice = one(statement, {"xt": {"type": "match", "name": "last"}})
    assert twice.action == ("drop" if is_open else "pass")
    assert one(statement, statement, DROP).unread == unread


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        (field("ip", "saddr"), "10.0.0.2", "saddr"),
        (field("ip", "ttl"), 31, "ip ttl"),
        (field("ip", "ttl"), "x", "ip ttl"),
        (field("ip6", "hoplimit"), 31, "ip6 hoplimit"),
        (field("tcp", "dport"), 5, "dport"),
        ({"meta": {"key": "pkttype"}}, "other", "packet-type"),
        (field("vlan", "id"), 5, "vlan id"),
    ],
)
def test_a_packet_that_is_rewritten_need_not_arrive(key: object, value: object, name: str) -> None:
    rule = one({"mangle": {"key": key, "value": value}})
    assert (rule.action, rule.unread) == ("drop", (f"{name} set",))
    assert rule.tests == (Condition(name, None),)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (field("ip", "ttl"), 32),
        (field("ip6", "hoplimit"), 32),
        *((field(*name.split()), 1) for name in (
            "ip dscp", "ip ecn", "ip6 dscp", "ip6 ecn", "ip6 flowlabel", "vlan pcp", "vlan dei"
        )),
        ({"meta": {"key": "priority"}}, 1),
        ({"ct": {"key": "label"}}, 1),
    ],
)  # fmt: skip
def test_a_packet_arrives_whose_quality_is_set(key: object, value: object) -> None:
    rule = one({"mangle": {"key": key, "value": value}})
    assert (rule.action, rule.unread, rule.tests) == ("pass", (), ())


def test_marks_of_packets_and_of_connections_are_two_things() -> None:
    assert one({"mangle": {"key": MARK, "value": 5}}).mark == (0, 5)
    assert not one({"mangle": {"key": MARK, "value": 5}}).connection_mark
    marked = one({"mangle": {"key": CT_MARK, "value": 5}})
    assert (marked.connection_mark, marked.mark) == (True, None)
    assert one({"notrack": None}).untracks
    assert not one({"counter": None}).untracks


@pytest.mark.parametrize(
    ("statements", "it_does"),
    [
        ([{"mangle": {"key": CT_MARK, "value": 5}}], True),
        ([{"mangle": {"key": MARK, "value": 5}}], False),
        ([match(CT_MARK, 5)], False),
        ([], False),
    ],
)
def test_whether_a_ruleset_marks_connections(statements: list[object], it_does: bool) -> None:
    rules = (NftRule(1, "", "[]"), NftRule(2, "", json.dumps(statements)))
    chain = NftChain("ip", "t", "c", "", 0, "", rules)
    assert marks_connections(NftRuleset(tables=(), chains=(chain,), sets=())) is it_does


@pytest.mark.parametrize(
    ("statements", "unread"),
    [
        ([match(SADDR, "@filled"), DROP], [(), ("a set that rules fill",)]),
        ([match(SADDR, "@filled"), ACCEPT], [(), ("a set that rules fill",)]),
        ([match(SADDR, "@filled", "!="), DROP], [(), ("a set that rules fill",)]),
        ([match(SADDR, "@leaving"), ACCEPT], [(EXPIRES,)]),
        ([match(SADDR, "@leaving"), DROP], [()]),
        ([match(SADDR, "@leaving", "!="), DROP], [(), (EXPIRES,)]),
        ([match(SADDR, "@leaving", "!="), ACCEPT], [()]),
        ([match(SADDR, "@filled"), {"limit": {}}, DROP], [("limit",)]),
        ([match(SADDR, "10.0.0.2"), DROP], [()]),
    ],
)
def test_what_is_in_a_set_now_need_not_be_there_later(
    statements: list[object], unread: list[tuple[str, ...]]
) -> None:
    assert [rule.unread for rule in read(*statements)] == unread


def test_what_does_not_change_is_still_asked_where_a_set_is_filled() -> None:
    _, later = read(match(SADDR, "@filled"), match(DPORT, 22), {"counter": None}, DROP)
    assert later.tests == (Condition("dport", ((22, 22),)),)
    now, later = read(match(SADDR, "@leaving", "!="), match(SADDR, "@leaving"), DROP)
    assert later.tests == (Condition("saddr", TWO),)
    assert now.tests == (Condition("saddr", TWO, True), Condition("saddr", TWO))


def mapped(entries: object, key: object = DPORT) -> list[tuple[str, str, tuple[str, ...]]]:
    rules = read({"vmap": {"key": key, "data": entries}}, DROP)
    return [(rule.action, rule.target, rule.unread) for rule in rules]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ({"set": [[22, ACCEPT], [23, DROP]]}, [("accept", "", ()), ("drop", "", ())]),
        ({"set": [[22, {"jump": {"target": "a"}}]]}, [("jump", "a", ())]),
        ({"set": [[22, {"goto": {"target": "a"}}]]}, [("goto", "a", ())]),
        ({"set": [[22, {"frobnicate": None}]]}, [("drop", "", ("frobnicate",))]),
        ({"set": [22]}, [("drop", "", ("an entry of a map",))]),
        ({"set": [[22]]}, [("drop", "", ("an entry of a map",))]),
        ({"set": [22, [23, ACCEPT]]}, [("drop", "", ("an entry of a map",)), ("accept", "", ())]),
        ({"set": [[{"elem": {"val": 22, "expires": 4}}, ACCEPT]]}, [("accept", "", (EXPIRES,))]),
        ({"set": [[{"elem": {"val": 22, "expires": 4}}, DROP]]}, [("drop", "", ())]),
        ({}, []),
        ("@verdicts", [("accept", "", ())]),
        ("@gone", [("drop", "", ("a map that is not known",))]),
    ],
)
def test_a_map_of_verdicts_is_a_rule_for_each_entry(entries: object, expected: object) -> None:
    assert mapped(entries) == expected


def test_an_entry_of_a_map_asks_for_its_key() -> None:
    rules = read(match(SADDR, "10.0.0.2"), {"vmap": {"key": DPORT, "data": {"set": [[22, DROP]]}}})
    assert [rule.tests for rule in rules] == [
        (Condition("saddr", TWO), Condition("dport", ((22, 22),)))
    ]
    key = {"concat": [SADDR, DPORT]}
    entries = [[{"concat": ["10.0.0.2", 22]}, DROP], ["x", DROP]]
    together, odd = read({"vmap": {"key": key, "data": {"set": entries}}})
    pair = (Condition("saddr", TWO), Condition("dport", ((22, 22),)))
    assert together.tests == (Either((pair,)),)
    assert odd.tests == (Condition("concatenated values", None),)
    masked = {"&": [DPORT, "x"]}
    (rule,) = read({"vmap": {"key": masked, "data": {"set": [[22, DROP]]}}})
    assert [(test.field, test.values) for test in rule.tests if isinstance(test, Condition)] == [
        ("something", None)
    ]
    bits = {"&": [MARK, 15]}
    (rule,) = read({"vmap": {"key": bits, "data": {"set": [[2, DROP]]}}})
    assert rule.tests == (Condition("mark", ((2, 2),), False, 15),)


@pytest.mark.parametrize("statement", [{"match": 5}, {"match": {}}, {"jump": {}}, {"vmap": {}}])
def test_a_rule_of_another_form_may_drop(statement: object) -> None:
    found = one(statement)
    assert (found.action, found.unread) == ("drop", ("a form that is not known",))


def test_a_rule_has_the_words_of_its_place() -> None:
    chain = NftChain("inet", "filter", "input", "input", 0, "drop", ())
    assert place(chain) == "inet filter input"
    rule = NftRule(1, "why", json.dumps([match(DPORT, 22), DROP]))
    assert read_rule(rule, {}, place(chain))[0].words == (
        'inet filter input: tcp dport 22 drop comment "why"'
    )
    assert read_rule(rule, {})[0].words == 'tcp dport 22 drop comment "why"'
