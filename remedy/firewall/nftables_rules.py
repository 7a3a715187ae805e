"""Reading rules of nftables, as the probe has them (libnftables-json(5))."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Address
from types import MappingProxyType
from typing import Any

from remedy.firewall import spans
from remedy.firewall.spans import Spans
from remedy.firewall.step import Path
from remedy.firewall.traffic import Chain, Rule
from remedy.probe import NftChain, NftRule, NftRuleset

_HOOKS = ("input", "prerouting")


def base_chains(ruleset: NftRuleset) -> Iterator[NftChain]:
    """Yield the chains that a packet for this host has to pass."""
    for chain in ruleset.chains:
        if chain.hook in _HOOKS and chain.family in ("inet", "ip"):
            yield chain


@lru_cache(maxsize=256)
def chains(
    ruleset: NftRuleset, family: str, table: str, path: Path
) -> MappingProxyType[str, Chain]:
    """Return the chains of one table for a packet that comes by ``path``."""
    sets = {s.name: s.definition for s in ruleset.sets if (s.family, s.table) == (family, table)}
    return MappingProxyType(
        {
            chain.name: Chain(
                tuple(r for rule in chain.rules for r in read_rule(rule, sets, path)),
                (chain.policy or "accept") if chain.hook else "",
            )
            for chain in ruleset.chains
            if (chain.family, chain.table) == (family, table)
        }
    )


def read_rule(rule: NftRule, sets: Mapping[str, str], path: Path) -> list[Rule]:
    """Read one rule; a rule with a verdict map is several, one that cannot match a new connection none."""
    words = f"nft rule: {rule.expression if len(rule.expression) < 160 else rule.expression[:157] + '...'}"
    sources: Spans | None = None
    ports: Spans | None = None
    certain = True
    for statement in json.loads(rule.expression):
        kind, value = _statement(statement)
        if kind == "match":
            what = _field(value["left"])
            operation, right = value["op"], value["right"]
            if what in ("saddr", "dport"):
                numbers = _numbers(right, sets, addresses=what == "saddr")
                if numbers is None or operation not in ("==", "!=", "in"):
                    certain = False
                    continue
                if operation == "!=":
                    numbers = spans.minus(
                        spans.ALL_ADDRESSES if what == "saddr" else spans.ALL_PORTS, numbers
                    )
                if what == "saddr":
                    sources = numbers if sources is None else spans.meet(sources, numbers)
                else:
                    ports = numbers if ports is None else spans.meet(ports, numbers)
                continue
            answer = _holds(what, right, sets, path)
            if answer is None:
                certain = False
            elif answer is (operation == "!="):
                return []
        elif kind == "vmap":
            return list(
                _mapped(value, sets, path, Rule("pass", "", sources, ports, certain, words))
            )
        elif kind in ("accept", "drop", "return"):
            return [Rule(kind, "", sources, ports, certain, words)]
        elif kind == "reject":
            return [Rule("drop", "", sources, ports, certain, words)]
        elif kind in ("jump", "goto"):
            return [Rule(kind, value["target"], sources, ports, certain, words)]
        elif kind not in ("counter", "log", "mangle", "notrack", "quota"):
            certain = False
    return []


def _statement(statement: Any) -> tuple[str, Any]:
    if not isinstance(statement, dict):
        return str(statement), None
    ((kind, value),) = statement.items()
    return kind, value


def _mapped(
    value: Mapping[str, Any], sets: Mapping[str, str], path: Path, rule: Rule
) -> Iterator[Rule]:
    """Yield a rule for each entry of a verdict map that can match."""
    what = _field(value["key"])
    data = value.get("data")
    entries = data.get("set", ()) if isinstance(data, dict) else _elements(str(data), sets)
    for entry in entries or ():
        if not (isinstance(entry, list) and len(entry) == 2):
            continue
        key, verdict = entry
        ((action, target),) = verdict.items()
        sources, ports, certain = rule.sources, rule.ports, rule.certain
        numbers = (
            _numbers(key, sets, addresses=what == "saddr") if what in ("saddr", "dport") else None
        )
        if numbers is not None and what == "saddr":
            sources = numbers if sources is None else spans.meet(sources, numbers)
        elif numbers is not None:
            ports = numbers if ports is None else spans.meet(ports, numbers)
        else:
            answer = _holds(what, key, sets, path)
            if answer is False:
                continue
            certain = certain and answer is True
        yield Rule(
            action="drop" if action == "reject" else "pass" if action == "continue" else action,
            target=target["target"] if action in ("jump", "goto") else "",
            sources=sources,
            ports=ports,
            certain=certain,
            words=rule.words,
        )


def _field(operand: Any) -> str:
    """Return what a match looks at, in one word."""
    ((kind, value),) = operand.items() if isinstance(operand, dict) else (("", None),)
    if kind == "payload" and isinstance(value, dict):
        protocol, name = value.get("protocol", ""), value.get("field", "")
        if protocol == "ip" and name in ("saddr", "daddr", "protocol"):
            return str(name)
        if protocol in ("tcp", "th") and name == "dport":
            return "dport"
        if protocol in ("udp", "icmp", "icmpv6", "ip6", "sctp", "dccp", "udplite"):
            return "other"
    if kind in ("meta", "ct") and isinstance(value, dict):
        return f"{kind} {value.get('key', '')}"
    if kind == "fib" and isinstance(value, dict):
        return f"fib {value.get('result', '')} {','.join(value.get('flags', ()))}"
    return ""


def _holds(what: str, right: Any, sets: Mapping[str, str], path: Path) -> bool | None:
    """Return whether a match holds for a new TCP connection that comes by ``path``; None: not known."""
    if what == "other":
        return False  # of another protocol than TCP over IPv4
    if what in ("protocol", "meta l4proto"):
        return _among(right, ("tcp", 6))
    if what == "meta nfproto":
        return _among(right, ("ipv4",))
    if what == "meta protocol":
        return _among(right, ("ip",))
    if what == "ct state":
        return _among(right, ("new",))
    if what in ("meta iifname", "meta iif"):
        return None if path.interface is None else _among(right, (path.interface,), patterns=True)
    if what in ("meta oifname", "meta oif", "ct status"):
        return False
    if what == "meta mark":
        return _among(right, (0,))
    if what == "fib type daddr":
        return _among(right, ("local",))
    if what == "daddr" and path.address is not None:
        numbers = _numbers(right, sets, addresses=True)
        return (
            None
            if numbers is None
            else bool(spans.meet(numbers, spans.of_networks([path.address])))
        )
    return None


def _among(right: Any, values: tuple[Any, ...], *, patterns: bool = False) -> bool | None:
    if isinstance(right, dict) and "set" in right:
        right = right["set"]
    if isinstance(right, dict) or (isinstance(right, str) and right.startswith("@")):
        return None
    for name in right if isinstance(right, list) else [right]:
        if name in values:
            return True
        if (
            patterns
            and isinstance(name, str)
            and name.endswith("*")
            and values[0].startswith(name[:-1])
        ):
            return True
    return False


def _numbers(right: Any, sets: Mapping[str, str], *, addresses: bool) -> Spans | None:
    """Return the addresses or ports that the right side of a match names; None: not known."""
    if isinstance(right, str) and right.startswith("@"):
        right = {"set": _elements(right, sets)}
    items = right["set"] if isinstance(right, dict) and "set" in right else [right]
    if items is None:
        return None
    numbers = []
    try:
        for item in items:
            if isinstance(item, dict) and "elem" in item:
                item = item["elem"]["val"]
            if isinstance(item, dict) and "range" in item:
                low, high = item["range"]
                numbers.append((_number(low, addresses), _number(high, addresses)))
            elif isinstance(item, dict) and "prefix" in item:
                prefix = item["prefix"]
                numbers += spans.of_networks([f"{prefix['addr']}/{prefix['len']}"])
            else:
                numbers.append((_number(item, addresses),) * 2)
    except (ValueError, TypeError, KeyError):
        return None
    return spans.merge(numbers)


def _number(item: Any, addresses: bool) -> int:
    return int(IPv4Address(item)) if addresses else int(item)


def _elements(name: str, sets: Mapping[str, str]) -> list[Any] | None:
    definition = sets.get(name.removeprefix("@"))
    if definition is None:
        return None
    elements: list[Any] = json.loads(definition).get("elem", [])
    return elements
