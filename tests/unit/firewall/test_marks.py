"""Marks: which of them rules give, and what is said of those that a program or traffic control may give."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from remedy.firewall.hooks import Tables, gates
from remedy.firewall.marks import ANY_BIT, NOT_GIVEN, asks_for_another, given_by
from remedy.firewall.packets import Condition
from remedy.firewall.traffic import Judgement
from remedy.probe import NftChain, NftRule
from tests.unit.firewall.firewall_bench import (
    NO_NFT,
    TRAFFIC,
    WAY,
    doubts_of,
    is_dropped,
    judgements,
)

HEAD = "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n"
DROPS = "-A OUTPUT -m mark --mark 0x29 -j DROP"
GIVES = "*mangle\n:OUTPUT ACCEPT\n-A OUTPUT -p udp -j MARK --set-xmark 0x29/0xffffffff\nCOMMIT\n"


def test_a_mark_that_no_rule_gives_may_be_a_programs() -> None:
    found = judgements(iptables=f"{HEAD}{DROPS}\nCOMMIT\n")
    assert not is_dropped(found)
    assert doubts_of(found) == [DROPS]
    assert [doubt.unread for judgement in found for doubt in judgement.doubts] == [(NOT_GIVEN,)]
    assert doubts_of(judgements(iptables=f"{HEAD}{DROPS}\nCOMMIT\n", accepted=DROPS)) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{GIVES}{HEAD}{DROPS}\nCOMMIT\n",  # a rule gives it, to other packets
        f"{HEAD}-A INPUT -m mark --mark 0x29 -j DROP\nCOMMIT\n",  # what comes in has none yet
        f"{HEAD}-A OUTPUT -p udp -m mark --mark 0x29 -j DROP\nCOMMIT\n",
        f"{HEAD}-A OUTPUT -m mark --mark 0x29 -j ACCEPT\nCOMMIT\n",
        f"{HEAD}-A OUTPUT -m mark ! --mark 0x0 -j ACCEPT\nCOMMIT\n",
    ],
)
def test_where_nothing_is_lost_by_it_nothing_is_said(text: str) -> None:
    found = judgements(iptables=text)
    assert not is_dropped(found)
    assert doubts_of(found) == []


def test_what_is_dropped_for_having_no_mark_is_dropped() -> None:
    assert is_dropped(judgements(iptables=f"{HEAD}-A OUTPUT -m mark --mark 0x0 -j DROP\nCOMMIT\n"))


def test_of_nftables_too() -> None:
    match = {"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": 41}}
    gives = {"mangle": {"key": {"meta": {"key": "mark"}}, "value": 41}}
    udp = {"match": {"op": "==", "left": {"meta": {"key": "l4proto"}}, "right": "udp"}}
    alone = of_nft([match, {"drop": None}])
    assert [doubt.unread for judgement in alone for doubt in judgement.doubts] == [(NOT_GIVEN,)]
    assert [judgement.doubts for judgement in of_nft([udp, gives], [match, {"drop": None}])] == [()]


def of_nft(*expressions: object) -> list[Judgement]:
    """Return what a chain of nftables does with what goes out."""
    rules = tuple(NftRule(at, "", json.dumps(each)) for at, each in enumerate(expressions, 1))
    chain = NftChain("inet", "t", "out", "output", 0, "accept", rules)
    return judgements(nft=NO_NFT.model_copy(update={"chains": (chain,)}))


def test_traffic_control_marks_what_comes_in() -> None:
    text = f"{HEAD}-A INPUT -m mark --mark 0x29 -j DROP\nCOMMIT\n"
    path = replace(WAY, marked=True)
    found = [gate.judgement for gate in gates(Tables(NO_NFT, {"nft": text}), TRAFFIC, path)]
    assert not is_dropped(found)
    assert doubts_of(found) == ["-A INPUT -m mark --mark 0x29 -j DROP"]


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("-A OUTPUT -j MARK --set-xmark 0x4000/0x4000", 0x4000),
        ("-A X -j MARK --or-mark 0x8000", 0x8000),
        ("-A X -j MARK --set-xmark 0x0/0xf", 0),
        ("-A X -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff", ANY_BIT),
        ("-A X -j ACCEPT", 0),
    ],
)
def test_the_bits_that_rules_give(text: str, bits: int) -> None:
    assert given_by([text], NO_NFT) == bits


@pytest.mark.parametrize(
    ("condition", "given", "asks"),
    [
        (Condition("mark", ((7, 7),)), 0, True),
        (Condition("mark", ((7, 7),)), 7, False),
        (Condition("mark", ((7, 7),)), 3, True),
        (Condition("mark", ((7, 7),), mask=3), 3, False),
        (Condition("mark", ((0, 0),)), 0, False),
        (Condition("mark", ((0, 0),), negated=True), 0, True),
        (Condition("mark", ((0, 0),), negated=True), 8, False),
        (Condition("mark", ((7, 7),), negated=True), 0, False),
        (Condition("mark", None), 0, False),
    ],
)
def test_a_condition_asks_for_a_mark_that_rules_do_not_give(
    condition: Condition, given: int, asks: bool
) -> None:
    assert asks_for_another(condition, given) is asks


@pytest.mark.parametrize(
    ("ports", "is_doubted"), [("40000:50000", True), ("40000", False), ("29500", True)]
)
def test_many_ports_that_are_sent_elsewhere_are_a_doubt(ports: str, is_doubted: bool) -> None:
    rule = f"-A PREROUTING -p tcp -m tcp --dport {ports} -j REDIRECT --to-ports 3128"
    found = judgements(iptables=f"*nat\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n{rule}\nCOMMIT\n")
    assert doubts_of(found) == ([f"-t nat {rule}"] if is_doubted else [])
