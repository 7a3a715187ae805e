"""Reading rules of nftables, as the probe has them (libnftables-json(5))."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from remedy.firewall.nftables_text import rule_text
from remedy.firewall.nftables_values import (
    Elements,
    Sets,
    alternative_of,
    expires,
    field_of,
    mark_change,
    named,
    tests_of,
    values_of,
)
from remedy.firewall.packets import (
    FEWEST_HOPS,
    SMALLEST_SEGMENT,
    Box,
    Condition,
    Either,
    Flow,
    Test,
)
from remedy.firewall.reading import LazyChains, ReadRule, narrow
from remedy.firewall.spans import Spans
from remedy.firewall.traffic import Chain
from remedy.probe import NftChain, NftRule, NftRuleset

_VERDICTS = {
    "accept": "accept",
    "drop": "drop",
    "reject": "drop",
    "return": "return",
    "continue": "pass",
    "jump": "jump",
    "goto": "goto",
    "fwd": "drop",
    "snat": "accept",
    "masquerade": "accept",
    "dnat": "divert",
    "redirect": "divert",
}
_HARMLESS = frozenset(
    {
        "counter",
        "log",
        "ct helper",
        "ct timeout",
        "ct expectation",
        "flow",
        "dup",
        "last",
        "secmark",
        "reset",
    }
    | {"optstrip", "comment"}
)
_CONDITIONS = frozenset({"limit", "quota", "ct count", "set", "meter"})
"""Statements that end a rule, or let it go on, by what came before."""

EXPIRES = "a set whose elements expire"
"""What lets packets through by such a set does so for a while."""

_OF_QUALITY = frozenset(
    {"ip dscp", "ip ecn", "ip6 dscp", "ip6 ecn", "ip6 flowlabel", "vlan pcp", "vlan dei"}
)
"""Fields of packets that say how they are to be treated, not where they go or whether they are whole."""

_BY_PROGRAM = frozenset({"queue", "synproxy", "tproxy"})
"""Where a program, or a part of the kernel with settings of its own, decides."""


@dataclass(frozen=True)
class _Statements:
    """What has been read of a rule so far; ``passing``: whether it asks if packets are in a set whose elements
    expire (True), or are not (False).
    """

    tests: tuple[Test, ...] = ()
    unread: tuple[str, ...] = ()
    mark: tuple[int, int | None] | None = None
    untracks: bool = False
    zones: bool = False
    connection_mark: bool = False
    fills: bool = False
    passing: frozenset[bool] = frozenset()
    open_end: bool = False


@lru_cache(maxsize=256)
def sets_of(ruleset: NftRuleset, family: str, table: str) -> MappingProxyType[str, str]:
    """Return the definitions of a table's sets and maps."""
    return MappingProxyType(
        {s.name: s.definition for s in ruleset.sets if (s.family, s.table) == (family, table)}
    )


def chains(
    ruleset: NftRuleset, family: str, table: str, flow: Flow, bounds: Box
) -> Mapping[str, Chain]:
    """Return the chains of one table for the packets of a flow within ``bounds``."""
    sets = sets_of(ruleset, family, table)
    known = {c.name: c for c in ruleset.chains if (c.family, c.table) == (family, table)}

    def make(name: str) -> Chain:
        chain = known[name]
        rules = (read for rule in chain.rules for read in read_rule(rule, sets, place(chain)))
        return narrow(rules, flow, bounds, (chain.policy or "accept") if chain.hook else "")

    return LazyChains(known, make)


def place(chain: NftChain) -> str:
    """Return the family, table and name of a chain, as nft takes them."""
    return f"{chain.family} {chain.table} {chain.name}"


def marks_connections(ruleset: NftRuleset) -> bool:
    """Return whether some rule gives connections a mark."""
    return any(
        '"ct"' in rule.expression and '"mangle"' in rule.expression
        for chain in ruleset.chains
        for rule in chain.rules
    )


