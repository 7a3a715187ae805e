"""Each form that libnftables-json(5) has for a value or a statement: what it comes to, and what is not read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remedy.firewall import spans
from remedy.firewall.nftables_rules import read_rule
from remedy.firewall.nftables_values import (
    Elements,
    alternative_of,
    elements_of,
    expires,
    field_of,
    mark_change,
    values_of,
)
from remedy.firewall.nftables_values import tests_of as conditions_of
from remedy.firewall.packets import Condition, Either
from remedy.firewall.reading import ReadRule
from remedy.probe import NftRule

ALL = 2**32 - 1
FLAGS = {"payload": {"protocol": "tcp", "field": "flags"}}
DPORT = {"payload": {"protocol": "tcp", "field": "dport"}}
SADDR = {"payload": {"protocol": "ip", "field": "saddr"}}
MARK, CT_MARK = {"meta": {"key": "mark"}}, {"ct": {"key": "mark"}}
TWO = spans.of_networks(["10.0.0.2"])


ACCEPT, DROP = {"accept": None}, {"drop": None}


def one(*statements: object) -> ReadRule:
    (rule,) = read_rule(NftRule(1, "", json.dumps(statements)), {})
    return rule


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({}, Elements()),
        ({"elem": [1, 2]}, Elements((1, 2))),
        ({"flags": "dynamic"}, Elements(fills=True)),
        ({"flags": ["interval", "dynamic"]}, Elements(fills=True)),
        ({"flags": "interval"}, Elements()),
        ({"flags": ["timeout"]}, Elements()),
        ({"elem": [1, {"elem": {"val": 2, "expires": 3}}]},
         Elements((1, {"elem": {"val": 2, "expires": 3}}), expires=True)),
    ],
)  # fmt: skip
def test_a_definition_says_what_is_in_a_set(definition: object, expected: Elements) -> None:
    assert elements_of(json.dumps(definition)) == expected


@pytest.mark.parametrize(
    ("item", "it_does"),
    [
        ({"elem": {"val": 1, "expires": 5}}, True),
        ({"elem": {"val": 1, "timeout": 5}}, True),
        ({"elem": {"val": 1, "comment": "x"}}, False),
        ([{"elem": {"val": 1, "expires": 5}}, ACCEPT], True),
        ([1, {"elem": {"val": 1, "expires": 5}}], False),
        ([], False),
        ({"elem": 5}, False),
        ({"range": [1, 2]}, False),
        ("expires", False),
    ],
)
def test_an_element_leaves_by_itself(item: object, it_does: bool) -> None:
    assert expires(item) is it_does


@pytest.mark.parametrize(
    "bits", [True, None, {"set": [1]}, [1, True], [1, None], "x", {"|": [1, {}]}]
)
def test_bits_of_another_form_are_not_read(bits: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        field_of({"&": [FLAGS, bits]})
    assert conditions_of({"&": [FLAGS, bits]}, "==", 1, {}) == (Condition("something", None),)
    assert conditions_of({"&": [FLAGS, bits]}, "!=", 1, {}) == (Condition("something", None, True),)
    assert values_of("flags", [bits]) is None
    assert alternative_of([{"&": [FLAGS, bits]}], {"concat": [1]}) is None


@pytest.mark.parametrize(
    ("bits", "expected"),
    [(6, 6), ("6", 6), ("0x10", 16), ([2, "ack"], 18), ({"|": [2, 4]}, 6), ([], 0)],
)
def test_bits_are_numbers_and_flags_together(bits: object, expected: int) -> None:
    assert field_of({"&": [FLAGS, bits]}) == ("flags", expected)


@pytest.mark.parametrize("name", ["l4proto", "ethertype", "iif", "direction", "packet-type"])
@pytest.mark.parametrize("item", [{"range": [1, 2]}, None, {}, ["tcp", None]])
def test_a_word_of_another_form_is_not_read(name: str, item: object) -> None:
    assert values_of(name, [item]) is None


@pytest.mark.parametrize("name", ["dport", "mss", "mark", "connection-mark"])
@pytest.mark.parametrize("item", [True, False, None, "x", {"set": []}, {"range": [1, True]}, [1]])
def test_a_number_of_another_form_is_not_read(name: str, item: object) -> None:
    assert values_of(name, [item]) is None


@pytest.mark.parametrize("name", ["saddr", "daddr", "arp-saddr", "arp-daddr"])
def test_an_address_is_a_number(name: str) -> None:
    number = TWO[0][0]
    assert values_of(name, ["10.0.0.2", number + 1]) == ((number, number + 1),)
    assert values_of(name, ["host"]) is None
    assert values_of(name, [{"prefix": {"addr": "10.0.0.2", "len": 32}}]) == TWO


@pytest.mark.parametrize("name", ["saddr6", "daddr6"])
def test_an_address_of_ipv6_is_a_number(name: str) -> None:
    assert values_of(name, [{"range": ["::2", "::9"]}, "::1"]) == ((1, 9),)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
@pytest.mark.parametrize(
    ("left", "name", "last"),
    [
        (SADDR, "saddr", 2**32 - 1),
        ({"payload": {"protocol": "ip6", "field": "daddr"}}, "daddr6", 2**128 - 1),
        ({"payload": {"protocol": "tcp", "field": "sport"}}, "sport", 65535),
        ({"tcp option": {"name": "maxseg", "field": "size"}}, "mss", 65535),
    ],
)
def test_below_and_above_reach_to_the_last_number(
    left: object, name: str, last: int, op: str
) -> None:
    bounds = {"<": (0, 8), "<=": (0, 9), ">": (10, last), ">=": (9, last)}
    assert conditions_of(left, op, 9, {}) == (Condition(name, (bounds[op],)),)


SETS = {
    "peers": json.dumps({"elem": ["10.0.0.2"]}),
    "pairs": json.dumps({"elem": [{"concat": ["10.0.0.2", 22]}]}),
    "odd": json.dumps({"elem": [{"concat": ["10.0.0.2", 22]}, "10.0.0.3"]}),
}


@pytest.mark.parametrize(
    ("right", "values"),
    [
        ("@peers", TWO),
        ("@gone", None),
        ({"set": "@peers"}, TWO),
        ({"set": ["10.0.0.2"]}, TWO),
        ({"set": {"range": ["10.0.0.2", "10.0.0.2"]}}, TWO),
        (["10.0.0.2"], TWO),
        ("10.0.0.2", TWO),
    ],
)
def test_the_right_side_names_values_or_a_set(right: object, values: object) -> None:
    assert conditions_of(SADDR, "==", right, SETS) == (Condition("saddr", values),)  # type: ignore[arg-type]
    assert conditions_of(SADDR, "!=", right, SETS) == (Condition("saddr", values, True),)  # type: ignore[arg-type]


def test_a_largest_segment_that_is_not_offered_is_neither_equal_nor_unequal() -> None:
    left = {"tcp option": {"name": "maxseg", "field": "size"}}
    assert conditions_of(left, "!=", 9, {}) == (Condition("tcp option", None),)
    assert conditions_of(left, "==", 9, {}) == (Condition("mss", ((9, 9),)),)


BOTH = {"concat": [SADDR, DPORT]}
PAIR = (Condition("saddr", TWO), Condition("dport", ((22, 22),)))


@pytest.mark.parametrize(("op", "negated"), [("==", False), ("!=", True)])
@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ({"set": [{"concat": ["10.0.0.2", 22]}]}, (PAIR,)),
        ("@pairs", (PAIR,)),
        ("@odd", "concatenated values"),
        ("@gone", "a set that is not known"),
        ({"set": [{"concat": ["10.0.0.2"]}]}, "concatenated values"),
        ({"set": [{"concat": "10.0.0.2"}]}, "concatenated values"),
        ({"set": [{"elem": {"val": {"concat": ["10.0.0.2", 22]}, "expires": 4}}]}, (PAIR,)),
    ],
)
def test_values_that_belong_together(right: object, expected: Any, op: str, negated: bool) -> None:
    (found,) = conditions_of(BOTH, op, right, SETS)
    if isinstance(expected, str):
        assert found == Condition(expected, None, negated)
    else:
        assert found == Either(expected, negated)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"&": [MARK, "x"]}, (0, None)),
        ({"&": [CT_MARK, 3]}, (0, None)),
        ({"&": [MARK, 15, 3]}, (0, None)),
        ({"&": MARK}, (0, None)),
        ({"<<": [MARK, 3]}, (0, None)),
        ({"&": [MARK, 15], "|": [MARK, 1]}, (0, None)),
        ({"&": [5, 4]}, (0, 4)),
        ({"|": [5, 2]}, (0, 7)),
        ({"|": [{"^": [MARK, 7]}, 1]}, (ALL - 1, 7)),
        (False, (0, None)),
        (None, (0, None)),
    ],
)
def test_a_mark_that_is_computed(value: object, expected: object) -> None:
    assert mark_change(value) == expected
    rule = one({"mangle": {"key": MARK, "value": value}})
    assert (rule.mark, rule.action, rule.unread) == (expected, "pass", ())


@pytest.mark.parametrize(
    ("kind", "value", "action", "unread"),
    [
        ("accept", None, "accept", ()),
        ("drop", None, "drop", ()),
        ("reject", {"type": "tcp reset"}, "drop", ()),
        ("return", None, "return", ()),
        ("continue", None, "pass", ()),
        ("fwd", {"dev": "eth1"}, "drop", ()),
        ("snat", {"addr": "10.0.0.2"}, "accept", ()),
        ("masquerade", None, "accept", ()),
        ("dnat", {"addr": "10.0.0.2"}, "divert", ()),
        ("redirect", None, "divert", ()),
        ("queue", {"num": 1}, "drop", ("queue",)),
        ("synproxy", {"mss": 1}, "drop", ("synproxy",)),
        ("tproxy", {"port": 1}, "drop", ("tproxy",)),
    ],
)
def test_a_verdict_is_an_action(
    kind: str, value: object, action: str, unread: tuple[str, ...]
) -> None:
    rule = one({kind: value}, DROP)
    assert (rule.action, rule.unread, rule.target) == (action, unread, "")
    source = TWO if kind == "snat" else ()
    assert rule.source == source


@pytest.mark.parametrize("kind", ["jump", "goto"])
def test_a_chain_is_the_target(kind: str) -> None:
    rule = one({kind: {"target": "mine"}})
    assert (rule.action, rule.target) == (kind, "mine")


@pytest.mark.parametrize("address", ["host", {"map": {}}, None, {"range": 5}])
def test_a_source_that_is_computed_is_not_known(address: object) -> None:
    assert one({"snat": {"addr": address}}).source == ()
    assert one({"dnat": {"addr": "10.0.0.2"}}).source == ()
    assert one({"snat": None}).source == ()
