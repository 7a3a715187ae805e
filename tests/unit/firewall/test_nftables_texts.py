"""Rules of nftables in words, whole rulesets, and statements that no reader expects."""

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
from remedy.firewall.packets import EVERYTHING
from remedy.firewall.reading import narrow
from remedy.firewall.traffic import Chain
from remedy.probe import NftChain, NftRule, NftRuleset, NftSet
from tests.unit.firewall.nftables_bench import (
    DPORT,
    IN,
    SADDR,
    SETS,
    match,
    one,
)

RECORDED = json.loads(
    (Path(__file__).parents[1] / "data/nftables/rules.json").read_text(encoding="utf-8")
)
"""Rules of nft 1.0.6, each as ``nft -s list`` and ``nft -s -j list`` print it."""


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