def read_rule(rule: NftRule, sets: Sets, where: str = "") -> tuple[ReadRule, ...]:
    """Read one rule; a rule with a verdict map is several, and so is one with a set that rules fill.

    Args:
        rule: the rule.
        sets: the definitions of its table's sets, by name.
        where: the place of its chain, for its words.
    """
    words = (
        f"{where}: {rule_text(rule.expression, rule.comment)}"
        if where
        else rule_text(rule.expression, rule.comment)
    )
    try:
        return _read(json.loads(rule.expression), sets, words)
    except (TypeError, KeyError, ValueError, AttributeError):
        return (ReadRule(words, action="drop", unread=("a form that is not known",)),)


def _read(statements: Any, sets: Sets, words: str) -> tuple[ReadRule, ...]:
    """Return the rules that statements are; what has another form raises what it will."""
    read = _Statements()
    for statement in statements:
        kind, value = _statement(statement)
        if kind == "vmap":
            return tuple(_mapped(value, sets, read, words))
        if kind in _VERDICTS or kind in _BY_PROGRAM:
            target = str(value["target"]) if kind in ("jump", "goto") else ""
            rule = _rule(read, words, _VERDICTS.get(kind, "drop"), target)
            if kind == "snat" and isinstance(value, dict) and "addr" in value:
                rule = replace(rule, source=_source(value["addr"]))
            if kind in _BY_PROGRAM:
                rule = replace(rule, unread=(*rule.unread, kind))
            if rule.action == "accept" and True in read.passing:
                rule = replace(rule, unread=(*rule.unread, EXPIRES))
            if not (read.fills or (rule.action == "drop" and False in read.passing)):
                return (rule,)
            return (rule,) if rule.unread else (rule, _uncertain(rule, statements, sets))
        read = _read_statement(read, kind, value, sets)
    # What is not known may be a verdict.
    return (_rule(read, words, "drop" if read.open_end else "pass", ""),)


def _rule(read: _Statements, words: str, action: str, target: str) -> ReadRule:
    return ReadRule(
        words,
        read.tests,
        action,
        target,
        tuple(dict.fromkeys(read.unread)),
        read.mark,
        read.untracks,
        read.connection_mark,
        zones=read.zones,
    )


def _source(address: Any) -> Spans:
    """Return the addresses that ``snat`` gives as source; () where a map or an expression says them."""
    try:
        values = values_of("saddr", [address])
    except (ValueError, TypeError, KeyError):
        return ()
    return values if isinstance(values, tuple) else ()


def _uncertain(rule: ReadRule, statements: list[Any], sets: Sets) -> ReadRule:
    """Return a rule without its sets that rules fill: what is in them now says nothing of the next packet."""
    tests: list[Test] = []
    for statement in statements:
        kind, value = _statement(statement)
        if kind == "match" and not _changes(value["op"], value["right"], sets):
            tests += tests_of(value["left"], value["op"], value["right"], sets)
    reason = EXPIRES if not any(_fills(s, sets) for s in statements) else "a set that rules fill"
    return replace(rule, tests=tuple(tests), unread=(reason,))


def _elements(right: Any, sets: Sets) -> Elements:
    """Return what is in the set that a match names; nothing where it names none."""
    known = named(right, sets) if isinstance(right, str) and right.startswith("@") else None
    return known or Elements()


def _changes(operation: str, right: Any, sets: Sets) -> bool:
    """Return whether a match that holds now, or does not, can be otherwise for the next packet."""
    elements = _elements(right, sets)
    return elements.fills or (elements.expires and operation == "!=")


def _fills(statement: Any, sets: Sets) -> bool:
    kind, value = _statement(statement)
    return kind == "match" and _elements(value["right"], sets).fills


def _statement(statement: Any) -> tuple[str, Any]:
    if not isinstance(statement, dict) or len(statement) != 1:
        return (statement if isinstance(statement, str) else "something"), None
    ((kind, value),) = statement.items()
    return str(kind), value


