"""Rules of nftables as JSON, for tests: expressions, sets, and what is read from them."""

from __future__ import annotations

import json
from typing import Any

from remedy.firewall import spans
from remedy.firewall.nftables_rules import read_rule
from remedy.firewall.packets import EVERYTHING, NEW, Flow, Part, check
from remedy.firewall.reading import narrow
from remedy.firewall.traffic import Rule
from remedy.probe import NftRule

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
