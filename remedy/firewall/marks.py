"""Marks that the rules of a host give to packets, as far as their text says which."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from remedy.firewall.nftables_values import mark_change
from remedy.firewall.packets import Condition
from remedy.firewall.spans import holds
from remedy.probe import NftRuleset

ANY_BIT = 2**32 - 1
NOT_GIVEN = "a mark that no rule gives, and a program may (SO_MARK)"
"""Why it is not known whether a rule drops packets by such a mark."""

_GIVES = re.compile(r" -j MARK --(?:set-x?mark|or-mark|xor-mark) (0x[0-9a-f]+|\d+)")
_GIVES_ANY = re.compile(r" -j CONNMARK --restore-mark| -j HMARK | --map-mark|-j mark --")
_KEY = {"meta": {"key": "mark"}}


def given_by(texts: Iterable[str], ruleset: NftRuleset) -> int:
    """Return the bits that a mark can have which some rule gives; ``ANY_BIT`` where that is not known.

    Args:
        texts: the tables of iptables, as iptables-save prints them.
        ruleset: the rules of nftables.
    """
    bits = 0
    for text in texts:
        bits |= _of_iptables(text)
    for chain in ruleset.chains:
        for rule in chain.rules:
            if '"mangle"' in rule.expression and '"mark"' in rule.expression:
                bits |= _of_nftables(rule.expression)
    return bits


@lru_cache(maxsize=64)
def _of_iptables(text: str) -> int:
    if _GIVES_ANY.search(text):
        return ANY_BIT
    bits = 0
    for number in _GIVES.findall(text):
        bits |= int(number, 0)
    return bits


@lru_cache(maxsize=1024)
def _of_nftables(expression: str) -> int:
    bits = 0
    statements: Any = json.loads(expression)
    for statement in statements:
        change = statement.get("mangle") if isinstance(statement, dict) else None
        if change and change.get("key") == _KEY:
            _, flip = mark_change(change.get("value"))
            bits |= ANY_BIT if flip is None else flip
    return bits


def asks_for_another(condition: Condition, bits: int) -> bool:
    """Return whether a condition holds for no packet without a mark, and for none that a rule has marked.

    Args:
        condition: of a rule, on the mark of packets.
        bits: the bits that marks can have which rules give.
    """
    values = condition.values
    if not isinstance(values, tuple) or holds(values, 0) is not condition.negated:
        return False
    if condition.negated:
        return not bits & condition.mask
    return all(low & condition.mask & ~bits for low, _ in values if low)