def _read_statement(read: _Statements, kind: str, value: Any, sets: Sets) -> _Statements:
    """Return what has been read with one statement more that gives no verdict."""
    if kind == "match":
        tests = tests_of(value["left"], value["op"], value["right"], sets)
        elements = _elements(value["right"], sets)
        passing = {value["op"] != "!="} if elements.expires else set()
        return replace(
            read,
            tests=(*read.tests, *tests),
            fills=read.fills or elements.fills,
            passing=read.passing | passing,
        )
    if kind in _HARMLESS:
        return read
    if kind == "notrack":
        return replace(read, untracks=True)
    if kind == "set" and not value.get("stmt"):
        return read
    if kind == "mangle":
        return _mangled(read, value)
    if kind == "xt":
        known = value if isinstance(value, dict) else {}
        name = str(known.get("name", "an extension"))
        is_match = known.get("type") == "match"
        return replace(read, unread=(*read.unread, name), open_end=read.open_end or not is_match)
    inside = value.get("stmt") if isinstance(value, dict) else None
    if kind in ("set", "meter") and inside:
        limits = inside if isinstance(inside, list) else [inside]
        return replace(read, unread=(*read.unread, *(_statement(limit)[0] for limit in limits)))
    is_open = read.open_end or kind not in _CONDITIONS
    return replace(read, unread=(*read.unread, kind), open_end=is_open)


def _mangled(read: _Statements, value: Mapping[str, Any]) -> _Statements:
    """Return what has been read with a statement that changes a packet or its connection."""
    key = value["key"]
    if key == {"meta": {"key": "mark"}}:
        return replace(read, mark=mark_change(value["value"]))
    if key == {"ct": {"key": "mark"}}:
        return replace(read, connection_mark=True)
    if isinstance(key, dict) and key.get("ct", {}).get("key") == "zone":
        return replace(read, zones=value.get("value") != 0)
    name, _ = field_of(key)
    if _survives(key, name, value.get("value")):
        return read
    # Not known: what gets packets that were rewritten. In IPv6 nobody rewrites an address of IPv4, and so on.
    return replace(
        read,
        tests=(*read.tests, Condition(name, None)),
        unread=(*read.unread, f"{name or 'payload'} set"),
        open_end=True,
    )


def _survives(key: Any, name: str, value: Any) -> bool:
    """Return whether packets arrive as they would have with a new value for one of their fields.

    Args:
        key: what is set.
        name: the same, in a word of ``packets``.
        value: the new value.
    """
    if name in ("ip ttl", "ip6 hoplimit"):
        return isinstance(value, int) and value >= FEWEST_HOPS
    if name == "mss":
        return not isinstance(value, int) or value >= SMALLEST_SEGMENT
    of_the_path = "payload" in key or name == "packet-type"
    return not of_the_path or name in _OF_QUALITY


def _mapped(
    value: Mapping[str, Any], sets: Sets, read: _Statements, words: str
) -> Iterator[ReadRule]:
    """Yield a rule for each entry of a verdict map."""
    data, key = value.get("data"), value["key"]
    entries: Any = data.get("set", ()) if isinstance(data, dict) else None
    if entries is None:
        elements = named(str(data), sets)
        if elements is None:
            yield replace(_rule(read, words, "drop", ""), unread=("a map that is not known",))
            return
        entries = elements.items
    for entry in entries:
        if not (isinstance(entry, list) and len(entry) == 2):
            yield replace(_rule(read, words, "drop", ""), unread=("an entry of a map",))
            continue
        yield _entry(key, entry[0], entry[1], read, words)


def _entry(key: Any, item: Any, verdict: Any, read: _Statements, words: str) -> ReadRule:
    """Return the rule of one entry of a verdict map."""
    action, target = _statement(verdict)
    known = _VERDICTS.get(action)
    rule = _rule(
        read, words, known or "drop", target["target"] if action in ("jump", "goto") else ""
    )
    if known is None:
        rule = replace(rule, unread=(*rule.unread, action))
    if known == "accept" and expires(item):
        rule = replace(rule, unread=(*rule.unread, EXPIRES))
    if isinstance(key, dict) and "concat" in key:
        alternative = alternative_of(key["concat"], item)
        test: Test = Condition("concatenated values", None)
        if alternative is not None:
            test = Either((alternative,))
        return replace(rule, tests=(*rule.tests, test))
    try:
        name, mask = field_of(key)
    except (ValueError, TypeError, KeyError):
        name, mask = "something", 0
    return replace(rule, tests=(*rule.tests, Condition(name, values_of(name, [item]), False, mask)))
